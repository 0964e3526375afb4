"""One gradient step: data, step, spectrum, ridge regression and theory as in the library and the lecture."""

import numpy as np
import pytest
import scipy.special
import torch

from flbook.data import SingleIndex
from flbook.estimators import ridge
from flbook.lectures.representation import kernels_and_one_step as lecture
from flbook.models import RandomFeatures, activations, kernels
from flbook.theory import one_step

NAMESPACE = "flbookLive.one_step"
LAM = lecture.Setting().lam
LINKS = {
    "erf": (torch.erf, scipy.special.erf),
    "tanh": (torch.tanh, np.tanh),
    "even": (lambda z: (z**2 - 1) / 2**0.5, lambda z: (z**2 - 1) / 2**0.5),
}
ERF = one_step.parts(scipy.special.erf)
Z = np.arange(-3600, 3601) / 400  # nodes and weights of a standard normal mean, fine enough for steep neurons
WEIGHT = np.exp(-(Z**2) / 2) / np.exp(-(Z**2) / 2).sum()


# -- eigenvalues


def rotation(size, seed):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((size, size)))[0]


def matrices():
    """Symmetric matrices that a solver may stumble over."""
    rng = np.random.default_rng(0)
    wishart = rng.standard_normal((96, 60))
    low = rng.standard_normal((40, 3))
    q = rotation(30, 1)
    twice = np.repeat([0.0, 0.0, 1.0, 1.0, 5.0], 6)
    tiny = np.diag(np.arange(6.0)) + 1e-15 * np.ones((6, 6))
    clement = np.sqrt(np.arange(1, 40) * np.arange(39, 0, -1.0))
    yield "one", np.array([[-3.0]])
    yield "two", np.array([[1.0, 2.0], [2.0, 1.0]])
    yield "zero", np.zeros((7, 7))
    yield "identity", np.eye(9)
    yield "diagonal, not in order", np.diag([3.0, -1.0, 3.0, 0.0, 2.0])
    yield "Wishart", wishart.T @ wishart / 60
    yield "rank 3 of 40", low @ low.T
    yield "eigenvalues six times each", (q * twice) @ q.T
    yield "one spike in a million", np.eye(25) + 1e6 * np.outer(q[0, :25], q[0, :25])
    yield "tiny coupling", tiny
    yield "scales from 1e-12 to 1", (q * np.geomspace(1e-12, 1, 30)) @ q.T
    yield "two blocks", np.block([[np.ones((3, 3)), np.zeros((3, 4))], [np.zeros((4, 3)), 2 * np.ones((4, 4))]])
    yield "tridiagonal, eigenvalues -39, -37 .. 39", np.diag(clement, 1) + np.diag(clement, -1)
    yield "size 1e150", 1e150 * np.array([[2.0, 1.0, 0.5], [1.0, 2.0, 1.0], [0.5, 1.0, 2.0]])


@pytest.mark.parametrize("a", [pytest.param(a, id=name) for name, a in matrices()])
def test_eigenvalues_are_numpys(tab, a):
    """And so is the squared first coordinate: for each group of equal eigenvalues, within which vectors are free."""
    call = f"([a, size]) => {{ const s = {NAMESPACE}.spectrum(a, size); return [[...s.values], [...s.overlaps]]; }}"
    values, overlaps = np.array(tab.evaluate(call, [a.ravel().tolist(), len(a)]))
    expected, vectors = np.linalg.eigh(a)
    size = max(np.abs(expected).max(), 1e-300)
    np.testing.assert_allclose(values / size, expected / size, atol=1e-13)
    group = np.cumsum(np.diff(expected, prepend=expected[0]) > 1e-6 * size)
    first = np.bincount(group, vectors[0] ** 2)
    np.testing.assert_allclose(np.bincount(group, overlaps), first, atol=1e-8)
    assert overlaps.sum() == pytest.approx(1, abs=1e-12)


def test_the_error_function(tab):
    z = np.concatenate([np.linspace(-7, 7, 4001), [0.0, 1e-300, -1e-9, 5.999999, 6.0, 1e9, -np.inf]])
    ours = np.array(tab.evaluate(f"z => z.map({NAMESPACE}.erf)", z[:-1].tolist()))
    np.testing.assert_allclose(ours, scipy.special.erf(z[:-1]), atol=5e-12)
    assert tab.evaluate(f"() => {NAMESPACE}.erf(-Infinity)") == -1


