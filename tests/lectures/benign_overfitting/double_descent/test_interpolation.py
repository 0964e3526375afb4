"""Risks through the interpolation threshold: against simulation, and against each other."""

import numpy as np
import pytest
import torch

from flbook import estimators, rng
from flbook.lectures.benign_overfitting.double_descent.interpolation import (
    pole,
    random_features_risk,
    subset_risk,
)
from flbook.theory.one_step import parts


@pytest.mark.parametrize("p", [3, 12, 30, 60])
def test_coordinates_against_simulation(p):
    n, d, seeds = 20, 60, tuple(range(1500))
    x = rng.normal((n, d), seeds, "x")
    y = x.sum(-1) / d**0.5 + 0.3 * rng.normal((n,), seeds, "noise")
    risk = (estimators.min_norm(x[..., :p], y) - d**-0.5).square().sum(-1) + (d - p) / d
    expected = subset_risk(n, p, p / d, 1 - p / d, 0.3)
    assert abs(risk.mean().item() - expected) < 4 * risk.std().item() / len(seeds) ** 0.5


def test_coordinates_by_hand():
    assert subset_risk(10, 4, 1.0, 0.0, 2.0) == pytest.approx(4 * 4 / 5)
    assert subset_risk(10, 20, 1.0, 0.0, 0.0) == pytest.approx(0.5)
    assert [subset_risk(10, p, 1.0, 0.0, 1.0) for p in (9, 10, 11)] == [float("inf")] * 3
    with pytest.raises(ValueError, match="n and p must be at least 1: samples and coordinates; got n=10, p=0"):
        subset_risk(10, 0, 1.0, 0.0)


SIGMA = parts(np.tanh)


def limit(n, width, ridge, d=60, noise=0.5):
    return random_features_risk(n, width, ridge, [SIGMA.mu_1**2 / d], [d], [1.0], SIGMA.mu_2**2, 0.0, noise)


@pytest.mark.parametrize("width, ridge", [(40, 0.0), (300, 0.0), (100, 0.05), (300, 0.5)])
def test_random_features_against_simulation(width, ridge):
    from flbook.lectures.benign_overfitting.double_descent import Setting, experiment

    setting = Setting(width=(width,), ridge=(ridge,), n=100, d=60, seed=tuple(range(16)), points=500)
    assert experiment.measure(setting).risk.mean().item() == pytest.approx(limit(100, width, ridge), rel=0.12)


def test_all_features_are_kernel_ridge_regression():
    assert limit(100, 1e7, 0.1) == pytest.approx(limit(100, float("inf"), 0.1), rel=1e-4)


def test_linear_features_without_a_tail_and_infinite_width_are_ridgeless_regression():
    found = random_features_risk(300, float("inf"), 0.0, [0.01], [100], [1.0], 0.0, 0.0, 0.5)
    assert found == pytest.approx(subset_risk(300, 100, 1.0, 0.0, 0.5), rel=0.02)


def test_peak_at_the_threshold_only_without_ridge():
    assert limit(100, 100, 0.0) > 1e6 and limit(100, 100, 0.1) < 1


def test_bad_sizes_are_one_sentence():
    with pytest.raises(ValueError, match="n and width must be at least 1, ridge and tail not negative; got n=0"):
        random_features_risk(0, 10, 0.0, [1.0], [1], [1.0])


def test_min_norm_is_the_pseudo_inverse():
    for shape in ((3, 8, 5), (3, 5, 8), (3, 6, 6)):
        features = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        y = torch.randn(shape[:2], generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        expected = torch.einsum("enk,ek->en", torch.linalg.pinv(features, rtol=0.0), y)
        torch.testing.assert_close(estimators.min_norm(features, y), expected, rtol=1e-8, atol=1e-10)
        torch.testing.assert_close(estimators.min_norm(features[1], y[1]), expected[1], rtol=1e-8, atol=1e-10)


def test_min_norm_keeps_small_singular_values():
    features = torch.diag(torch.tensor([1.0, 1e-9, 1e-14], dtype=torch.float64))
    a = estimators.min_norm(features, torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close(a, torch.tensor([1.0, 1e9, 1e14], dtype=torch.float64))


def test_dependent_features_are_one_sentence():
    with pytest.raises(ValueError, match=r"features of shape \(4, 2\) must have full rank"):
        estimators.min_norm(torch.ones(4, 2, dtype=torch.float64), torch.ones(4, dtype=torch.float64))


def test_pole_of_first_order_with_other_strengths_on_both_sides():
    widths = [8.0, 9.0, 12.0, 16.0]
    risks = np.array([[1 / 2, 1.0, 3 / 2, 3 / 6], [5 / 4, 5 / 3, 1 / 3, 1 / 7]])
    np.testing.assert_allclose(pole(widths, risks), [10.0, (12 + 9) / 2])
