"""One and two modalities: training, classifier, rates and the law of the draws as in the contrastive lecture."""

import numpy as np
import pytest
import torch

from flbook import GradientDescent, fit, measures
from flbook.lectures.foundation_models.contrastive import Setting, accuracy, downstream, signal_race
from flbook.lectures.foundation_models.contrastive.paired_training import (
    ONE_MODALITY,
    TWO_MODALITIES,
    ContrastiveTraining,
    drawn_pairs,
)
from flbook.lectures.foundation_models.contrastive.patch_encoder import PatchEncoder
from flbook.lectures.foundation_models.contrastive.two_modalities import TwoModalities
from flbook.lectures.foundation_models.shared.info_nce import InfoNCE, all_others, other_labels

LOSSES = {1: ONE_MODALITY, 2: TWO_MODALITIES}
AT = (0, 1, 30)

REPEAT = """([grams, y, negatives, temperature, lr, at, standard, nu, stretch]) => {
  const {Training} = flbookLive.modalities, given = grams.map(g => ({...g}));
  for (const g of given) for (const k of ["mu_xi", "xi_xi", "w_mu", "w_xi", "w_w"]) g[k] = Float64Array.from(g[k]);
  const lists = negatives.map(list => Int32Array.from(list));
  const net = new Training(given, Float64Array.from(y), lists, temperature), rows = [];
  for (let t = 0; t <= at[at.length - 1]; t++) {
    const keep = at.includes(t), {gamma, rho} = net.largest();
    if (keep) rows.push({mu: net.c_mu.flatMap(c => [...c]), xi: net.c_xi.flatMap(c => [...c]),
      on_mu: net.on_mu.flatMap(z => [...z]), on_xi: net.on_xi.flatMap(z => [...z]), loss: [net.loss],
      weights: [...net.weightGram()], gamma: [gamma], rho: [rho], regression: [...net.regression(stretch)],
      accuracy: net.accuracy(nu, standard, stretch)});
    const before = net.loss, stepped = net.step(lr);
    if (keep) rows[rows.length - 1].stepped = [stepped - before];
  }
  return rows;
}"""


def circulant(n, count, labels):
    """The figure's negatives as a mask: the next `count` samples of the other label, or of any."""
    offsets = range(1, 2 * count, 2) if labels == "other" else range(1, count + 1)
    mask = torch.zeros(n, n, dtype=torch.bool)
    for i in range(n):
        mask[i, [(i + k) % n for k in offsets]] = True
    return mask


def uneven(n):
    """Masks of different lengths; every sample has at least one negative."""
    mask = torch.rand(n, n, generator=torch.Generator().manual_seed(1)) < 0.3
    return (mask | torch.eye(n).roll(1, 1).bool()) & ~torch.eye(n).bool()


CASES = {  # encoders, n, d, m, |mu|, |mu~|, sigma_0, negatives, temperature, step size
    "as it opens, one": (1, 40, 2000, 20, 7.9, 23.7, 1e-3, "other", 1.0, 0.004),
    "as it opens, two": (2, 40, 2000, 20, 7.9, 23.7, 1e-3, "other", 1.0, 0.004),
    "two negatives": (2, 20, 300, 5, 4.0, 2.0, 1e-2, circulant(20, 2, "other"), 1.0, 0.02),
    "any label, one": (1, 20, 300, 7, 5.0, 5.0, 1e-2, circulant(20, 10, "any"), 1.0, 0.02),
    "any label, two": (2, 20, 300, 7, 5.0, 9.0, 1e-2, circulant(20, 10, "any"), 1.0, 0.02),
    "all others, sharp, one": (1, 8, 100, 3, 2.0, 2.0, 0.1, all_others(8), 0.2, 0.005),
    "uneven, large steps, two": (2, 9, 100, 6, 2.0, 6.0, 0.1, uneven(9), 0.5, 0.05),
}


def library(encoders, n, d, m, mu, second, sigma_0, negatives, temperature):
    """A problem of the library's from drawn data, in float64."""
    pairs = TwoModalities(n, d, mu, second).draw(seed=3)
    roles = ("weights", "second weights")[:encoders]
    nets = tuple(PatchEncoder(d, m, sigma_0, seed=5, role=role, dtype=torch.float64) for role in roles)
    old = LOSSES[encoders]
    loss = InfoNCE(temperature, stop_gradient=True, both=old.both, pool=old.pool)
    mask = other_labels(pairs.y) if isinstance(negatives, str) else negatives
    return ContrastiveTraining.of(pairs, nets, loss, mask)


