"""Live figures: their JavaScript is the library's mathematics; they open in silence, and keys alone are enough."""

import json
import re

import numpy as np
import pytest
import torch

from flbook import SignalNoise, TwoLayerCNN, fit, gradient_descent, measures, plots, rivals
from flbook.data.signal_noise import flipped_labels
from flbook.dynamics import GramTraining, draw_gram
from flbook.lectures.benign_overfitting import relu_heatmap
from flbook.plots import explore
from flbook.shapes import Quantity

PAGE = """<!doctype html><html lang="en" data-theme="{theme}"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>Live</title>
<style>body{{margin:0;padding:8px;background:{ground}}}</style></head><body><main><h1>Live</h1>{body}</main></body></html>"""
AT = [0, 1, 3, 10, 30, 100, 300, 600]


@pytest.fixture(scope="module")
def tab(chromium):
    """A page that knows every live figure's mathematics."""
    tab = chromium.new_page()
    tab.goto("about:blank")
    for name in ("core", *explore.FIGURES):
        tab.evaluate(explore.script(name))
    yield tab
    tab.close()


@pytest.fixture
def opened(chromium, tmp_path, monkeypatch):
    """A function that shows a figure as a page would, opens it, and keeps what it complains of and asks for."""
    outputs = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw, metadata: outputs.append((data, metadata)))
    tabs = []

    def open_figure(name, width=1280, theme="light", **given):
        fig = plots.panels(1)[0]
        plots.live(name, fig, alt="A still picture of the figure", **given)
        path = tmp_path / f"{name}.html"
        ground = {"light": "#fff", "dark": "#121417"}[theme]
        path.write_text(PAGE.format(theme=theme, ground=ground, body=outputs[-1][0]["text/html"]))
        tab = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
        tabs.append(tab)
        tab.complaints, tab.asked = [], []
        tab.on("console", lambda m: tab.complaints.append(m.text) if m.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
        ours = ("file:", "data:", "blob:")
        tab.on("request", lambda r: None if r.url.startswith(ours) else tab.asked.append(r.url))
        tab.goto(path.as_uri())
        tab.wait_for_function("document.querySelector('.fll-say')?.textContent.length > 20")
        return tab

    yield open_figure
    for tab in tabs:
        tab.close()


@pytest.mark.parametrize("name", explore.FIGURES)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_it_opens_in_silence_and_fits(opened, name, width, theme):
    tab = opened(name, width, theme)
    assert tab.complaints == [] and tab.asked == []
    assert tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    small = "[...document.querySelectorAll('.fll :is(button, select, input)')].filter(e => e.offsetHeight < 24).length"
    assert tab.evaluate(small) == 0, "targets of at least 24 px"
    unnamed = "[...document.querySelectorAll('.fll :is(svg, canvas)')].filter(e => !e.ariaLabel).length"
    assert tab.evaluate(unnamed) == 0, "every picture says what it shows"


@pytest.mark.parametrize("name", explore.FIGURES)
def test_keys_alone_are_enough(opened, name):
    tab = opened(name, 360)
    order = tab.evaluate("[...document.querySelectorAll('.fll :is(button, select, input, canvas, [tabindex])')].length")
    for _ in range(order):
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.closest('.fll') !== null")
    drawn = "[...document.querySelectorAll('.fll :is(svg, .fll-say)')].map(e => e.outerHTML).join()"
    sliders = tab.evaluate("[...document.querySelectorAll('.fll input[type=range]')].map(e => e.name)")
    for slider in sliders:
        before = tab.evaluate(drawn)
        tab.focus(f"[name={slider}]")
        end = "max" if tab.input_value(f"[name={slider}]") != tab.get_attribute(f"[name={slider}]", "max") else "min"
        tab.keyboard.press({"max": "End", "min": "Home"}[end])
        tab.wait_for_function(f"before => {drawn} !== before", arg=before)
    assert tab.complaints == []


@pytest.mark.parametrize("name", explore.FIGURES)
def test_a_change_is_seen_at_once(opened, name):
    """The middle of ten changes takes less than a tenth of a second, on a machine that may be busy."""
    tab = opened(name)
    slider = tab.evaluate("document.querySelector('.fll input[type=range]').name")
    times = tab.evaluate(
        """async name => {
        const input = document.querySelector(`[name=${name}]`), box = input.closest(".fll"), times = [];
        for (let k = 0; k < 10; k++) {
          input.value = +input.min + (k % 2 ? 0.25 : 0.3) * (input.max - input.min);
          const begin = performance.now();
          box.dispatchEvent(new Event("input"));
          input.dispatchEvent(new Event("input", {bubbles: true}));
          await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
          times.push(performance.now() - begin);
        }
        return times;
    }""",
        slider,
    )
    assert sorted(times)[5] < 400


@pytest.mark.parametrize("name", explore.FIGURES)
def test_its_weight(name):
    assert len((explore.script("core") + explore.script(name)).encode()) <= 40_000  # bytes, uncompressed
    assert "</script" not in explore.script(name) + explore.script("core")
    assert not re.search(r"https?://", explore.script(name) + explore.script("core"))


def test_the_still_picture_stands_where_no_script_runs(monkeypatch):
    outputs = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw, metadata: outputs.append((data, metadata)))
    for _ in range(2):
        plots.live("benign", plots.panels(1)[0], alt='Errors "above" the line', d=500)
    (data, metadata), (again, _) = outputs
    assert data == again and metadata["flbook"] == {"alt": 'Errors "above" the line', "live": "benign"}
    assert f'<img class="dark-light" src="data:image/png;base64,{data["image/png"]}"' in data["text/html"]
    assert json.dumps({"d": 500}) in data["text/html"]


@pytest.mark.parametrize(
    "name, changes, said",
    [
        ("malign", {}, "live: there is no figure 'malign'; there are benign"),
        ("benign", dict(steeps=3), "the figure 'benign' has no setting 'steeps'; did you mean 'steps'"),
        ("benign", dict(alt=" "), "live: alt is empty"),
    ],
)
def test_mistakes(name, changes, said):
    with pytest.raises(ValueError, match=said):
        plots.live(name, plots.panels(1)[0], **{"alt": "words", **changes})


# ---- benign: the two-layer network in coefficients

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
    standard = measures.even_normal(256, problem.test_directions)
    quantities = [
        Quantity("gamma", lambda c: measures.signal_learning(problem, c).flatten(-2), ("k",)),
        Quantity("rho", lambda c: measures.noise_memorization(problem, c).flatten(-3), ("kn",)),
        Quantity("f", problem.predict, ("n",)),
        Quantity("weights", lambda c: problem.weight_gram(c).flatten(-2), ("kk",)),
        Quantity(
            "fresh",
            lambda c: torch.stack([(out := problem.test_outputs(c, standard))[0], -out[1]], -1).flatten(),
            ("points",),
        ),
    ]
    lr = n * m / d
    history = fit(problem, gradient_descent(lr), AT[-1], quantities, at=AT).history
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
    theirs = relu_heatmap.measure(like).test_error.values.ravel()
    call = f"flbookLive.benign.train({{n: 20, m: 10, d: {d}, mu: {mu}, p: 0.1, seed}}).rows[0].testError"
    ours = np.array(tab.evaluate(f"() => Array.from({{length: 100}}, (_, seed) => {call})"))
    assert abs(ours.mean() - theirs.mean()) < 4 * np.hypot(ours.std(), theirs.std()) / 10
