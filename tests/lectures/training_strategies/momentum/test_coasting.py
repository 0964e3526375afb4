"""The smallest model: its energy, its coasting, and gradient descent as the memory of one step."""

import math

import numpy as np
import pytest

from flbook.lectures.training_strategies.momentum import coasting


def test_the_pull_is_minus_the_slope_of_the_loss():
    a, h = np.array([0.1, 0.7, 1.5, 3.0]), 1e-6
    loss = lambda z: 0.8 * np.logaddexp(0, -(z**3))  # noqa: E731
    np.testing.assert_allclose(coasting.pull(a, 0.8), -(loss(a + h) - loss(a - h)) / (2 * h), rtol=1e-6)


def test_a_memory_of_one_step_is_gradient_descent():
    a, v = coasting.rolled(np.array([0.5]), share=0.8, lr=2.0, memory=2.0, steps=1)
    assert v == coasting.pull(0.5, 0.8) and a == 0.5 + 2 * v


def test_energy_only_falls_and_bounds_the_speed():
    share, memory, lr = 0.8, 40.0, 0.05
    energies = []
    for steps in range(0, 8_000, 800):
        a, v = coasting.rolled(0.05, share, lr, memory, steps)
        energies.append(memory * v**2 / 2 + share * np.logaddexp(0, -(a**3)))
        assert v <= math.sqrt(2 * share * math.log(2) / memory)
    assert (np.diff(energies) < 1e-6).all() and energies[-1] < energies[0] / 10


@pytest.mark.parametrize("share", [0.3, 0.8])
def test_it_coasts_as_far_as_the_law_says(share):
    for memory, within in ((50.0, 0.02), (800.0, 0.002)):
        a, v = coasting.rolled(0.03, share, memory / 500, memory, 5000)
        rest = float(a + memory * v)
        assert rest == pytest.approx(coasting.coast(memory, share), rel=within)
        assert abs(rest - math.sqrt(2 * memory * share * math.log(2))) > 0.5  # without the offset it misses


def test_the_needed_memory_is_where_coast_and_tie_meet():
    memory = coasting.memory_needed(small=0.1, share=0.8, n=60, noise=2.0, seen=0.043)
    assert coasting.coast(memory, 0.8) == pytest.approx(2.0 * 0.043 / (0.2 * 60 * 0.1**3))
    assert coasting.memory_needed(small=0.5, share=0.8, n=60, noise=2.0, seen=0.043) == 0