# -- theory


@pytest.mark.parametrize("name", LINKS)
def test_parts_of_a_function(tab, name):
    got = tab.evaluate(f"name => {NAMESPACE}.parts({NAMESPACE}.LINKS[name])", name)
    np.testing.assert_allclose([got["mu_0"], got["mu_1"], got["mu_2"]], one_step.parts(LINKS[name][1]), atol=1e-10)


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("psi_1, psi_2, noise", [(8.0, 2.0, 0.1), (0.25, 1.0, 0.0), (3.0, 3.0, 1.0)])
def test_spike_and_threshold(tab, name, psi_1, psi_2, noise):
    """From far below the threshold to far above, and on both sides of it."""
    target = one_step.parts(LINKS[name][1])
    critical = one_step.spike_threshold(psi_1, psi_2, ERF, target, noise)
    eta = [0.0, 0.01, 0.999 * critical, 1.001 * critical, 3.0, 25.0, 1e4]
    call = f"""([name, etas, ...rest]) => {{
      const {{parts, LINKS, spike, spikeThreshold}} = {NAMESPACE}, [psi_1, psi_2, noise] = rest;
      const sigma = parts(LINKS.erf), target = parts(LINKS[name]);
      const seen = etas.map(eta => Object.values(spike(eta, psi_1, psi_2, sigma, target, noise)));
      return [spikeThreshold(psi_1, psi_2, sigma, target, noise), seen]; }}"""
    threshold, seen = tab.evaluate(call, [name, eta, psi_1, psi_2, noise])
    assert threshold == pytest.approx(critical, rel=1e-8)
    expected = one_step.spike(np.array(eta), psi_1, psi_2, ERF, target, noise)
    np.testing.assert_allclose(np.array(seen).T, expected, atol=1e-8, rtol=1e-8)


@pytest.mark.parametrize("psi_2", [1.0, 1.5, 2.0, 3.0])
def test_density_of_the_bulk(tab, psi_2):
    s = np.linspace(0, 3, 301)
    ours = tab.evaluate(f"([s, psi_2]) => s.map(x => {NAMESPACE}.bulkDensity(x, psi_2))", [s.tolist(), psi_2])
    np.testing.assert_allclose(ours, one_step.bulk_density(s, psi_2), atol=1e-8)


# -- the step, from the library's draws

REPEAT = f"""([x, y, w, a, fresh, labels, size, eta, lam, name, xi]) => {{
  const here = {NAMESPACE}, flat = numbers => Float64Array.from(numbers), target = here.LINKS[name];
  const first = {{x: flat(x), y: flat(y)}}, second = {{x: flat(fresh), y: flat(labels)}};
  const net = {{w: flat(w), a: flat(a)}};
  const step = here.direction(first, net, size), after = here.moved(net.w, step, eta);
  const {{squares, overlaps}} = here.spectra(net.w, step, size)(eta), slopes = here.slopes(after, size);
  const layers = here.ridge(after, second, size, lam), parts = [here.LINKS.erf, target].map(here.parts);
  return {{step: [...step], after: [...after], squares: [...squares], overlaps: [...overlaps],
    layers: layers.map(layer => [...layer]), risks: here.risks(after, layers, target, size),
    profile: layers.map(layer => xi.map(here.profile(slopes, layer))),
    equivalent: here.gaussianEquivalentRisk(lam, size.n, size.width, squares, overlaps, ...parts, size.noise)}};
}}"""

CASES = {
    "as it opens": (80, 640, 160, 25.0, "erf", 0.1),
    "no step": (24, 96, 48, 0.0, "erf", 0.1),
    "odd sizes": (13, 51, 27, 3.0, "tanh", 0.1),
    "fewer samples than dimensions": (32, 8, 48, 100.0, "erf", 0.1),
    "as many samples as neurons": (30, 60, 60, 5.0, "erf", 0.1),
    "as many neurons as dimensions": (21, 40, 21, 10.0, "even", 0.0),
    "one sample": (6, 1, 9, 2.0, "tanh", 0.1),
    "a step that saturates every neuron": (16, 64, 32, 1e4, "tanh", 0.5),
    "an even target": (40, 160, 80, 30.0, "even", 0.1),
}


