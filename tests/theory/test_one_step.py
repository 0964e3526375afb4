"""Closed forms of one gradient step: constants, limits, and each risk against a simulation."""

import math

import numpy as np
import pytest
import torch
from scipy.special import erf

from flbook import rng
from flbook.estimators import ridge
from flbook.theory import one_step

TANH, ERF = one_step.parts(np.tanh), one_step.parts(erf)


def test_parts_are_the_known_constants():
    assert TANH.mu_1 == pytest.approx(0.60571, abs=1e-5)
    assert one_step.nonlinear_floor(TANH) == pytest.approx(0.027415, abs=1e-6)
    assert ERF.mu_1 == pytest.approx(2 / math.sqrt(3 * math.pi), rel=1e-12)
    assert ERF.square == pytest.approx(2 / math.pi * math.asin(2 / 3), rel=1e-12)
    assert one_step.parts(lambda z: 3 + 2 * z) == pytest.approx((3, 2, 0), abs=1e-12)
    assert one_step.parts(lambda z: z**2) == pytest.approx((1, 0, math.sqrt(2)), abs=1e-12)


def test_spike_by_hand_and_in_its_limits():
    linear = one_step.Parts(0.0, 1.0, 0.0)
    found = one_step.spike(2.0, 1e12, 3.0, linear, linear, noise=0.0)  # t = 2, all of it along the target
    assert found.singular_value == pytest.approx(math.sqrt(5 * 7 / 4)) and found.overlap == pytest.approx(1 - 7 / 20)
    below = one_step.spike(np.array([0.0, 1.3]), 1e12, 3.0, linear, linear, 0.0)
    assert below.singular_value == pytest.approx(1 + math.sqrt(3)) and (below.overlap == 0).all()
    threshold = one_step.spike_threshold(4.0, 2.0, TANH, TANH, 0.1)
    assert threshold == pytest.approx(2.87, abs=0.01)
    at = one_step.spike(threshold * 1.0001, 4.0, 2.0, TANH, TANH, 0.1)
    assert at.singular_value == pytest.approx(1 + math.sqrt(2), abs=1e-4) and at.overlap == pytest.approx(0, abs=1e-3)
    _, share = one_step.spike_strength(1.0, 4.0, TANH, TANH, 0.1)
    assert one_step.spike(1e6, 4.0, 2.0, TANH, TANH, 0.1).overlap == pytest.approx(share)


def test_spike_is_that_of_a_large_matrix():
    d, width, t = 400, 800, 1.6
    w = rng.normal((width, d), 0, "w") / math.sqrt(d)
    left, right = (torch.nn.functional.normalize(rng.normal((k,), 0, "v"), dim=0) for k in (width, d))
    _, values, vectors = torch.linalg.svd(w + t * left[:, None] * right)
    linear = one_step.Parts(0.0, 1.0, 0.0)
    found = one_step.spike(t, 1e12, 2.0, linear, linear, 0.0)
    assert values[0].item() == pytest.approx(float(found.singular_value), abs=0.05)
    assert (vectors[0] @ right).square().item() == pytest.approx(float(found.overlap), abs=0.06)
    inside = np.linspace(math.sqrt(2) - 1, math.sqrt(2) + 1, 4001)
    density = one_step.bulk_density(inside, 2.0)
    assert np.trapezoid(density, inside) == pytest.approx(1, abs=1e-3)
    assert np.trapezoid(density * inside**2, inside) == pytest.approx(2, abs=1e-3), "mean square of a singular value"


def test_linear_risk_is_that_of_ridge_regression():
    n, d, noise, seeds = 300, 100, 0.5, tuple(range(40))
    x = rng.normal((n, d), seeds, "x")
    y = 0.8 * x[..., 0] + noise * rng.normal((n,), seeds, "noise")
    weights = ridge(x, y, (0.02 * d, 0.5 * d))
    error = weights - 0.8 * torch.eye(1, d).double()
    target = one_step.Parts(0.0, 0.8, 0.0)
    expected = one_step.linear_risk((0.02, 0.5), n / d, target, noise)
    np.testing.assert_allclose(error.square().sum(-1).mean(0), expected, rtol=0.04)


@pytest.mark.parametrize("size, n", [(150, 300), (150, 100), (60, 200)], ids=["tall", "wide", "narrow"])
def test_gaussian_equivalent_risk_is_that_of_a_noisy_linear_model(size, n):
    d, noise, seeds, lam = 100, 0.1, tuple(range(12)), (0.05, 1.0)
    w = rng.normal((size, d), seeds, "w") / math.sqrt(d)
    w[:, :, 0] *= 3  # a first layer that knows the direction
    x, z = rng.normal((n, d), seeds, "x"), rng.normal((n, size), seeds, "z")
    features = (ERF.mu_1 * torch.einsum("snd,skd->snk", x, w) + ERF.mu_2 * z) / math.sqrt(size)
    y = TANH.mu_1 * x[..., 0] + math.sqrt(TANH.mu_2**2 + noise**2) * rng.normal((n,), seeds, "rest")
    weights = ridge(features, y, lam) / math.sqrt(size)
    slope = ERF.mu_1 * torch.einsum("slk,skd->sld", weights, w) - TANH.mu_1 * torch.eye(1, d).double()
    risk = slope.square().sum(-1) + ERF.mu_2**2 * weights.square().sum(-1) + TANH.mu_2**2
    values, vectors = torch.linalg.eigh(w.mT @ w)
    expected = one_step.gaussian_equivalent_risk(
        lam, n, size, values.numpy(), vectors[:, 0].square().numpy(), ERF, TANH, noise)
    assert (expected >= one_step.nonlinear_floor(TANH)).all()
    np.testing.assert_allclose(risk.mean(0), expected.mean(0), rtol=0.05)


def test_one_direction_error():
    assert one_step.one_direction_error(math.sqrt(3), erf, erf) < 1e-25
    kappa = np.linspace(0.5, 3, 251)
    error = one_step.one_direction_error(kappa, np.tanh, np.tanh, 100)
    assert kappa[error.argmin()] == pytest.approx(1.588, abs=0.01)
    assert error.min() == pytest.approx(9.45e-5, rel=0.01)


def test_the_step_is_longer_where_labels_are_noisy():
    linear = one_step.Parts(0.0, 1.0, 0.0)
    length, share = one_step.spike_strength(2.0, 4.0, linear, linear, noise=1.0)
    assert length == pytest.approx(2 * math.sqrt(1 + (1 + 1) / 4)) and share == pytest.approx(1 / 1.5)
