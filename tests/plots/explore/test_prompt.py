"""In-context regression: predictors, their risks, and the prompts that are drawn."""

import numpy as np
import pytest
import torch
from scipy.integrate import dblquad, quad

from flbook.data.prompts import LinearPrompts
from flbook.estimators import Averaging, GradientStep, LeastSquares, Ridge
from flbook.lectures.in_context_learning.shared import attention_risk as theory
from flbook.lectures.in_context_learning.shared.attention import LinearAttention
from flbook.shapes import Context

INPUTS = {"line": (1.0, 0.0), "round": (1.0, 1.0), "long": (1.8, 0.2)}
NAMES = ("layer", "step", "average", "squares", "bayes")


REPEAT = """names => {
  const p = flbookLive.prompt, lam = [1.8, 0.2], noise = 0.7, at = [1, 3, 6], r = lam.map(Math.sqrt);
  const {normal} = flbookLive.random(4, "sums"), totals = at.map(() => ({}));
  for (let k = 0; k < 5; k++) {
    const task = [normal(), normal()], x = [], y = [];
    for (let i = 1; i <= 6; i++) {
      x.push([r[0] * normal(), r[1] * normal()]);
      y.push(x[i - 1][0] * task[0] + x[i - 1][1] * task[1] + noise * normal());
      const total = totals[at.indexOf(i)], found = p.weights(p.momentsOf(x, y), 4, lam, noise);
      if (total) for (const name of names) total[name] = (total[name] || 0) + p.errorAt(found[name], task, lam) / 5;
    }
  }
  const rows = p.simulate(p.drawSums(5, at, 4, "sums"), 4, lam, noise);
  return [rows, totals].map(list => list.map(row => names.map(name => row[name])));
}"""


def of(lam):
    """The covariance without coordinates that are not there."""
    return np.diag([one for one in lam if one])


def plane(x):
    """Inputs of any dimension as JavaScript holds them: with two coordinates."""
    return np.pad(x, [(0, 0), (0, 2 - x.shape[1])])


def best_eta(n, lam, noise):
    """The best eta of Gamma = eta I: the risk of the library is a parabola in it."""
    at = [theory.attention_risk(eta * np.eye(len(of(lam))), n, of(lam), noise) for eta in (-1.0, 0.0, 1.0)]
    return (at[0] - at[2]) / (2 * (at[0] - 2 * at[1] + at[2]))


def prompt(kind, n, noise, seed=0, batch=1):
    """A drawn prompt, inputs (n, d), labels (n,) and the task."""
    lam = of(INPUTS[kind])
    drawn = LinearPrompts(n=n, d=len(lam), noise=noise, covariance=lam).draw(batch, seed)
    return drawn.context.x[0], drawn.context.y[0], drawn.task[0]


def predictors(trained, lam, noise, n):
    """The library's predictors, by the figure's names."""
    gamma = torch.from_numpy(theory.attention_optimum(trained, of(lam), noise))
    bayes = Ridge(noise**2) if noise else LeastSquares()
    return dict(
        layer=LinearAttention(gamma),
        step=GradientStep(best_eta(n, lam, noise)),
        average=Averaging(),
        squares=LeastSquares(),
        bayes=bayes,
    )


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("n, trained, noise", [(1, 1, 0.0), (2, 30, 0.5), (7, 100, 0.0), (10, 10, 0.1), (30, 4, 2.0)])
def test_predictors_are_the_librarys(tab, kind, n, trained, noise):
    """Weights are predictions at the unit vectors; one example in two dimensions has many least-squares solutions."""
    lam, (x, y, _) = INPUTS[kind], prompt(kind, n, noise)
    call = "([x, y, N, lam, noise]) => flbookLive.prompt.weights(flbookLive.prompt.momentsOf(x, y), N, lam, noise)"
    ours = tab.evaluate(call, [plane(x).tolist(), y.tolist(), trained, list(lam), noise])
    for name, one in predictors(trained, lam, noise, n).items():
        with torch.no_grad():
            theirs = one(Context(x, y), torch.eye(x.shape[1], dtype=x.dtype)).numpy()
        np.testing.assert_allclose(ours[name][: len(theirs)], theirs, rtol=1e-8, atol=1e-8, err_msg=name)
        assert ours[name][len(theirs) :] in ([], [0])


