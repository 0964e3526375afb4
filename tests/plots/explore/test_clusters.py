"""Four clusters: the trained network and its three rivals, as the lecture on XOR trains them."""

import math

import matplotlib as mpl
import numpy as np
import pytest
import torch

from flbook import GradientDescent, Training, TwoLayerCNN, fit, rivals, theory
from flbook.lectures.benign_overfitting import xor
from flbook.lectures.benign_overfitting.xor import angle_laws, quadratic_kernel, xor_one_patch
from flbook.lectures.benign_overfitting.xor.clusters import XorSignalNoise
from flbook.lectures.benign_overfitting.xor.xor_gram import XorGramTraining
from flbook.models import identity, relu
from flbook.plots import look

AT = [0, 1, 5, 30, 100]

# Trains in JavaScript from given inner products; outputs on training samples, and on the corners beside fresh noise.
REPEAT = """([gram, observed, how, fresh, lr, at]) => {
  const {XorNetwork, QuadraticKernel} = flbookLive.clusters, numbers = (o, names) =>
    ({...o, ...Object.fromEntries(names.map(name => [name, Float64Array.from(o[name])]))});
  const g = numbers(gram, ["plane", "xi_xi", "w_xi"]), noise = numbers(fresh, ["on_xi", "on_w"]), rows = [];
  const model = new (how.model === "kernel" ? QuadraticKernel : XorNetwork)(g, Float64Array.from(observed), how);
  const on = f => model.corners.map(corner => [...f(corner)]);
  for (let t = 0; t <= at[at.length - 1]; t++) {
    if (at.includes(t)) rows.push({f: [...model.f], fresh: on(model.classifier(noise)), alone: on(model.classifier()),
                                   plane: [...(model.plane || [])], c: [...(model.c || [])]});
    if (how.model !== "kernel") model.step(lr);
  }
  return rows;
}"""


def data(n, d, mu, angle, ratio, p, points=40):
    """A training sample and a fresh one, the clusters of label -1 stretched by a ratio."""
    law = XorSignalNoise(n=n, d=d, mu_norm=mu, angle=angle, flip_prob=p)
    both = []
    for sample in (law.draw(3), law.draw_test(points, 3)):
        stretch = 1 + (ratio - 1) * (sample.cluster % 2).double()[:, None]
        x = torch.stack([sample.x[:, 0] * stretch, sample.x[:, 1]], 1)
        signals = sample.signals * torch.tensor([[1.0], [ratio]], dtype=torch.float64)
        both.append(sample._replace(x=x, signals=signals))
    return both


def given(train, fresh, w):
    """Inner products as JavaScript takes them."""
    flat = {"plane": w[:, :2], "xi_xi": train.xi @ train.xi.T, "w_xi": w @ train.xi.T}
    gram = {name: part.ravel().tolist() for name, part in flat.items()} | {"n": len(train.y), "k": len(w)}
    beside = {"on_xi": (fresh.xi @ train.xi.T).ravel().tolist(), "on_w": (fresh.xi @ w.T).ravel().tolist()}
    return gram, beside | {"points": len(fresh.y)}


def close(ours, theirs):
    theirs = np.asarray(theirs)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-8 * np.abs(theirs).max())


