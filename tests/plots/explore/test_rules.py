"""Six rules on one network: data, steps, decomposition and test law as in the library, and what the figure opens on."""

import numpy as np
import pytest
import torch

from flbook import SignalNoise, TwoLayerCNN, fit, measures, rng
from flbook.dynamics.weights import WeightTraining
from flbook.models.activations import ReLUPower
from flbook.training.optimizers import (
    Adam,
    GradientDescent,
    LabelNoise,
    Momentum,
    SharpnessAware,
    SignDescent,
    Then,
)

NAMES = ("gd", "sam", "noise", "momentum", "adam", "sign")
LENGTH = 20  # of a training run here; SAM takes half of it
FLIPS = 3  # their seed

REPEAT = """([rule, given, options, flips, standard]) => {
  const {Network, Run} = flbookLive.rules;
  const net = new Network({...given, xi: Float64Array.from(given.xi), w: Float64Array.from(given.w)});
  let taken = 0;
  const run = new Run(net, rule, {...options, unit: () => flips[taken++], standard}), rows = [];
  for (let t = 0; t <= options.steps; t++) {
    if ([0, 1, options.steps].includes(t)) {
      const {gamma, rho} = net.decompose(run.w);
      rows.push({w: [...run.w], gamma: [...gamma], rho: [...rho], f: [...net.predict(run.w)],
                 loss: [net.trainLoss(run.w)], fresh: net.fresh(run.w, standard)});
    }
    if (t < options.steps) run.step();
  }
  return {rows, taken};
}"""


