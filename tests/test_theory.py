"""Boundaries and closed forms: against each other by hand, and the averaging classifier against simulation."""

import numpy as np
import pytest
import torch
from scipy.special import ndtr

from flbook import theory
from flbook.data import SignalNoise
from flbook.estimators import averaging


def test_kou_variable_and_boundary_by_hand():
    assert theory.kou_variable(n=20, mu_norm=2.0, d=160) == 2.0
    assert theory.kou_variable(n=20, mu_norm=2.0, d=160, sigma_xi=2.0) == 2.0 / 16
    assert theory.kou_boundary(n=10, d=160) == pytest.approx(2.0)
    assert theory.kou_boundary(n=10, d=160, sigma_xi=3.0, constant=16.0) == pytest.approx(12.0)


def test_cao_variable_by_hand():
    assert theory.cao_variable(n=8, mu_norm=5.0, d=100, q=3) == pytest.approx(1.0)


@pytest.mark.parametrize("sigma_xi", [0.5, 2.0])
@pytest.mark.parametrize("constant", [0.3, 4.0])
def test_the_variable_on_the_boundary_is_the_constant(sigma_xi, constant):
    n, d = np.array([20, 40, 80])[:, None], np.array([100, 1000])
    mu = theory.kou_boundary(n, d, sigma_xi, constant)
    assert mu.shape == (3, 2)
    np.testing.assert_allclose(theory.kou_variable(n, mu, d, sigma_xi), constant)


def simulated(n, mu_norm, d, flip_prob, sigma_xi, seeds=200, points=200):
    """Test error of sum_i y_i x_i on one patch, trained and tested on d-dimensional draws."""
    data = SignalNoise(n=n, d=d, mu_norm=mu_norm, sigma_xi=sigma_xi, flip_prob=flip_prob)
    train, test = data.draw(tuple(range(seeds))), data.draw_test(points, seed=1)
    w = averaging(train.x.sum(-2), train.observed)
    return ((w @ test.x.sum(-2).T) * test.y <= 0).double().mean().item()


@pytest.mark.parametrize(
    "n, mu_norm, d, flip_prob, sigma_xi",
    [(20, 2.5, 1000, 0.0, 1.0), (40, 2.0, 1500, 0.1, 1.0), (40, 7.0, 1500, 0.2, 2.0), (40, 0.7, 2000, 0.1, 0.5)],
)
def test_averaging_error_is_what_the_averaging_classifier_gets(n, mu_norm, d, flip_prob, sigma_xi):
    closed = theory.averaging_error(n, mu_norm, d, flip_prob, sigma_xi)
    assert 0.02 < closed < 0.45
    assert simulated(n, mu_norm, d, flip_prob, sigma_xi) == pytest.approx(closed, abs=0.005)


def test_averaging_error_in_its_limits():
    # n SNR^2 << 1: Phi(-(1 - 2p) sqrt(r)); no signal: chance
    r = theory.kou_variable(10, 4.0, 1e6)
    assert theory.averaging_error(10, 4.0, 1e6, 0.2) == pytest.approx(ndtr(-0.6 * np.sqrt(r)), rel=1e-3)
    assert theory.averaging_error(10, 0.0, 100) == 0.5


def test_averaging_by_hand():
    x = torch.tensor([[1.0, 2.0], [3.0, -1.0]])
    observed = torch.tensor([[1.0, -1.0], [1.0, 1.0]])
    assert averaging(x.expand(2, 2, 2), observed).tolist() == [[-2.0, 3.0], [4.0, 1.0]]
