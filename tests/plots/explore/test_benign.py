"""Benign or harmful: the two-layer network in coefficients, as the library trains it."""

import numpy as np
import pytest
import torch

from flbook import GradientDescent, SignalNoise, TwoLayerCNN, fit, measures, rivals
from flbook.data.signal_noise import flipped_labels
from flbook.dynamics import GramTraining, draw_gram
from flbook.lectures.benign_overfitting import relu_heatmap
from flbook.shapes import Quantity

AT = [0, 1, 3, 10, 30, 100, 300, 600]


REPEAT = """([given, y, observed, standard, lr, at, model]) => {
  const {Network} = flbookLive.benign, gram = {...given};
  for (const name of ["mu_xi", "xi_xi", "w_mu", "w_xi", "w_w"]) gram[name] = Float64Array.from(given[name]);
  const net = new Network(gram, {y: Float64Array.from(y), observed: Float64Array.from(observed)}, {model}), rows = [];
  for (let t = 0; t <= at[at.length - 1]; t++) {
    if (at.includes(t)) rows.push({gamma: net.gamma, rho: net.rho, f: [...net.f], weights: [...net.weightGram()[0]],
                                   fresh: net.fresh(standard)});
    net.step(lr);
  }
  return rows;
}"""


def library(n, m, d, mu, p, seed, model, direct):
    """flbook's run, and what JavaScript needs to repeat it."""
    if direct:
        data = SignalNoise(n=n, d=d, mu_norm=mu, flip_prob=p)
        cnn = TwoLayerCNN(d, m, sigma_0=1e-6, seed=seed, dtype=torch.float64)
        problem = GramTraining.of(data, data.draw(seed), cnn)
    else:
        gram = draw_gram(n, 2 * m, d, sigma_0=1e-8, seed=seed).with_signals(torch.tensor([mu], dtype=torch.float64))
        axes = (0, 1, 2, 1, 2, 2, 1)  # of a single ensemble member
        parts = [part[0] if part.ndim > own else part for part, own in zip(gram, axes, strict=False)]
        gram = type(gram)(*parts)
        problem = GramTraining(gram, *flipped_labels(n, p, seed), scale=1 / m)
    problem = problem if model == "network" else rivals.rival(problem, model)
    standard = measures.sobol_normal(256, problem.test_directions)
    quantities = [
        Quantity("gamma", lambda c: problem.signal_learned(c).flatten(-2), ("k",)),
        Quantity("rho", lambda c: problem.noise_memorised(c).flatten(-3), ("kn",)),
        Quantity("f", problem.predict, ("n",)),
        Quantity("weights", lambda c: problem.weight_gram(c).flatten(-2), ("kk",)),
        Quantity(
            "fresh",
            lambda c: torch.stack([(out := problem.test_outputs(c, standard))[0], -out[1]], -1).flatten(),
            ("points",),
        ),
    ]
    lr = n * m / d
    history = fit(problem, GradientDescent(lr), AT[-1], quantities, at=AT).history
    g = problem.gram
    given = {name: np.asarray(getattr(g, name)).ravel().tolist() for name in ("mu_xi", "xi_xi", "w_mu", "w_xi", "w_w")}
    return given | {"n": n, "k": 2 * m, "mu_mu": float(g.mu_mu)}, problem, standard, lr, history


@pytest.mark.parametrize(
    "case",
    [
        (20, 10, 2000, 1.5, 0.1, 0, "network", True),
        (20, 10, 2000, 9.0, 0.1, 1, "network", True),
        (50, 4, 800, 5.0, 0.2, 2, "network", True),
        (20, 10, 2000, 3.0, 0.1, 3, "linear", True),
        (20, 10, 2000, 3.0, 0.1, 3, "lazy", True),
        (100, 10, 1_000_000, 12.0, 0.3, 4, "network", False),
    ],
    ids=str,
)
def test_benign_is_the_librarys_training(tab, case):
    """From the same Gram matrices and the same points; the last digits are those of sums in another order."""
    given, problem, standard, lr, history = library(*case)
    y, observed, points = problem.y.tolist(), problem.observed.tolist(), standard.ravel().tolist()
    rows = tab.evaluate(REPEAT, [given, y, observed, points, lr, AT, case[6]])
    for name in ("gamma", "rho", "f", "weights", "fresh"):
        ours = np.array([np.atleast_1d(row[name]) for row in rows])
        theirs = history[name].values.reshape(ours.shape)
        size = np.abs(theirs).max(axis=1, keepdims=True)
        np.testing.assert_allclose(ours / np.maximum(size, 1e-300), theirs / np.maximum(size, 1e-300), atol=1e-8)
    assert abs(np.mean(np.array(rows[-1]["fresh"]) <= 0) - np.mean(history.fresh.values[-1] <= 0)) <= 1 / 512


def test_benign_draws_inner_products_of_the_right_law(tab):
    """Means and variances over 4000 draws against their exact values."""
    draws = np.array(
        tab.evaluate("""() => Array.from({length: 4000}, (_, seed) => {
      const g = flbookLive.benign.drawGram({n: 4, m: 1, d: 50, sigma_0: 0.5, seed});
      return [g.xi_xi[0], g.xi_xi[1], g.w_xi[0], g.w_w[3], g.mu_xi[0], g.w_mu[1], g.xi_xi[15]]; })""")
    )
    mean, var = np.array([50, 0, 0, 12.5, 0, 0, 50]), np.array([100, 50, 12.5, 6.25, 1, 0.25, 100])
    assert np.abs((draws.mean(0) - mean) / np.sqrt(var / 4000)).max() < 4.5
    assert np.abs((draws.var(0) / var - 1) / np.sqrt(2 / 4000)).max() < 6


@pytest.mark.parametrize("d, mu", [(2000, 3.0), (128_000, 9.0)])
def test_benign_errs_as_the_library_does(tab, d, mu):
    """A hundred networks drawn in JavaScript against a hundred drawn in Python, at the same cell."""
    like = relu_heatmap.Setting(n=(20,), d=(d,), mu=(mu,), seed=tuple(range(100)), lr=d / (d + 20 * mu**2))
    theirs = relu_heatmap.experiment.measure(like).test_error.values.ravel()
    call = f"flbookLive.benign.train({{n: 20, m: 10, d: {d}, mu: {mu}, p: 0.1, seed}}).rows[0].testError"
    ours = np.array(tab.evaluate(f"() => Array.from({{length: 100}}, (_, seed) => {call})"))
    assert abs(ours.mean() - theirs.mean()) < 4 * np.hypot(ours.std(), theirs.std()) / 10


def test_benign_a_click_on_the_map_asks_for_what_stands_there(opened):
    """The middle of the cells, which leave room for words on their left and below, is d = 10⁴ and |μ| = 10."""
    tab = opened("benign")
    box = tab.locator(".fll canvas").bounding_box()
    x, y = (38 + 260 - 8) / 2 / 260 * box["width"], (8 + 190 - 38) / 2 / 190 * box["height"]
    tab.mouse.click(box["x"] + x, box["y"] + y)
    for name, decades in (("d", 4), ("mu", 1)):
        now = tab.evaluate(f"+document.querySelector('[name={name}]').value")
        assert now == pytest.approx(decades, abs=0.03 + 0.05 * (name == "d")), name
