"""The search for a direction: the chain, its equation and its random numbers, as the library has them."""

import numpy as np
import pytest
from scipy import integrate, stats

from flbook.dynamics import equations
from flbook.lectures.representation.online_sgd import Setting, experiment, neuron, power, sphere
from flbook.rng import numpy_generator

GRID = np.array([0.0, 0.001, 0.1, 0.3, 0.5, 0.8, 0.99, -0.4])

CHAIN = """([k, lr, start, d, at, numbers]) => {
  const {Neuron, Search} = flbookLive.search, next = list => { let i = 0; return () => list[i++]; };
  const stream = r => ({u: next(numbers[r][0]), p: next(numbers[r][1]), rest: next(numbers[r][2])});
  const search = new Search(new Neuron(k, lr), start, d, {runs: numbers.length, at, stream});
  while (!search.work(1e4)) {}
  return [search.paths, search.reached.map(n => n || null)];
}"""

DRAWN = """([k, lr, start, d, at, runs]) => {
  const {Neuron, Search, stream} = flbookLive.search;
  const search = new Search(new Neuron(k, lr), start, d, {runs, at, stream: stream(0, "test")});
  while (!search.work(1e4)) {}
  return [search.paths, search.reached.map(n => n || null)];
}"""


def given_numbers(seed, d, count, role):
    """What `sphere.follow` draws for one seed: u, p and the squared length of the rest, in its blocks."""
    source, blocks = numpy_generator(seed, f"{role} {d}"), []
    for _ in range(-(-count // 2048)):
        unit = source.standard_normal((2048, 2)).T
        blocks.append(np.concatenate([unit, source.chisquare(d - 2, 2048)[None]]))
    return np.concatenate(blocks, -1)[:, :count]


@pytest.mark.parametrize(
    "k, d, lr, start",
    [
        (1, 200, 0.5, 0.07),
        (1, 10, 3.0, -0.47),
        (2, 1000, 0.5, 0.03),
        (2, 12, 4.0, 0.9),
        (3, 50, 0.5, 0.14),
        (3, 10, 5.0, 0.47),
        (3, 100_000, 2.0, 0.6),
    ],
)
def test_the_chain_is_the_librarys(tab, k, d, lr, start):
    """Six thousand steps from the same numbers; the escape is looked for at the same steps."""
    like, seeds, at = Setting(link=(k,), d=(d,), lr=lr), (0, 1, 2, 3), [0, 1, 2, 7, 100, 2047, 2048, 2049, 4000, 6000]
    rule = neuron(like, k, d)
    path, reached = sphere.follow(rule, start, d, seeds, np.array(at), role="samples")
    numbers = [given_numbers(seed, d, at[-1], "samples").tolist() for seed in seeds]
    ours, escapes = tab.evaluate(CHAIN, [k, rule.lr, start, d, at, numbers])
    np.testing.assert_allclose(ours, path, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(np.array(escapes, float), reached)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_drift_and_noise_are_the_librarys(tab, k):
    """Closed forms and a sum on a grid against Gauss-Hermite quadrature."""
    rule = sphere.hermite_neuron(k, 0.7)
    call = """([k, lr, grid]) => { const neuron = new flbookLive.search.Neuron(k, lr);
      return ["drift", "power", "rate", "spread"].map(name => grid.map(m => neuron[name](m))); }"""
    drift, noise, rate, spread = tab.evaluate(call, [k, 0.7, GRID.tolist()])
    G, weight, p = rule._table(GRID)
    across = 1 - np.square(GRID)
    np.testing.assert_allclose(drift, rule.drift(GRID), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(noise, rule.power(GRID), rtol=1e-8)
    np.testing.assert_allclose(rate, rule.rate(GRID), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(spread, across * (weight * G**2 * p**2).sum((-2, -1)), rtol=1e-8)
    steps = tab.evaluate("k => [10, 1e5].map(d => flbookLive.search.stepSize(k, d, 0.7))", k)
    np.testing.assert_allclose(steps, [neuron(Setting(lr=0.7), k, d).lr for d in (10, 100_000)], rtol=1e-12)
    scale = tab.evaluate("k => flbookLive.search.scale(k, 1000)", k)
    np.testing.assert_allclose(scale / (np.log(1000) if k == 2 else 1), 1000.0 ** power(Setting(), k), rtol=1e-12)


@pytest.mark.parametrize("k, lr, start", [(1, 0.5, -0.3), (1, 5.0, 0.0), (2, 0.5, 0.03), (2, 5.0, 0.4), (3, 0.05, 0.1)])
def test_the_equation_is_the_librarys(tab, k, lr, start):
    """The library's own steps, with its rate by quadrature; and scipy's solution up to the error of a step."""
    rule, times = sphere.hermite_neuron(k, lr), [0.0, 0.02, 0.4, 1.0, 1.01, 3.0]
    ours = tab.evaluate(
        "([k, lr, start, times]) => flbookLive.search.solve(new flbookLive.search.Neuron(k, lr), start, times)",
        [k, lr, start, times],
    )
    steps = equations.integrate(lambda s: {"m": rule.rate(s["m"])}, {"m": start}, np.array(times), 0.05)
    np.testing.assert_allclose(ours, steps["m"], rtol=0, atol=1e-8)
    exact = integrate.solve_ivp(lambda _, m: rule.rate(m), (0, 3), [start], t_eval=times, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours, exact.y[0], rtol=0, atol=2e-4)


def test_h2_is_the_logistic_equation(tab):
    """At step size 1/2 in a thousand dimensions: q = m^2 follows q' = 2q (3/2 - 4q)."""
    q_0, times = 1e-3, np.linspace(0, 6, 61)
    call = "([q, t]) => flbookLive.search.solve(new flbookLive.search.Neuron(2, 0.5), Math.sqrt(q), t, 0.01)"
    ours = np.square(tab.evaluate(call, [q_0, times.tolist()]))
    grown = q_0 * np.exp(3 * times)
    np.testing.assert_allclose(ours, grown / (1 + (4 / 1.5) * (grown - q_0)), rtol=1e-8)
    wait = tab.evaluate("flbookLive.search.searchTime(new flbookLive.search.Neuron(2, 0.5), -Math.sqrt(1e-3), 1000)")
    odds = (0.25 / (1.5 - 4 * 0.25)) / (q_0 / (1.5 - 4 * q_0))
    np.testing.assert_allclose(wait, 1000 / 0.5 * np.log(odds) / 3, rtol=1e-8)


@pytest.mark.parametrize("k, d, lr, start", [(1, 100, 0.5, -0.15), (2, 30, 0.3, 0.2), (3, 100_000, 0.5, 1e-5**0.5)])
def test_the_time_of_the_search(tab, k, d, lr, start):
    """The integral of dm/rate, by scipy; the hard case starts where the drift is thirty millionths."""
    rule = neuron(Setting(lr=lr), k, d)
    call = "([k, lr, start, d]) => flbookLive.search.searchTime(new flbookLive.search.Neuron(k, lr), start, d)"
    ours = tab.evaluate(call, [k, rule.lr, start, d])
    if k == 1:
        theirs = integrate.quad(lambda m: 1 / rule.rate(m), start, 0.5, epsabs=0, epsrel=1e-11)[0]
    else:
        theirs = integrate.quad(
            lambda s: np.exp(s) / rule.rate(np.exp(s)), np.log(start), np.log(0.5), epsabs=0, epsrel=1e-11, limit=400
        )[0]
    np.testing.assert_allclose(ours, theirs * d / rule.lr, rtol=1e-8)


@pytest.mark.parametrize("k, lr, start", [(2, 0.8, 0.1), (2, 0.5, 0.0), (3, 0.1, -0.2), (3, 0.5, 0.2)])
def test_no_time_where_the_equation_never_arrives(tab, k, lr, start):
    """It stops below one half, stays at zero, starts on the wrong side, or is pulled back by the noise."""
    call = "([k, lr, m]) => flbookLive.search.searchTime(new flbookLive.search.Neuron(k, lr), m, 100) === Infinity"
    assert tab.evaluate(call, [k, lr, start])
    path = sphere.solve(sphere.hermite_neuron(k, lr), start, np.array([0.0, 10.0]))
    assert abs(path[-1]) < 0.5


def test_normal_numbers(tab):
    """Their moments over four million draws, and the law beyond the ziggurat's layers, where another branch draws."""
    count, tail = 4_000_000, 2 * stats.norm.sf(3.442619855899)
    moments, beyond = tab.evaluate(
        """count => {
        const {normal} = flbookLive.search.source(3, "law"), sums = [0, 0, 0, 0, 0, 0], beyond = [];
        for (let i = 0; i < count; i++) {
          const z = normal();
          for (let j = 0, power = z; j < 6; j++, power *= z) sums[j] += power;
          if (Math.abs(z) > 3.442619855899) beyond.push(z);
        }
        return [sums.map(s => s / count), beyond];
    }""",
        count,
    )
    exact, variance = np.array([0, 1, 0, 3, 0, 15]), np.array([1, 2, 15, 96, 945, 10170])
    assert (np.abs(moments - exact) / np.sqrt(variance / count)).max() < 4.5
    assert abs(len(beyond) - count * tail) < 4.5 * np.sqrt(count * tail)
    assert abs(np.sign(beyond).sum()) < 4.5 * np.sqrt(len(beyond))
    assert stats.kstest(np.abs(beyond), lambda x: 1 - 2 * stats.norm.sf(x) / tail).pvalue > 1e-4
    some = tab.evaluate("Array.from({length: 60000}, flbookLive.search.source(5, 'law').normal)")
    assert stats.kstest(some, "norm").pvalue > 1e-4


@pytest.mark.parametrize("degrees", [8, 98, 99_998])
def test_chi_squared_numbers(tab, degrees):
    call = """k => { const {chiSquare} = flbookLive.search.source(4, "law");
      return Array.from({length: 60000}, () => chiSquare(k)); }"""
    drawn = np.array(tab.evaluate(call, degrees))
    assert stats.kstest(drawn, stats.chi2(degrees).cdf).pvalue > 1e-4
    assert abs(drawn.mean() - degrees) < 4.5 * stats.sem(drawn)


def test_the_numbers_of_a_step_and_of_runs_are_apart(tab):
    """The first numbers of 4000 runs: u, p and the rest, and those of the run after."""
    call = """Array.from({length: 4001}, (_, r) => {
      const {u, p, rest} = flbookLive.search.stream(0, "law")(r); return [u(), p(), rest(98)]; })"""
    numbers = np.array(tab.evaluate(call))
    both = np.corrcoef(np.concatenate([numbers[1:], numbers[:-1]], 1).T)[np.triu_indices(6, 1)]
    sizes = np.corrcoef(np.abs(numbers.T - numbers.mean(0)[:, None]))[np.triu_indices(3, 1)]
    assert max(np.abs(both).max(), np.abs(sizes).max()) < 4.5 / np.sqrt(4000)


@pytest.mark.parametrize("k, d", [(1, 50), (2, 50), (3, 20)])
def test_the_runs_have_the_librarys_law(tab, k, d):
    """Six hundred runs drawn in JavaScript against six hundred in Python: speed of the search, time, overlap."""
    like = Setting(link=(k,), d=(d,), seed=tuple(range(600)), time=(0.5, 1.0, 2.0, 8.0))
    theirs = experiment.measure(like).squeeze()
    at = [round(t * d ** power(like, k)) for t in like.time]
    paths, escapes = tab.evaluate(DRAWN, [k, neuron(like, k, d).lr, d**-0.5, d, at, 600])
    reached = np.array(escapes, float)
    pairs = [
        (np.nan_to_num(1 / reached), np.nan_to_num(1 / theirs.escape.values)),
        *zip(np.square(paths).T, np.square(theirs.overlap.values).T, strict=True),
        (reached[~np.isnan(reached)], theirs.escape.values[~np.isnan(theirs.escape.values)]),
    ]
    assert np.isnan(reached).mean() < 0.1
    for ours, other in pairs:
        assert abs(ours.mean() - other.mean()) < 4.5 * np.hypot(stats.sem(ours), stats.sem(other))


def test_it_says_what_is_seen(opened):
    """Numbers that are known, once the runs are through; new runs are others, the same seed gives the same."""
    done = "document.querySelector('.fll').dataset.done"
    said = "document.querySelector('.fll-say').textContent"
    seen = "[...document.querySelectorAll('.fll svg')].map(e => e.outerHTML).join()"
    pictures = []
    for _ in range(2):
        tab = opened("search", link=2, d=1000, lr=1.0)
        tab.wait_for_function(done)
        assert "The equation stops at m = 0.408, the theorem’s order is d log d = 6910." in tab.evaluate(said)
        assert "noise takes away 0.5 times the drift, and random steps add 2.5 times" in tab.evaluate(said)
        pictures.append(tab.evaluate(seen))
    assert pictures[0] == pictures[1]
    tab.click("[name=again]")
    tab.wait_for_function(f"before => {seen} !== before", arg=pictures[0])
    tab.wait_for_function(done)
    assert tab.evaluate(seen) != pictures[0]
    tab = opened("search", link=3, d=100_000)
    tab.wait_for_function(done)
    assert "None of 12 runs reached |m| = ½ in 2·10⁶ samples. The equation says n = 7.6·10⁹" in tab.evaluate(said)
    assert tab.complaints == []