@pytest.mark.parametrize("d, n, width, eta, name, noise", CASES.values(), ids=CASES)
def test_step_and_ridge_are_the_librarys(tab, d, n, width, eta, name, noise):
    """From the same numbers: gradient, spectrum, second layers of every ridge, exact risk, Gaussian equivalent."""
    link, values = LINKS[name]
    model = SingleIndex(n, d, link, noise)
    first, fresh = model.draw(3, "first"), model.draw(3, "fresh")
    net = RandomFeatures.draw(d, width, activations.erf, 3)
    gradient = net.gradient(first.x, first.y)
    after = net.moved(gradient, eta)
    squares, overlaps = (part.numpy() for part in after.spectrum(model.direction))
    layers = ridge(after.features(fresh.x), fresh.y, LAM)

    xi = np.linspace(-2.5, 2.5, 11)
    size = {"d": d, "n": n, "width": width, "noise": noise}
    numbers = (part.ravel().tolist() for part in (first.x, first.y, net.w, net.a, fresh.x, fresh.y))
    ours = tab.evaluate(REPEAT, [*numbers, size, eta, LAM, name, xi.tolist()])

    def equal(got, expected, tol=1e-8):
        got, expected = np.asarray(got).ravel(), np.asarray(expected).ravel()
        np.testing.assert_allclose(got, expected, atol=tol * np.abs(expected).max())

    equal(ours["step"], -(width**0.5) * gradient)
    equal(ours["after"], after.w)
    equal(ours["squares"], squares)
    np.testing.assert_allclose(ours["overlaps"], overlaps, atol=1e-8)
    equal(ours["layers"], layers)

    slope, length = after.w[:, 0].numpy(), after.w[:, 1:].norm(dim=-1).numpy()
    mean = scipy.special.erf(xi[:, None] * slope / np.sqrt(1 + 2 * length**2))
    equal(ours["profile"], layers.numpy() @ mean.T / width**0.5)
    if eta < 1e3:  # that formula by quadrature over the other directions, where it can follow
        mean = scipy.special.erf(xi[:, None, None] * slope[:, None] + length[:, None] * Z) @ WEIGHT
        equal(ours["profile"], layers.numpy() @ mean.T / width**0.5)
    if name == "erf":
        equal(ours["risks"], kernels.erf_risk(after, layers, model.direction))
    else:
        along = scipy.special.erf(Z[:, None] * slope / np.sqrt(1 + 2 * length**2)) @ layers.numpy().T / width**0.5
        square = torch.einsum("lj,jk,lk->l", layers, kernels.arcsine(after.w, after.w), layers).numpy() / width
        equal(ours["risks"], square - 2 * WEIGHT * values(Z) @ along + WEIGHT @ values(Z) ** 2)
    expected = one_step.gaussian_equivalent_risk(LAM, n, width, squares, overlaps, ERF, one_step.parts(values), noise)
    equal(ours["equivalent"], expected)


def test_exact_risk_is_that_of_test_points(tab):
    """For a tanh target the library has no closed form: against its test points, within 4.5 standard errors."""
    d, width, n = 24, 48, 192
    model = SingleIndex(n, d, torch.tanh, 0.1)
    first, fresh = model.draw(0, "first"), model.draw(0, "fresh")
    net = RandomFeatures.draw(d, width, activations.erf, 0)
    after = net.step(first.x, first.y, 10.0)
    layers = ridge(after.features(fresh.x), fresh.y, LAM)
    size = {"d": d, "n": n, "width": width, "noise": 0.1}
    numbers = [part.ravel().tolist() for part in (first.x, first.y, net.w, net.a, fresh.x, fresh.y)]
    ours = tab.evaluate(REPEAT, [*numbers, size, 10.0, LAM, "tanh", [0.0]])["risks"]
    test = model.draw_test(100_000)
    errors = (torch.einsum("pk,lk->lp", after.features(test.x), layers) - test.target).square()
    assert ((torch.tensor(ours) - errors.mean(-1)).abs() / (errors.std(-1) / 100_000**0.5)).max() < 4.5


# -- what is drawn at random