@pytest.mark.parametrize(
    "rows",
    [[[1.0, 2.0], [2.0, 4.0], [-3.0, -6.0]], [[1.0, 0.0], [1.0, 1e-3]], [[0.0, 0.0], [0.0, 3.0]], [[0.0, 0.0]]],
    ids=["on one line", "almost", "on an axis", "at zero"],
)
def test_examples_may_be_pulled_onto_one_line(tab, rows):
    x, y = torch.tensor(rows, dtype=torch.float64), torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)[: len(rows)]
    call = "([x, y, l]) => flbookLive.prompt.ridge(flbookLive.prompt.momentsOf(x, y), l)"
    for penalty, one in ((0, LeastSquares()), (0.3, Ridge(0.3))):
        theirs = one(Context(x, y), torch.eye(2, dtype=torch.float64)).numpy()
        ours = tab.evaluate(call, [rows, y.tolist(), penalty])
        np.testing.assert_allclose(ours, theirs, atol=1e-8 * max(1, np.abs(theirs).max()))


def test_the_loss_and_what_a_step_gains(tab):
    """The prompt's own loss; and of the way to least squares a step goes the eigenvalues of Gamma S."""
    x, y, task = prompt("long", 9, 0.7)
    b, gamma = np.array([0.3, -1.1]), np.array([0.5, 2.0])
    loss, gains, error = tab.evaluate(
        """([x, y, b, gamma, task, lam]) => { const p = flbookLive.prompt, m = p.momentsOf(x, y);
        return [p.empirical(m, b), p.gains(m, gamma), p.errorAt(b, task, lam)]; }""",
        [x.tolist(), y.tolist(), b.tolist(), gamma.tolist(), task.tolist(), list(INPUTS["long"])],
    )
    x, y = x.numpy(), y.numpy()
    np.testing.assert_allclose(loss, ((y - x @ b) ** 2).mean() / 2, rtol=1e-10)
    np.testing.assert_allclose(gains, np.sort(np.linalg.eigvals(np.diag(gamma) @ x.T @ x / 9).real)[::-1], rtol=1e-10)
    off = b - task.numpy()
    np.testing.assert_allclose(error, off @ np.diag(INPUTS["long"]) @ off, rtol=1e-10)


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("n, trained, noise", [(1, 100, 0.0), (10, 10, 0.5), (17, 3, 2.0), (100, 20, 0.1)])
def test_risks_of_the_layer_and_of_a_step_are_the_librarys(tab, kind, n, trained, noise):
    lam = INPUTS[kind]
    optimum, eta, layer, step, average = tab.evaluate(
        """([n, N, lam, noise]) => { const p = flbookLive.prompt, risk = gamma => p.attentionRisk(gamma, n, lam, noise);
        const gamma = p.attentionOptimum(N, lam, noise), eta = p.bestStep(n, lam, noise);
        return [gamma, eta, risk(gamma), risk([eta, eta]), risk([1, 1])]; }""",
        [n, trained, list(lam), noise],
    )
    gamma, identity = theory.attention_optimum(trained, of(lam), noise), np.eye(len(of(lam)))
    np.testing.assert_allclose(optimum[: len(gamma)], gamma.diagonal(), rtol=1e-10)
    np.testing.assert_allclose(eta, best_eta(n, lam, noise), rtol=1e-8)
    theirs = [theory.attention_risk(one, n, of(lam), noise) for one in (gamma, eta * identity, identity)]
    np.testing.assert_allclose([layer, step, average], theirs, rtol=1e-8)
    if kind != "long":  # nothing to precondition: the best layer is the best step
        np.testing.assert_allclose(theory.least_risk(of(lam), n, noise), step, rtol=1e-8)
        if not noise:
            np.testing.assert_allclose(theory.best_step(n, len(identity))[0], eta, rtol=1e-8)


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("n", [1, 2, 5, 30, 100])
@pytest.mark.parametrize("noise", [0.1, 0.5, 2.0])
def test_the_risk_of_bayes_is_the_librarys(tab, kind, n, noise):
    """Exact here, a mean over drawn S there; in one dimension it is one integral that SciPy does, too."""
    lam = INPUTS[kind]
    ours = tab.evaluate("([n, lam, noise]) => flbookLive.prompt.ridgeRisk(n, lam, noise)", [n, list(lam), noise])
    theirs = theory.ridge_risk(n, of(lam), noise, draws=4000)
    assert abs(ours - theirs.mean()) < 4.5 * theirs.std() / np.sqrt(4000)
    if kind == "line":
        scale = 2 / noise**2  # t is measured in the width of the integrand
        exact = quad(lambda t: np.exp(-t / scale) * (1 + t) ** (-n / 2) / scale, 0, np.inf, epsabs=0, epsrel=1e-11)[0]
        np.testing.assert_allclose(ours, exact, rtol=1e-8)