@pytest.mark.parametrize("model", ["network", "lazy", "linear"])
@pytest.mark.parametrize("patches", [2, 1])
@pytest.mark.parametrize(
    "case",
    [
        (20, 200, 6.0, 90.0, 1.0, 0.1, 1e-6),
        (40, 60, 8.0, 70.0, 1.7, 0.2, 0.02),  # clusters of unequal length
        (24, 20, 3.0, 150.0, 1.0, 0.0, 0.01),  # fewer dimensions than samples and filters
        (60, 900, 25.0, 15.0, 0.4, 0.3, 1e-8),
    ],
    ids=str,
)
def test_clusters_are_trained_as_the_library_does(tab, case, patches, model):
    """From the same inner products, clusters and noise side by side or added; fresh samples from direct training."""
    n, d, mu, angle, ratio, p, sigma_0 = case
    train, fresh = data(n, d, mu, angle, ratio, p)
    cnn = TwoLayerCNN(d, 8, sigma_0, identity if model == "linear" else relu, seed=1, dtype=torch.float64)
    x, new = (s.x if patches == 2 else s.x.sum(-2, keepdim=True) for s in (train, fresh))
    direct = Training(cnn, x, train.observed)
    direct = direct.lazy() if model == "lazy" else direct
    lr = 3.0 * n / (d + n * mu**2 / 4)
    gram, beside = given(train, fresh, cnn.w.detach().flatten(0, 1))
    how = {"model": model, "patches": patches, "signals": train.signals[:, :2].ravel().tolist()}
    rows = tab.evaluate(REPEAT, [gram, train.observed.tolist(), how, beside, lr, AT])
    for t, row in zip(AT, rows, strict=True):
        params = fit(direct, GradientDescent(lr), t).params if t else direct.start()
        close(row["f"], direct.predict(params).detach())
        own = np.array(row["fresh"])[fresh.cluster, np.arange(len(fresh.y))]
        close(own, direct.predict(params, new).detach())
    if patches == 2:
        task = XorGramTraining.of(train, TwoLayerCNN(d, 8, sigma_0, seed=1, dtype=torch.float64))
        task = task if model == "network" else rivals.rival(task, model)
        params = fit(task, GradientDescent(lr), AT[-1]).params
        close(rows[-1]["plane"], params["plane"].ravel())
        close(rows[-1]["c"], params["xi"].ravel())
        close(np.ravel(rows[-1]["alone"]), task.on_clusters(params))


@pytest.mark.parametrize("fitted", [True, False])
@pytest.mark.parametrize(
    "case", [(20, 200, 4.0, 90.0, 0.0), (100, 40, 2.0, 90.0, 0.0), (40, 60, 9.0, 40.0, 0.2)], ids=str
)
def test_clusters_kernel_is_the_librarys(tab, case, fitted):
    """Its outputs by their definition, and its errors on the library's own data sets."""
    n, d, mu, angle, p = case
    train, fresh = data(n, d, mu, angle, 1.0, p, points=400)
    gram, beside = given(train, fresh, torch.zeros(2, d, dtype=torch.float64))
    how = {"model": "kernel", "fitted": fitted, "signals": train.signals[:, :2].ravel().tolist()}
    (row,) = tab.evaluate(REPEAT, [gram, train.observed.tolist(), how, beside, 0, [0]])
    x, new, pull = train.x.sum(-2), fresh.x.sum(-2), train.observed
    matrix = (x @ x.T) ** 2
    if fitted:
        pull = torch.linalg.solve(matrix + 1e-9 * matrix.diagonal().mean() * torch.eye(n).double(), pull)
    close(row["f"], matrix @ pull)
    own = np.array(row["fresh"])[fresh.cluster, np.arange(400)]
    close(own, (new @ x.T) ** 2 @ pull)
    if p == 0 and angle == 90:
        theirs = quadratic_kernel.errors(n, mu, d, (3,), fitted=fitted, points=400)
        assert np.mean(own * fresh.y.numpy() <= 0) == pytest.approx(float(theirs), abs=1e-12)