def rule_of(name, lr, own, steps=LENGTH, seed=FLIPS):
    """The library's rule of this name."""
    return {
        "gd": lambda: GradientDescent(lr),
        "sam": lambda: Then(SharpnessAware(lr, own), steps // 2, GradientDescent(lr)),
        "noise": lambda: LabelNoise(lr, own, seed=seed),
        "momentum": lambda: Momentum(lr, own, averaged=True),
        "adam": lambda: Adam(lr),
        "sign": lambda: SignDescent(lr),
    }[name]()


def trained(problem, rule, standard, steps=LENGTH):
    """What the library has after no step, one step and all of them."""
    rows = []
    for t in (0, 1, steps):
        params = fit(problem, rule, t).params
        plus, minus = problem.test_outputs(params, standard)
        rows.append(
            {
                "w": params["w"],
                "gamma": problem.signal_learned(params),
                "rho": problem.noise_memorised(params),
                "f": problem.predict(params),
                "loss": problem.train_loss(params),
                "fresh": torch.stack([plus, -minus], -1),
            }
        )
    return rows


def close(ours, theirs, tolerance=1e-8):
    """Equal up to a part of the largest number, since sums are taken in another order."""
    theirs = np.asarray(theirs.detach()).ravel()
    size = max(np.abs(theirs).max(), 1e-300)
    np.testing.assert_allclose(np.array(ours) / size, theirs / size, atol=tolerance, rtol=0)


CASES = {  # n, d, m, |mu|, activation, sigma_0, orthogonal noise, step size by rule
    "as it opens": (20, 200, 5, 1.2, 1, 0.01, True, {}),
    "ReLU squared": (20, 200, 5, 1.2, 2, 0.01, True, dict(gd=0.5, sam=0.5, noise=0.5, momentum=0.5)),
    "least dimension": (20, 40, 5, 5.0, 1, 0.01, True, {}),
    "one filter per sign, large start": (7, 60, 1, 0.5, 2, 0.3, True, {}),
    "large steps": (12, 90, 3, 2.0, 1, 0.01, True, dict(gd=2.0, sam=2.0, noise=2.0, momentum=2.0, adam=0.1, sign=0.02)),
    "noise along the signal": (20, 120, 4, 3.0, 1, 0.05, False, {}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", NAMES)
def test_rules_are_the_librarys(tab, name, case):
    """From the same weights, patches, flips and points: one step, and twenty, and what the figure shows of them."""
    n, d, m, mu, q, sigma_0, orthogonal, lrs = CASES[case]
    data = SignalNoise(n=n, d=d, mu_norm=mu, orthogonal=orthogonal)
    cnn = TwoLayerCNN(d, m, sigma_0, ReLUPower(float(q)), seed=5, dtype=torch.float64)
    sample = data.draw(seed=4)
    problem = WeightTraining(data, sample, cnn)
    lr = lrs.get(name, {"adam": 0.01, "sign": 0.002}.get(name, 0.2))
    own = {"sam": 0.5, "noise": 0.3, "momentum": 0.9}.get(name)
    standard = measures.sobol_normal(64, problem.test_directions)
    flips = [
        torch.rand(n, generator=rng.generator(FLIPS, f"label noise {t}"), dtype=torch.float64) for t in range(LENGTH)
    ]
    given = dict(n=n, d=d, m=m, mu=mu, q=q, xi=sample.xi.ravel().tolist(), w=cnn.w.detach().ravel().tolist())
    options = dict(lr=lr, own=own, steps=LENGTH)
    ours = tab.evaluate(REPEAT, [name, given, options, torch.cat(flips).tolist(), standard.ravel().tolist()])
    assert ours["taken"] == (n * LENGTH if name == "noise" else 0)
    for row, theirs in zip(ours["rows"], trained(problem, rule_of(name, lr, own), standard), strict=True):
        for quantity, values in theirs.items():
            if quantity != "fresh" or orthogonal:  # the figure's fresh noise is orthogonal to the signal
                close(row[quantity], values)
    assert np.abs(np.array(ours["rows"][2]["w"]) - given["w"]).max() > 1e-3  # it moved


def test_rules_at_rest_stay(tab):
    """Where all filters are dead the gradient is zero: no rule divides by it."""
    rows = tab.evaluate(
        """() => Object.keys(flbookLive.rules.RULES).map(rule => {
      const {Network, Run} = flbookLive.rules, n = 4, d = 8, m = 1;
      const xi = new Float64Array(n * d).map((_, at) => at % 9 === 1 ? 1 : 0), w = new Float64Array(2 * m * d);
      const net = new Network({n, d, m, mu: 1, xi, w});
      const run = new Run(net, rule, {lr: 1, own: 0.5, unit: Math.random, standard: []});
      for (let t = 0; t < 5; t++) run.step();
      return [...run.w]; })"""
    )
    assert np.array(rows).shape == (6, 16) and not np.array(rows).any()


def test_rules_draw_the_model(tab):
    """Noise orthogonal to the signal, weights, and flips: means, variances, covariances; a smaller d is a part."""
    draws = np.array(
        tab.evaluate("""() => Array.from({length: 2000}, (_, seed) => {
      const {xi, start} = flbookLive.rules.draw({n: 2, m: 1, d: 50, mu: 1, seed});
      return [xi[1], xi[49], xi[51], xi[99], start[0] * 100, start[50] * 100, start[99] * 100, xi[0], xi[50]]; })""")
    )
    assert not draws[:, 7:].any()
    x = draws[:, :7]
    assert np.abs(x.mean(0)).max() < 4.5 / 2000**0.5
    assert np.abs(x.var(0) - 1).max() < 4.5 * (2 / 2000) ** 0.5
    assert np.abs(np.corrcoef(x.T) - np.eye(7)).max() < 4.5 / 2000**0.5
    draw = """([d]) => {
      const {xi, start} = flbookLive.rules.draw({n: 3, m: 2, d, mu: 1, seed: 1});
      return [[...xi], [...start]]; }"""
    (small, few), (large, many) = tab.evaluate(draw, [50]), tab.evaluate(draw, [400])
    assert np.array_equal(np.reshape(small, (3, 50)), np.reshape(large, (3, 400))[:, :50])
    assert np.array_equal(np.reshape(few, (4, 50)), np.reshape(many, (4, 400))[:, :50])


def test_rules_flip_afresh(tab):
    """Each label in each step on its own, with probability p: seen in the labels that the gradient is asked for."""
    flips = np.array(
        tab.evaluate("""() => {
      const {Run, draw} = flbookLive.rules, net = draw({n: 20, m: 1, d: 40, mu: 1}), asked = [], plain = net.gradient;
      net.gradient = (w, observed, out) => {
        asked.push([...observed].map((s, i) => s * net.y[i] < 0 ? 1 : 0));
        return plain.call(net, w, observed, out);
      };
      const unit = flbookLive.random(0, "flips").uniform;
      const run = new Run(net, "noise", {lr: 0.1, own: 0.3, unit, standard: []});
      for (let t = 0; t < 1000; t++) run.step();
      return asked; }""")
    )
    assert flips.shape == (1000, 20)
    assert abs(flips.mean() - 0.3) < 4.5 * (0.21 / 20_000) ** 0.5
    assert np.abs(flips.mean(0) - 0.3).max() < 4.5 * (0.21 / 1000) ** 0.5
    assert abs(np.corrcoef(flips[:-1].ravel(), flips[1:].ravel())[0, 1]) < 4.5 / 20_000**0.5


def test_rules_differ_where_the_figure_opens(tab):
    """Five draws at the opening settings: the order that the page speaks of is not that of one lucky draw."""
    errors = tab.evaluate("""() => Array.from({length: 5}, (_, seed) => {
      const {Run, RULES, draw} = flbookLive.rules, {random} = flbookLive;
      const net = draw({n: 20, m: 5, d: 200, mu: 1.2, seed});
      const standard = Float64Array.from({length: 10240}, random(seed, "test").normal);
      return Object.fromEntries(Object.entries(RULES).map(([rule, {lr, value}]) => {
        const unit = random(seed, "flips").uniform;
        const run = new Run(net, rule, {lr: lr[0], own: value, steps: 600, unit, standard});
        run.work(1e9);
        return [rule, run.last.error]; })); })""")
    for error in errors:
        assert max(error["sam"], error["noise"]) < 0.05
        assert 0.1 < error["gd"] < 0.3 and abs(error["momentum"] - error["gd"]) < 0.05
        assert min(error["adam"], error["sign"]) > 0.35


SAID = "start => document.querySelector('.fll-say').textContent.startsWith(start)"


def finished(tab):
    tab.wait_for_function("document.querySelector('.fll').dataset.done === '6'")
    return tab.inner_text(".fll-say")


def test_rules_says_what_is_seen(opened):
    tab = opened("rules")
    words = {
        "sam": "SAM keeps the noise down while the signal grows",
        "gd": "Gradient descent has a training loss below 0.1",
        "noise": "Wrong labels keep the training loss from zero",
        "momentum": "Momentum, a mean over about 50 steps,",
        "adam": "Adam has a training loss below 0.1",
        "sign": "Sign descent has a training loss below 0.1",
    }
    for name in NAMES:
        tab.select_option("[name=rule]", name)
        tab.wait_for_function(SAID, arg=words[name])
        assert tab.is_enabled("[name=own]") == (name in ("sam", "noise", "momentum"))
    tab.locator("[data-rule=noise]").first.click()
    tab.wait_for_function(SAID, arg=words["noise"])
    assert tab.input_value("[name=rule]") == "noise" and tab.complaints == []


def test_rules_keeps_what_no_change_concerns(opened):
    """Another rule is a look, not a training; its own number stays when the reader comes back."""
    tab = opened("rules", rule="noise", p=0.1)
    finished(tab)
    assert "0.1" in tab.inner_text("label:has([name=own])")
    tab.select_option("[name=rule]", "sam")
    tab.wait_for_function(SAID, arg="SAM")
    tab.focus("[name=own]")
    tab.keyboard.press("Home")
    tab.wait_for_function(SAID, arg="With r = 0 the rule is gradient descent")
    tab.select_option("[name=rule]", "noise")
    tab.wait_for_function(SAID, arg="Wrong labels")
    assert "0.1" in tab.inner_text("label:has([name=own])") and tab.complaints == []


def test_rules_survives_steps_that_diverge(opened):
    tab = opened("rules", rule="noise", activation="square", factor=10.0)
    assert finished(tab) == "At this step size label noise diverges." and tab.complaints == []
    assert "label noise diverges" in tab.get_attribute(".fll svg >> nth=2", "aria-label")
