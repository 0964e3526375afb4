"""Closed forms of the attention landscape on small cases by hand."""

import numpy as np
import pytest

from flbook.lectures.in_context_learning.attention_landscape import landscape as theory


def test_ladder():
    np.testing.assert_allclose(theory.ladder(4), [0, 0.125, 0.25, 0.375, 0.5])
    with pytest.raises(ValueError, match="k must be at least 1"):
        theory.ladder(0)


def test_slope_and_rotation_by_hand():
    S, G = np.diag([3.0, 1.0]), np.array([[0.0, 2.0], [-1.0, 0.0]])
    assert theory.steepest_slope(S, G) == pytest.approx(-7)
    R = theory.best_rotation(S, G)
    assert -np.trace(R @ S @ G) == pytest.approx(-7)
    np.testing.assert_allclose(R @ R.T, np.eye(2), atol=1e-12)


def test_no_matrix_of_the_unit_ball_is_steeper():
    rng = np.random.default_rng(0)
    S, G = rng.normal(size=(2, 7, 4, 4))
    S = S @ np.swapaxes(S, -1, -2)
    other = rng.normal(size=(7, 4, 4))
    other /= np.linalg.norm(other, 2, axis=(-2, -1))[:, None, None]
    assert (-np.trace(other @ S @ G, axis1=-2, axis2=-1) > theory.steepest_slope(S, G)).all()


def test_arches_vanish_on_the_rungs_and_start_with_the_band():
    assert np.abs(theory.arch_slope(theory.ladder(5), 5, 1.0)).max() < 1e-12
    low = np.linspace(0, 0.099, 7)
    np.testing.assert_allclose(theory.arch_slope(low, 5, 2.0), -4 / 2 * low * (0.1 - low), atol=1e-15)
    assert theory.arch_slope(np.array(0.25), 5, 1.0) == pytest.approx(-0.01)


def test_curvature_and_its_rotation():
    S, covariance = np.diag([0.0, 0.5]), np.diag([1.0, 0.25])
    assert theory.curvature(S, np.eye(2), covariance) == pytest.approx(-1.0)
    G = np.diag([2.0, 0.0])
    assert np.abs(G @ theory.critical_rotation(G) @ S).max() < 1e-12