@pytest.mark.parametrize("d", [60, 7], ids=["room", "fewer dimensions than vectors"])
def test_clusters_draws_inner_products_of_the_right_law(tab, d):
    """Means and mean squares over 4000 draws against their exact values; fresh noise given the rest."""
    draws = np.array(
        tab.evaluate(
            """d => Array.from({length: 4000}, (_, seed) => {
      const g = flbookLive.clusters.drawXorGram({n: 4, k: 4, d, sigma_0: 0.5, seed, points: 2});
      const [a, b] = g.fresh.on_xi, w = g.fresh.on_w[3];
      return [g.xi_xi[0], g.xi_xi[15], g.xi_xi[3], g.w_xi[2], g.plane[0], g.plane[7], a, w,
              a * a - g.xi_xi[0], a * b - g.xi_xi[1], a * w - g.w_xi[12], a + g.fresh.on_xi[4]]; })""",
            d,
        )
    )
    e = d - 2  # dimensions outside the plane
    mean = np.array([e, e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    square = np.array([e * e + 2 * e, e * e + 2 * e, e, e / 4, 0.25, 0.25, e, e / 4])
    spread = draws.std(0) / math.sqrt(4000)
    assert (draws[:, 11] == 0).all(), "each fresh noise patch stands beside its negative"
    assert np.abs((draws.mean(0) - mean)[:11] / spread[:11]).max() < 4.5
    squares = draws[:, :8] ** 2
    assert np.abs((squares.mean(0) - square) / (squares.std(0) / math.sqrt(4000))).max() < 4.5


def drawn(tab, model, **s):
    """Test errors of fifty draws in JavaScript."""
    s = {"n": 40, "angle": 90, "p": 0.1, "patches": 2, **s}
    one = "flbookLive.clusters.train(model, {...s, seed}).testError"
    return np.array(tab.evaluate(f"([model, s]) => Array.from({{length: 50}}, (_, seed) => {one})", [model, s]))


def same_mean(ours, theirs):
    error = math.hypot(ours.std(), theirs.std()) / math.sqrt(50)
    assert abs(ours.mean() - theirs.mean()) <= 4.5 * error + 1e-3  # the library's points leave up to 1e-3 of a constant


@pytest.mark.parametrize("model", ["network", "lazy", "linear"])
@pytest.mark.parametrize("d, angle, r", [(2000, 90.0, 20.0), (100_000, 50.0, 100.0)])
def test_clusters_errs_as_the_library_does_in_two_patches(tab, model, d, angle, r):
    mu, seeds = (r * d / 40) ** 0.25, tuple(range(50))
    lr = 0.5 * d / (d + 40 * mu**2 / 16)
    like = xor.Setting(model=(model,), n=(40,), d=(d,), angle=(angle,), r=(r,), seed=seeds, lr=lr)
    same_mean(drawn(tab, model, d=d, angle=angle, u=mu, v=mu), xor.experiment.measure(like).test_error.values.ravel())


@pytest.mark.parametrize("model", ["network", "lazy", "linear"])
@pytest.mark.parametrize("d, mu", [(150, 4.0), (25, 2.0)])
def test_clusters_errs_as_the_library_does_in_one_patch(tab, model, d, mu):
    lr = 0.4 * 40 / (d + 40 + 40 * mu**2 / 16) / min(1, 40 / d)
    seeds = tuple(range(50))
    like = xor_one_patch.Setting(model=(model,), n=(40,), d=(d,), mu=(mu,), seed=seeds, flip_prob=0.1, lr=lr)
    ours = drawn(tab, model, d=d, u=mu, v=mu, patches=1)
    same_mean(ours, xor_one_patch.experiment.measure(like).test_error.values.ravel())


@pytest.mark.parametrize("patches", [2, 1])
def test_clusters_kernel_errs_as_the_librarys(tab, patches):
    theirs = quadratic_kernel.errors(40, 3.0, 150, tuple(range(50))).numpy()
    same_mean(drawn(tab, "kernel", d=150, u=3.0, v=3.0, p=0, patches=patches), theirs)


def test_clusters_closed_forms_are_the_librarys(tab):
    """Where the library has them: lazy at every angle, one patch at right angles and without wrong labels."""

    def closed(model, **s):
        s = {"n": 40, "d": 2000, "angle": 90, "u": 6.0, "p": 0.0, "patches": 1, **s}
        return tab.evaluate("([m, s]) => flbookLive.clusters.closedForm(m, s)", [model, s | {"v": s["u"]}])

    for mu in (1.0, 4.0, 9.0):
        assert closed("kernel", u=mu) == pytest.approx(float(angle_laws.one_patch_kernel_error(40, mu, 2000)), abs=1e-8)
        assert closed("lazy", u=mu) == pytest.approx(float(angle_laws.one_patch_lazy_error(40, mu, 2000)), abs=1e-8)
        for angle in (20, 90, 140):
            r = 40 * mu**4 / 2000 * angle_laws.lazy_angle(angle) ** 2
            many_filters = float(theory.averaging_error(1, (r / 4) ** 0.25 * 1e6, 1e24, 0.1))
            assert closed("lazy", u=mu, angle=angle, p=0.1, patches=2) == pytest.approx(many_filters, abs=1e-8)
    assert closed("linear") == 0.5 and math.isnan(closed("network")) and math.isnan(closed("kernel", n=4000))
    call = "angles => angles.map(angle => flbookLive.clusters.borderOf({angle, p: 0.1, patches: 2, u: 1, v: 1}))"
    border = np.array(tab.evaluate(call, [90, 30, 120]))
    np.testing.assert_allclose(border[0] / border, angle_laws.network_angle(np.array([90, 30, 120])) ** 2, rtol=1e-12)


@pytest.mark.parametrize("angle, p", [(90, 0.1), (60, 0.2), (120, 0.0)])
def test_clusters_theory_holds_for_what_is_drawn(tab, angle, p):
    """At angles and shares of wrong labels for which the library has no closed form, at n = 40."""
    s = {"n": 40, "d": 20_000, "angle": angle, "p": p, "patches": 2}
    border = tab.evaluate("s => flbookLive.clusters.borderOf({...s, u: 1, v: 1})", s)
    mu = (border * s["d"] / 40) ** 0.25
    assert abs(drawn(tab, "network", **s, u=mu, v=mu).mean() - 0.25) < 0.03
    mu = (10 * s["d"] / 40 / math.sin(math.radians(angle)) ** 2) ** 0.25
    kernel = tab.evaluate("s => flbookLive.clusters.closedForm('kernel', s)", s | {"u": mu, "v": mu})
    assert abs(drawn(tab, "kernel", **s, u=mu, v=mu).mean() - kernel) < 0.02


def test_clusters_signals_are_turned_and_stretched_by_hand(opened):
    """By pointer and by keys; each handle keeps its focus while the drawing changes."""
    tab = opened("clusters")
    value = {name: f"+document.querySelector('[name={name}]').value" for name in ("angle", "mu", "stretch")}
    tip = tab.locator(".fll [role=slider]").first.bounding_box()
    x, y = tip["x"] + tip["width"] / 2, tip["y"] + tip["height"] / 2
    tab.mouse.move(x, y)
    tab.mouse.down()
    tab.mouse.move(x + 40, y - 10, steps=4)
    tab.mouse.up()
    tab.wait_for_function(f"{value['angle']} < 80 && {value['mu']} > Math.log10(8.5) && {value['stretch']} < -0.02")
    angle, stretch = tab.evaluate(value["angle"]), tab.evaluate(value["stretch"])
    tab.locator(".fll [role=slider]").nth(1).focus()
    for key in ("ArrowLeft", "ArrowLeft", "ArrowUp", "ArrowUp"):
        tab.keyboard.press(key)
        tab.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    assert tab.evaluate(value["angle"]) == angle - 4 and tab.evaluate(value["stretch"]) > stretch + 0.02
    assert tab.evaluate("document.activeElement.getAttribute('aria-valuetext')").endswith(f"{angle - 4:.0f}°")
    assert tab.complaints == []


def test_clusters_curves_fill_while_one_looks(opened):
    """Each point of the third panel is a mean over the data sets that the page asks for."""
    tab = opened("clusters", n=20, draws=1)
    tab.wait_for_function("document.querySelector('.fll').dataset.filled")
    assert "Mean of 1 data sets" in tab.get_attribute(".fll figure:nth-child(3) svg", "aria-label")


def test_clusters_wears_the_books_colours(opened):
    """A model has one colour in the whole book, in a live figure too."""
    tab = opened("clusters")
    names = {"network": "network", "lazy": "lazy", "linear": "linear", "kernel": "quadratic kernel"}
    read = "name => getComputedStyle(document.querySelector('.fll')).getPropertyValue('--' + name).trim()"
    found = {name: mpl.colors.to_hex(tab.evaluate(read, name)) for name in names}
    assert found == {name: look.MODELS[label][0].lower() for name, label in names.items()}
