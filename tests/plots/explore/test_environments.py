"""The plane of two features: gradients, flows and ends, as the lecture has them."""

import numpy as np
import pytest

from flbook.lectures.training_strategies.out_of_distribution.plane import Plane

NAMES = {"irm": "IRMv1", "vrex": "VREx"}
FLOW = "([s, start, times]) => new flbookLive.environments.Plane(s).flow(start, times)"


def both(alpha=0.25, betas=(0.1, 0.2), penalty="irm", weight=1000.0):
    """A plane in JavaScript's words, and the library's."""
    ours = dict(alpha=alpha, betas=list(betas), penalty=penalty, weight=weight)
    return ours, Plane(alpha, tuple(betas), NAMES[penalty], weight)


@pytest.mark.parametrize("penalty", NAMES)
@pytest.mark.parametrize("at", [(0.0, 0.0), (0.4, 0.7), (1.3, -0.2)])
def test_its_gradient_is_the_librarys(tab, penalty, at):
    ours, plane = both(betas=(0.1, 0.35), penalty=penalty, weight=50.0)
    found = tab.evaluate("([s, w]) => new flbookLive.environments.Plane(s).gradient(w)", [ours, list(at)])
    np.testing.assert_allclose(found, plane.gradient(np.array(at)), rtol=1e-9, atol=1e-12)
    least = tab.evaluate("s => new flbookLive.environments.Plane(s).erm()", ours)
    np.testing.assert_allclose(least, plane.erm(), rtol=1e-12)


@pytest.mark.parametrize("penalty, weight, start", [
    ("irm", 0.0, (0.0, 0.0)), ("irm", 1000.0, (0.0, 0.0)), ("irm", 1000.0, (0.0, 1.73)), ("irm", 1e5, (1.1, 1.73)),
    ("vrex", 1000.0, (0.0, 0.0)),
])
def test_its_flow_is_the_librarys(tab, penalty, weight, start):
    ours, plane = both(penalty=penalty, weight=weight)
    times = [0.001, 0.1, 1.0, 30.0, 3000.0]
    found = tab.evaluate(FLOW, [ours, list(start), times])
    np.testing.assert_allclose(found, plane.flow(np.array(start), np.array(times)), rtol=0, atol=5e-3)


@pytest.mark.parametrize("betas, weight, kept", [
    ((0.1, 0.2), 1e3, True), ((0.05, 0.4), 1e3, False), ((0.05, 0.35), 1e2, True), ((0.05, 0.35), 1e3, False),
])
def test_from_the_spurious_feature_it_collapses_where_the_library_does(tab, betas, weight, kept):
    ours, plane = both(betas=betas, weight=weight)
    start = np.array([0.0, plane.erm()[1]])
    end = tab.evaluate(FLOW, [ours, start.tolist(), [3000.0]])[0]
    assert (plane.end(start)[0] > plane.erm()[0] / 2) == kept == (end[0] > plane.erm()[0] / 2)


def click(canvas, x, y):
    """At these parts of its width and height."""
    box = canvas.bounding_box()
    canvas.click(position={"x": x * box["width"], "y": y * box["height"]})


def test_a_click_gives_a_start_and_another_pair(opened):
    tab = opened("environments")
    tab.wait_for_function("document.querySelector('.fll').dataset.filled === '800'", timeout=30_000)
    assert "It finds the invariant feature" in tab.inner_text(".fll-say")
    click(tab.locator("canvas").first, 0.24, 0.65)  # near a = 0.2, b = 0.5
    tab.wait_for_function("document.querySelector('.fll-say').textContent.includes('unlearns')")
    assert tab.input_value("[name=start]") == "own"
    before = tab.input_value("[name=beta_2]")
    click(tab.locator("canvas").last, 0.4, 0.2)
    tab.wait_for_function("before => document.querySelector('[name=beta_2]').value !== before", arg=before)
    assert tab.complaints == []