def plain(problem):
    """What JavaScript needs of it."""
    g, grams = problem.gram, []
    for v in range(problem.encoders):
        one = {name: getattr(g, name)[v].ravel().tolist() for name in ("mu_xi", "xi_xi", "w_mu", "w_xi", "w_w")}
        grams.append(one | {"N": g.xi_xi.shape[-1], "mu_mu": float(g.mu_mu[v])})
    return grams, problem.y.tolist(), [row.nonzero()[:, 0].tolist() for row in problem.negatives]


def close(ours, theirs, tolerance=1e-8):
    """Equal up to a part of the largest number, since sums are taken in another order."""
    theirs = np.asarray(theirs.detach()).ravel()
    size = max(np.abs(theirs).max(), 1e-300)
    np.testing.assert_allclose(np.array(ours) / size, theirs / size, atol=tolerance, rtol=0)


@pytest.mark.parametrize("case", CASES)
def test_modalities_train_as_the_librarys(tab, case):
    """From the same Gram matrices, negatives and points: no step, one, and thirty, and what is read of them."""
    encoders, n, d, m, mu, second, sigma_0, negatives, temperature, lr = CASES[case]
    problem = library(encoders, n, d, m, mu, second, sigma_0, negatives, temperature)
    standard, nu, stretch = measures.sobol_normal(128, m), 2.0, 1.3
    given = [*plain(problem), temperature, lr, AT, standard.ravel().tolist(), nu, stretch]
    for t, row in zip(AT, tab.evaluate(REPEAT, given), strict=True):
        params = fit(problem, GradientDescent(lr), t).params
        on_mu, on_xi = problem.preactivations(params)
        sizes = problem.gram.xi_xi[0].diagonal()[:n]
        theirs = {
            "mu": params["mu"],
            "xi": params["xi"],
            "on_mu": on_mu,
            "on_xi": on_xi,
            "loss": problem.train_loss(params),
            "weights": problem.weight_gram(params)[0],
            "gamma": (problem.gram.mu_mu[0] * params["mu"][0]).abs().max(),
            "rho": (params["xi"][0] * sizes).max().clamp(min=0),
            "regression": downstream.logistic_regression(problem.embeddings(params, stretch), problem.y),
        }
        for name, values in theirs.items():
            close(row[name], values)
        assert row["stepped"] == [0]  # a step returns the loss before it
        assert abs(row["accuracy"] - float(accuracy(problem, params, nu, 128, stretch))) <= 1 / 256
    assert np.abs(row["mu"]).max() > 0 and np.abs(row["xi"]).max() > 0  # it moved


def test_modalities_tell_an_accuracy_that_is_neither_chance_nor_one(tab):
    """The accuracy above would agree too easily where it is a half; here it is between."""
    encoders, n, d, m, *rest, lr = CASES["as it opens, one"]
    problem, standard = library(encoders, n, d, m, *rest), measures.sobol_normal(128, m)
    given = [*plain(problem), 1.0, lr, [0], standard.ravel().tolist(), 8.0, 1.0]
    ours, theirs = tab.evaluate(REPEAT, given)[0]["accuracy"], float(accuracy(problem, problem.start(), 8.0, 128))
    assert 0.6 < theirs < 0.97 and abs(ours - theirs) <= 1 / 256


