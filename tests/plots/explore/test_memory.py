"""A ball with memory: its steps, where it coasts to and the memory that it needs, as the lecture has them."""

import numpy as np
import pytest
from scipy.special import expit

from flbook.lectures.training_strategies.momentum import coasting

ROLL = "([setting, at]) => flbookLive.memory.roll(setting, at)"


def steps(memory, beta, p, noise, a, b, lr, count):
    """Averaged momentum on the loss of easy and hard samples, with gradients by hand."""
    w, v = np.array([a, b, b]), np.zeros(3)
    for _ in range(count):
        easy, hard = expit(-(w[0] ** 3 + w[2] ** 3)), expit(-((beta * w[0]) ** 3 + w[1] ** 3))
        pull = 3 * w**2 * [p * easy + (1 - p) * beta**3 * hard, noise * hard, noise * easy]
        v += lr / memory * (pull - v)
        w += lr * v
    return w


@pytest.mark.parametrize("memory, beta", [(0.5, 0.1), (50.0, 0.1), (300.0, 0.3)])
def test_its_steps_are_those_of_momentum(tab, memory, beta):
    setting = dict(memory=memory, beta=beta, p=0.8, noise=1 / 30, a=0.05, b=0.06, lr=0.5)
    rows = tab.evaluate(ROLL, [setting, [0, 10, 1500]])["rows"]
    for row in rows:
        np.testing.assert_allclose([row["a"], row["b"], row["e"]], steps(**setting, count=row["step"]), rtol=1e-8)


def test_without_hard_samples_it_is_the_librarys_ball(tab):
    setting = dict(memory=100.0, beta=0.0, p=0.8, noise=0.0, a=0.1, b=0.0, lr=0.5)
    found = tab.evaluate(ROLL, [setting, [4000]])["rows"][0]["a"]
    np.testing.assert_allclose(found, coasting.rolled(np.array([0.1]), 0.8, 0.5, 100.0, 4000)[0][0], rtol=1e-8)


@pytest.mark.parametrize("beta", [0.05, 0.1, 0.3])
def test_its_laws_are_the_librarys(tab, beta):
    far, needed = tab.evaluate(
        "beta => [flbookLive.memory.coast(50, 0.8), flbookLive.memory.needed({beta, p: 0.8, noise: 1 / 30, b: 0.05})]",
        beta,
    )
    np.testing.assert_allclose(far, coasting.coast(50.0, 0.8), rtol=1e-6)
    np.testing.assert_allclose(needed, coasting.memory_needed(beta, 0.8, 60, 2.0, 0.05), rtol=1e-5, atol=1e-12)


def test_the_ball_coasts_as_far_as_the_law_says(tab):
    """At memories of 50 and more the hard samples add less than a tenth of the way until the easy ones are fitted."""
    for memory in (50.0, 200.0, 800.0):
        setting = dict(memory=memory, beta=0.05, p=0.8, noise=1 / 30, b=0.03)
        rest = tab.evaluate(ROLL, [setting, [4000]])["rest"]
        np.testing.assert_allclose(rest, coasting.coast(memory, 0.8), rtol=0.1)


def test_it_opens_with_a_map_and_a_verdict(opened):
    tab = opened("memory")
    tab.wait_for_function("document.querySelector('.fll').dataset.filled === '400'")
    assert "of a hard sample’s margin is the feature’s" in tab.inner_text(".fll-say")
    before = tab.input_value("[name=memory]")
    tab.locator("canvas").click(position={"x": 60, "y": 60})
    tab.wait_for_function("before => document.querySelector('[name=memory]').value !== before", arg=before)
    assert tab.complaints == []