def test_the_risk_of_bayes_in_two_dimensions_to_eight_digits(tab):
    """Another way to it: over the angle between the columns of the inputs by hand, over their lengths by SciPy."""
    noise, n, (u, v) = 0.8, 4, INPUTS["long"]

    def given(a, b):  # the squared cosine has a beta law; at n = 4 its integral is elementary
        p, q, c = 1 + u * a / noise**2, 1 + v * b / noise**2, u * v * a * b / noise**4
        return (u * q + v * p) * 2 / (p * q * (1 + np.sqrt(1 - c / (p * q)))) * a * b * np.exp(-(a + b) / 2) / 16

    exact = dblquad(given, 0, 90, 0, 90, epsabs=1e-11, epsrel=1e-11)[0]
    ours = tab.evaluate("([n, lam, noise]) => flbookLive.prompt.ridgeRisk(n, lam, noise)", [n, [u, v], noise])
    np.testing.assert_allclose(ours, exact, rtol=1e-8)


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_the_marks_are_those_of_prompts_of_the_right_law(tab, kind, noise):
    """Means of forty seeds against the closed forms, where least squares has a variance; and against the library's."""
    lam, lengths, trained = INPUTS[kind], [1, 2, 8, 32], 5
    d = len(of(lam))
    ours = tab.evaluate(
        """([at, N, lam, noise, names]) => Array.from({length: 40}, (_, seed) => { const p = flbookLive.prompt;
        const rows = p.simulate(p.drawSums(400, at, seed, "law"), N, lam, noise);
        return rows.map(row => names.map(name => row[name])); })""",
        [lengths, trained, list(lam), noise, NAMES],
    )
    ours = np.array(ours)  # seed, n, predictor
    mean, error = ours.mean(0), ours.std(0) / np.sqrt(40)
    call = """([n, N, lam, noise]) => {
        const p = flbookLive.prompt, risk = gamma => p.attentionRisk(gamma, n, lam, noise);
        return [risk(p.attentionOptimum(N, lam, noise)), risk([0, 0].fill(p.bestStep(n, lam, noise))), risk([1, 1]),
                p.leastSquaresRisk(n, lam, noise), p.ridgeRisk(n, lam, noise)].map(x => x === Infinity ? null : x); }"""
    exact = np.array(
        [[np.nan if x is None else x for x in tab.evaluate(call, [n, trained, list(lam), noise])] for n in lengths]
    )
    if noise:
        assert np.isnan(exact[:2, 3]).all() and np.isfinite(exact[2:]).all()
        np.testing.assert_allclose(exact[2:, 3], [noise**2 * d / (n - d - 1) for n in lengths[2:]])
    known = np.isfinite(exact)
    assert (np.abs(mean - exact)[known] <= 4.5 * error[known] + 1e-12).all(), (mean, exact, error)


def test_the_marks_are_the_errors_of_their_prompts(tab):
    """Sums over examples, as the marks are made, against the examples themselves."""
    ours, theirs = tab.evaluate(REPEAT, NAMES)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_prompts_are_standard_normal(tab):
    """Means, second and fourth moments of tasks, inputs and noise over 4000 prompts, and that nothing is correlated."""
    rows = np.array(
        tab.evaluate("""() => Array.from({length: 4000}, (_, seed) => {
        const {task, rows} = flbookLive.prompt.drawPrompt(2, seed);
        return [...task, ...rows.flatMap(({z, e}) => [...z, e])]; })""")
    )
    assert np.abs(rows.mean(0)).max() < 4.5 / np.sqrt(4000)
    second = rows.T @ rows / 4000
    assert np.abs(second - np.eye(8)).max() < 4.5 * np.sqrt(2 / 4000)
    assert np.abs((rows**4).mean(0) - 3).max() < 4.5 * np.sqrt(96 / 4000)


