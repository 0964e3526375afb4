"""Ordinary differential equations: the order of the rule, and times that are met."""

import numpy as np
import pytest

from flbook.dynamics.equations import integrate


def decayed(dt: float) -> float:
    path = integrate(lambda s: {"x": -s["x"]}, {"x": 1.0}, np.array([0.0, 2.0]), dt)
    return path["x"][-1] - np.exp(-2)


def test_integration_is_of_order_four():
    assert decayed(0.1) / decayed(0.05) == pytest.approx(16, rel=0.15)


def test_every_time_is_met_and_names_stay_apart():
    times = np.array([0.0, 0.25, 0.25, 1.0])  # also one that is asked for twice
    path = integrate(
        lambda s: {"x": s["y"], "y": np.zeros(2)}, {"x": np.zeros(2), "y": np.array([1.0, 2.0])}, times, 0.1
    )
    np.testing.assert_allclose(path["x"], np.outer([1.0, 2.0], times), atol=1e-12)
    assert path["y"].shape == (2, 4)