def test_draws_have_the_law_of_the_model(tab):
    """Means, variances and covariances over 3000 networks and samples, each with its exact value."""
    call = f"""() => Array.from({{length: 3000}}, (_, seed) => {{
      const {{drawSample, drawNetwork, LINKS}} = {NAMESPACE}, size = {{d: 4, n: 3, width: 8, noise: 0.5}};
      const net = drawNetwork(size, seed), first = drawSample(size, seed, "first", LINKS.tanh);
      const fresh = drawSample(size, seed, "fresh", LINKS.tanh);
      const noise = ({{x, y}}, i) => y[i] - Math.tanh(x[4 * i]);
      return [net.w[0], net.w[31], net.a[0], net.a[7], first.x[0], first.x[11], fresh.x[0],
        noise(first, 0), noise(fresh, 2), noise(first, 1)];
    }})"""
    draws = np.array(tab.evaluate(call))
    variance = np.array([1 / 4, 1 / 4, 1 / 8, 1 / 8, 1, 1, 1, 0.25, 0.25, 0.25])
    standard = draws / np.sqrt(variance)
    assert np.abs(standard.mean(0)).max() < 4.5 / 3000**0.5
    second = standard.T @ standard / 3000 - np.eye(10)
    error = np.sqrt((1 + np.eye(10)) / 3000)
    assert np.abs(second / error).max() < 4.5
    assert np.abs((standard**4).mean(0) - 3).max() < 4.5 * (96 / 3000) ** 0.5


@pytest.mark.parametrize("psi_1, eta", [(4.0, 3.0), (6.0, 12.0)])
def test_networks_learn_as_the_librarys_do(tab, psi_1, eta):
    """Sixty networks drawn in JavaScript against sixty drawn in Python: spike, overlap, risk, Gaussian equivalent."""
    setting = lecture.Setting(psi_1=(psi_1,), eta=(eta,), seed=tuple(range(60)), d=32)
    measured, spectra = lecture.experiment.measure(setting).min("lam"), lecture.spectra(setting)
    theirs = [spectra.singular_value.isel(k=-1), spectra.overlap, measured.risk, measured.equivalent]
    theirs = np.array([part.values.ravel() for part in theirs])
    call = f"""([psi_1, eta]) => Array.from({{length: 60}}, (_, seed) => {{
      const {{sizes, prepare, train}} = {NAMESPACE}, ready = prepare(sizes({{d: 32, psi_1, psi_2: 2}}), "erf", seed);
      const r = train(ready, eta);
      return [r.singular[31], r.overlap, r.risk, r.equivalent]; }})"""
    ours = np.array(tab.evaluate(call, [psi_1, eta])).T
    error = np.hypot(ours.std(1), theirs.std(1)) / 60**0.5
    assert (np.abs(ours.mean(1) - theirs.mean(1)) / error).max() < 4.5


# -- the figure


def said(tab):
    return tab.inner_text(".fll-say")


def test_it_says_what_is_seen(opened):
    """As it opens, below the threshold, and with a target that the step cannot see."""
    tab = opened("one_step")
    assert "640 = 8d" in tab.inner_text(".fll-bar") and "25 = 2√N" in tab.inner_text(".fll-bar").replace("\xa0", " ")
    target = one_step.parts(scipy.special.erf)
    limit = one_step.spike(25.0, 8.0, 2.0, ERF, target, 0.1)
    assert f"(theory {float(limit.singular_value):.3g})" in said(tab)
    assert f"(theory {float(limit.overlap):.2f})" in said(tab)
    assert "below the linear floor 0.0401" in said(tab)

    def move(name, key, expected):
        assert expected not in said(tab)
        tab.focus(f"[name={name}]")
        tab.keyboard.press(key)
        tab.wait_for_function(f"document.querySelector('.fll-say').textContent.includes('{expected}')")

    move("eta", "Home", "the edge of the bulk")
    assert "above the linear floor" in said(tab) and "(theory 0.00)" in said(tab)
    move("eta", "End", "beyond the bulk’s edge")
    tab.select_option("[name=link]", "even")
    tab.wait_for_function("document.querySelector('.fll-say').textContent.includes('floor 1;')")
    assert "(theory 0.00)" in said(tab)
    before = said(tab)
    tab.click("[name=again]")
    tab.wait_for_function("before => document.querySelector('.fll-say').textContent !== before", arg=before)
    assert tab.complaints == []