EXAMPLE = ".fll-panels figure:nth-child(1) .move >> nth=2"
TASK = ".fll-panels figure:nth-child(2) .move"
PLACE = "e => { const q = e.firstChild.getBoundingClientRect(); return [q.x + q.width / 2, q.y + q.height / 2]; }"


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("what", [EXAMPLE, TASK])
def test_examples_and_task_can_be_pulled(opened, inputs, what):
    """By a pointer: the thing goes where the pointer goes, and the sentence says that this is no draw any more."""
    tab = opened("prompt", inputs=inputs)
    x, y = tab.locator(what).evaluate(PLACE)
    free = what == EXAMPLE or inputs != "line"  # a task in one dimension stays on the curve of the loss
    tab.mouse.move(x, y)
    tab.mouse.down()
    tab.mouse.move(x - 25, y + 15)
    tab.wait_for_function("document.querySelector('.fll-say').textContent.includes('moved by hand')")
    now = tab.locator(what).evaluate(PLACE)
    np.testing.assert_allclose(now[: 1 + free], [x - 25, y + 15][: 1 + free], atol=1)
    tab.mouse.up()
    label = "e => e.getAttribute('aria-label')"
    assert tab.evaluate("document.activeElement.getAttribute('aria-label')") == tab.locator(what).evaluate(label)
    tab.click("[name=again]")
    tab.wait_for_function("!document.querySelector('.fll-say').textContent.includes('moved by hand')")


def test_a_finger_pulls_an_example_and_not_the_page(opened, chromium, tmp_path):
    opened("prompt")
    phone = chromium.new_context(viewport={"width": 360, "height": 600}, has_touch=True, is_mobile=True)
    tab = phone.new_page()
    tab.goto((tmp_path / "prompt.html").as_uri())
    tab.locator(EXAMPLE).scroll_into_view_if_needed()
    tab.evaluate("window.scrollBy(0, 150)")
    (x, y), before = tab.locator(EXAMPLE).evaluate(PLACE), tab.evaluate("scrollY")
    finger = phone.new_cdp_session(tab)
    for kind, step in (("touchStart", 0), *(("touchMove", k) for k in range(1, 9))):
        at = {"x": x + 3 * step, "y": y - 5 * step}
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [at]})
    tab.wait_for_function("document.querySelector('.fll-say').textContent.includes('moved by hand')")
    tab.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    np.testing.assert_allclose(tab.locator(EXAMPLE).evaluate(PLACE), [x + 24, y - 40], atol=1)
    assert tab.evaluate("scrollY") == before
    phone.close()


@pytest.mark.parametrize("inputs", INPUTS)
def test_keys_move_examples(opened, inputs):
    """An arrow key moves by 0.1, with Shift by 0.5; in one dimension up and down change the label."""
    tab = opened("prompt", inputs=inputs)
    said = "e => e.getAttribute('aria-valuetext').replaceAll('\u2212', '-').match(/-?[\\d.]+/g).map(Number)"
    before = tab.locator(EXAMPLE).evaluate(said)
    tab.locator(EXAMPLE).focus()
    for key in ("ArrowRight", "ArrowRight", "Shift+ArrowDown"):
        tab.keyboard.press(key)
        tab.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    after = tab.locator(EXAMPLE).evaluate(said)
    np.testing.assert_allclose(np.subtract(after, before)[:2], [0.2, -0.5], atol=0.02)  # the words have three digits
    assert tab.evaluate("document.activeElement.getAttribute('aria-label')") == "example 3"
    moved = "document.querySelector('.fll-say').textContent.includes('moved by hand')"
    tab.wait_for_function(moved)
    tab.select_option("[name=inputs]", next(other for other in INPUTS if other != inputs))
    tab.wait_for_function("!" + moved)  # it lay in another space


def test_the_sentence_is_read_out_when_the_change_has_ended(opened):
    tab = opened("prompt")
    live = "document.querySelector('.fll-say').getAttribute('aria-live')"
    tab.focus("[name=n]")
    tab.keyboard.press("ArrowRight")
    tab.wait_for_function(f"{live} === 'off'")
    tab.wait_for_function(f"{live} === 'polite'")
    assert "on this prompt" in tab.inner_text(".fll-say")