@pytest.mark.parametrize("rows, k, spread", [(30, 4, 0.5), (30, 4, 5.0), (12, 15, 1.0)])
def test_modalities_classify_as_the_library(tab, rows, k, spread):
    """Overlapping classes, separable ones, and more features than samples."""
    draw = torch.Generator().manual_seed(0)
    y = torch.tensor([1.0, -1.0] * (rows // 2), dtype=torch.float64)
    h = (torch.randn(rows, k, generator=draw, dtype=torch.float64) + spread * y[:, None]).relu()
    call = "([h, y]) => [...flbookLive.modalities.logisticRegression(h.map(r => Float64Array.from(r)), y)]"
    close(tab.evaluate(call, [h.tolist(), y.tolist()]), downstream.logistic_regression(h, y))


@pytest.mark.parametrize("negatives, product, lr, n, d", [(50, 25.0, 0.01, 100, 2000), (2, 7.5, 0.3, 40, 500)])
def test_modalities_rates_are_the_librarys(tab, negatives, product, lr, n, d):
    call = """([M, product, lr, n, d]) => {
      const {signalRate, noiseRate} = flbookLive.modalities;
      return [signalRate(product, lr, M), noiseRate(d, n, lr, M)]; }"""
    ours = tab.evaluate(call, [negatives, product, lr, n, d])
    theirs = [
        signal_race.signal_rate(product, lr, negatives),
        signal_race.noise_rate(float(d), n, lr, negatives),
    ]
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("encoders", [1, 2])
@pytest.mark.parametrize("count, labels", [(2, "other"), (10, "other"), (2, "any"), (10, "any")])
def test_modalities_rates_are_those_of_training(tab, encoders, count, labels):
    """The library's network from a start near zero, with the figure's negatives, of which half have the other label."""
    n, lr, steps, law = 20, 0.003, 20, TwoModalities(20, 2000, 5.0, 15.0, orthogonal=True)
    problem = drawn_pairs(law, 10, 1e-9, LOSSES[encoders], encoders, (0,))
    mask = circulant(n, count, labels)
    problem = ContrastiveTraining(problem.gram, problem.y, problem.loss, mask, law=problem.law)

    def mode(params):
        return (problem.preactivations(params)[0] / problem.gram.mu_mu.sqrt()[..., None]).sum(-2)

    grown = mode(fit(problem, GradientDescent(lr), steps).params) / mode(problem.start())
    product, other = 25.0 * (1, 3)[encoders - 1], count // (1 if labels == "other" else 2)
    call = "([...all]) => flbookLive.modalities.signalRate(...all)"
    rate = tab.evaluate(call, [product, lr, count, other])
    np.testing.assert_allclose(np.asarray(grown), (1 + rate) ** steps, rtol=1e-6)
    noise = signal_race.noise_rate(2000.0, n, lr, count)
    border = tab.evaluate("([...all]) => flbookLive.modalities.border(...all)", [count, other])
    pair = n * law.snr * (law.snr, law.second_snr)[encoders - 1]
    assert rate / noise == pytest.approx(pair / border)  # so the border is where the two rates meet


def test_modalities_choose_negatives(tab):
    call = """([n, M, labels]) =>
      flbookLive.modalities.negativesOf(n, M, labels).map(list => [...list].sort((a, b) => a - b))"""
    for n, count, labels in [(8, 1, "other"), (8, 4, "other"), (8, 4, "any"), (40, 20, "any"), (40, 6, "other")]:
        ours, mask = tab.evaluate(call, [n, count, labels]), circulant(n, count, labels)
        assert ours == [row.nonzero()[:, 0].tolist() for row in mask]
        assert (mask.sum(0) == count).all() and not mask.diagonal().any()
    y = torch.tensor([1.0, -1.0] * 4)
    assert torch.equal(circulant(8, 4, "other"), other_labels(y))


def test_modalities_draw_inner_products_of_the_right_law(tab):
    """Means and variances over 4000 draws against their exact values, those of augmented patches among them."""
    d, eps, size, count = 50, 0.5, 0.5, 4000
    draws = np.array(
        tab.evaluate("""() => Array.from({length: 4000}, (_, seed) => {
      const g = flbookLive.modalities.drawGram({n: 2, m: 2, d: 50, start: 0.5 * 50 ** 0.5, eps: 0.5, seed});
      return [g.xi_xi[0], g.xi_xi[1], g.xi_xi[2], g.xi_xi[10], g.xi_xi[3], g.w_xi[0], g.w_xi[2], g.w_w[3], g.w_w[1],
              g.mu_xi[0], g.mu_xi[2], g.w_mu[1]]; })""")
    )
    fat = 1 + eps**2  # variance of a coordinate of an augmented patch
    mean = np.array([d, 0, d, fat * d, 0, 0, 0, size**2 * d, 0, 0, 0, 0])
    var = np.array([2, 1, 2 + eps**2, 2 * fat**2, fat, size**2, size**2 * fat, 2 * size**4, size**4]) * d
    var = np.concatenate([var, [1, fat, size**2]])
    assert np.abs((draws.mean(0) - mean) / np.sqrt(var / count)).max() < 4.5
    assert np.abs((draws.var(0) / var - 1) / np.sqrt(2 / count)).max() < 6
    pairs = [(0, 9), (0, 3), (9, 10), (5, 6)]  # and some of their covariances
    truth = [0, 2 * d, 1, size**2 * d]
    for (i, j), value in zip(pairs, truth, strict=True):
        cov = (draws[:, i] - mean[i]) * (draws[:, j] - mean[j])
        assert abs(cov.mean() - value) < 4.5 * cov.std() / count**0.5, (i, j)


def test_modalities_share_the_first(tab):
    """Both panels see the same first modality and start; the second modality is another draw."""
    same, other = tab.evaluate("""() => {
      const n = 6, m = 3, {first, plain, second} = flbookLive.modalities.drawAll({n, m, d: 100, start: 0.1, seed: 2});
      const part = (g, rows, name) => Array.from({length: rows}, (_, i) => [...g[name].slice(i * g.N, i * g.N + n)]);
      const all = g => JSON.stringify([part(g, n, "xi_xi"), part(g, m, "w_xi"), [...g.mu_xi.slice(0, n)],
        [...g.w_mu], [...g.w_w]]);
      return [all(first) === all(plain) && plain.xi_xi.length === 36 && first.xi_xi.length === 144,
              all(plain) === all(second)]; }""")
    assert same and not other


def test_modalities_one_training_serves_a_diagonal(tab):
    """Accuracy with signals 4 and 9 is that of two signals of length 6, read as if the first were 4 long."""
    one, other, wrong = tab.evaluate("""() => {
      const {drawAll, training, labels, negativesOf, follow} = flbookLive.modalities, n = 20, m = 10, d = 400;
      const drawn = drawAll({n, m, d, start: 0.01, seed: 1});
      const points = Float64Array.from({length: 512 * m}, flbookLive.random(1, "test").normal);
      const run = (mu, second, stretch) => {
        const net = training(drawn, 2, mu, second, labels(n), negativesOf(n, 10, "other"));
        follow(net, 0.02, 60);
        return [net.accuracy(0.5, points, stretch), [...net.regression(stretch)], net.largest().rho];
      };
      return [run(4, 9, 1), run(6, 6, 4 / 6), run(6, 6, 1)]; }""")
    assert one[0] == other[0] and one[2] == pytest.approx(other[2], rel=1e-8)
    np.testing.assert_allclose(one[1], other[1], atol=1e-8)
    assert np.abs(np.array(one[1]) - wrong[1]).max() > 1e-3


def test_modalities_map_has_the_accuracies_of_its_cells(tab):
    """Along a diagonal: what a training at each cell's own two strengths gives."""
    served, direct = tab.evaluate("""() => {
      const {drawAll, training, labels, negativesOf, follow, stepSize, diagonal} = flbookLive.modalities;
      const n = 20, m = 10, d = 200, pair = 3, drawn = drawAll({n, m, d, start: 0.01, seed: 1});
      const strengths = [0.1, 1, 10], y = labels(n), negatives = negativesOf(n, 10, "any");
      drawn.points = Float64Array.from({length: 512 * m}, flbookLive.random(1, "test").normal);
      const alone = strength => {
        const mu = Math.sqrt(strength * d / n);
        const net = training(drawn, 2, mu, pair * d / n / mu, y, negatives);
        follow(net, stepSize(n, d, pair, 0.2), 60);
        return net.accuracy(2, drawn.points);
      };
      const served = diagonal(drawn, d, pair, strengths, y, negatives, {rate: 0.2, steps: 60, nu: 2});
      return [served, strengths.map(alone)]; }""")
    np.testing.assert_allclose(served, direct, atol=1 / 512)
    assert np.ptp(served) > 0.1  # they differ, though the weights are the same


@pytest.mark.parametrize("encoders, pair", [(1, 1.25), (2, 2.5), (2, 1.6)])
def test_modalities_learn_as_the_librarys(tab, encoders, pair):
    """Forty networks drawn in JavaScript against forty drawn in Python: what they learn, and their accuracy."""
    setting = Setting(n=40, m=20, d=(1000,), pair=(pair,), encoders=(encoders,), seed=tuple(range(40)), steps=100)
    problem = setting.problem(encoders, 1000, pair)
    params = fit(problem, GradientDescent(setting.lr(1000)), 100).params
    sizes = problem.gram.xi_xi[:, 0].diagonal(dim1=-2, dim2=-1)[:, :40]
    theirs = np.stack(
        [
            (problem.gram.mu_mu[:, 0, None] * params["mu"][:, 0]).abs().amax(-1),
            (params["xi"][:, 0] * sizes[:, None]).amax((-2, -1)),
            accuracy(problem, params, 2.0, 256),
        ]
    )
    call = """([V, pair, rate]) => Array.from({length: 40}, (_, seed) => {
      const {drawAll, training, labels, negativesOf, follow, stepSize} = flbookLive.modalities;
      const n = 40, m = 20, d = 1000, mu = Math.sqrt(pair * d / n), drawn = drawAll({n, m, d, start: 1e-3, seed});
      const points = Float64Array.from({length: 256 * m}, flbookLive.random(seed, "test").normal);
      const net = training(drawn, V, mu, mu, labels(n), negativesOf(n, 20, "other"));
      const {gamma, rho} = follow(net, stepSize(n, d, pair, rate), 100)[100];
      return [gamma, rho, net.accuracy(2, points)]; })"""
    ours = np.array(tab.evaluate(call, [encoders, pair, setting.noise_rate])).T
    assert (np.abs(ours.mean(1) - theirs.mean(1)) < 4.5 * np.hypot(ours.std(1), theirs.std(1)) / 40**0.5).all()


def test_modalities_theory_meets_the_simulation_in_high_dimension(tab):
    """Ten draws at d = 10⁵: the measured factors of a step, and the dashed lines while the loss has hardly moved."""
    rows = tab.evaluate("""() => Array.from({length: 10}, (_, seed) => [1, 2].map(V => {
      const {drawAll, training, labels, negativesOf, follow, growth, growing} = flbookLive.modalities;
      const {signalRate, noiseRate, stepSize} = flbookLive.modalities, n = 40, m = 20, d = 1e5;
      const mu = Math.sqrt(1.25 * d / n), lr = stepSize(n, d, 3.75, 0.2);
      const drawn = drawAll({n, m, d, start: 1e-3, seed});
      for (const gram of Object.values(drawn)) gram.mu_xi.fill(0); // or noise leaks into a signal that stays small
      const net = training(drawn, V, mu, 3 * mu, labels(n), negativesOf(n, 20, "other"));
      const {signal, noise} = growing(net), rows = follow(net, lr, 60);
      const t = rows.findIndex(q => q.loss < 0.98 * rows[0].loss) - 1;
      const rates = [signalRate((V === 1 ? 1 : 3) * mu * mu, lr, 20), noiseRate(d, n, lr, 20)];
      const line = (big, rate) => big * ((1 + rate) ** t - 1);
      return [growth(rows, "gamma") / (1 + rates[0]), growth(rows, "rho") / (1 + rates[1]),
              rows[t].gamma / line(signal, rates[0]), rows[t].rho / line(noise, rates[1])]; }))""")
    rows = np.array(rows)
    assert np.abs(rows[:, :, 0] - 1).max() < 0.01 and np.abs(rows[:, :, 1] - 1).max() < 0.02
    assert np.abs(rows[:, :, 2] - 1).max() < 0.1 and np.abs(rows[:, :, 3] - 1).max() < 0.35


SAID = "words => document.querySelector('.fll-say').textContent.includes(words)"


def test_modalities_says_what_is_seen(opened):
    tab = opened("modalities")
    said = tab.inner_text(".fll-say")
    assert said.startswith("One modality memorised noise") and "two modalities learned the signal" in said
    assert "if C·n·SNR² > 2; it is 3.75" in said
    tab.select_option("[name=labels]", "any")
    tab.wait_for_function(SAID, arg="if C·n·SNR² > 4; it is 3.75")
    tab.select_option("[name=labels]", "other")
    tab.focus("[name=n_snr2]")
    tab.keyboard.press("End")
    tab.wait_for_function(SAID, arg="One modality learned the signal")
    tab.focus("[name=ratio]")
    tab.keyboard.press("Home")
    tab.wait_for_function(SAID, arg="if C·n·SNR² > 2; it is 2")
    assert tab.complaints == []


def test_modalities_fills_the_map_and_a_click_moves_on_it(opened):
    """The middle of the map is n SNR² = 1 and C = 2; bright above the border, dark below it."""
    tab = opened("modalities")
    tab.wait_for_function("document.querySelector('.fll').dataset.cells === '144'", timeout=120_000)
    fills = tab.evaluate("[...document.querySelectorAll('.fll svg')][2].querySelectorAll('rect').length")
    colour = """at => document.querySelectorAll('.fll svg')[2].querySelectorAll('rect')[at].getAttribute('fill')
      .match(/\\d+/g).map(Number)"""
    dark, bright = tab.evaluate(colour, 12 * 2 + 2), tab.evaluate(colour, 12 * 9 + 9)
    assert fills == 144 and dark[0] < 80 and dark[2] > 70 and bright[0] > 180 and bright[2] < 80
    box = tab.locator(".fll svg").nth(2).bounding_box()
    x, y = (38 + 260 - 8) / 2 / 260 * box["width"], (8 + 190 - 38) / 2 / 190 * box["height"]
    tab.mouse.click(box["x"] + x, box["y"] + y)
    for name, value in (("n_snr2", 1), ("ratio", 2)):
        assert 10 ** float(tab.input_value(f"[name={name}]")) == pytest.approx(value, rel=0.05), name
    assert tab.complaints == []
