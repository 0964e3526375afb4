"""The closed form of a large start: its equation, its limits, answers drawn as its proof says, and networks."""

import math

import numpy as np
import pytest
import torch
from scipy.special import ndtri

from flbook.lectures.benign_overfitting import output_layers
from flbook.lectures.benign_overfitting.output_layers.large_start import (
    large_start_border,
    large_start_error,
    mean_response,
    size_that_matters,
)


def test_the_response_solves_its_equation():
    # two filters: K is 1 or 2, with weights 2/3 and 1/3 once 0 is left out
    one, two = (brute(1 + share * 50.0) / share for share in (0.5, 1.0))
    assert mean_response(2, 50.0) == pytest.approx((2 * one + two) / 3, rel=1e-8)


def brute(total):
    """x with x + e^x = total, by halving."""
    low, high = 0.0, 20.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if middle + math.exp(middle) < total else (low, middle)
    return low


def test_small_steps_reach_the_response():
    c, share, kappa = 0.0, 0.3, 1e-3
    for _ in range(400_000):
        c += kappa / (1 + math.exp(share * c))
    assert share * c == pytest.approx(brute(1 + share * 400.0), rel=1e-3)


def test_error_and_border_are_one_another():
    for s in (0.0, 5.0, 80.0):
        assert large_start_error(large_start_border(s, 0.1, 10, 400.0), s, 0.1, 10, 400.0) == pytest.approx(0.25)
    s_0 = size_that_matters(10, 400.0)
    ratio = large_start_border(100 * s_0, 0.1, 10, 400.0) / large_start_border(50 * s_0, 0.1, 10, 400.0)
    assert ratio == pytest.approx(4.0, rel=1e-3)


def test_noise_meets_start_and_memory_as_the_proof_says():
    m, n, d, h = 10, 20, 10**4, 0.5
    generator = torch.Generator().manual_seed(0)
    draws, c = 20000, mean_response(10, 400.0)
    g, own = (torch.randn(draws, 2, m, *more, generator=generator) for more in ((), (n // 2,)))
    overlap = torch.randn(draws, 2, 1, n // 2, generator=generator) / d**0.5
    memory = (c * (own > 0) * overlap).sum(-1)
    answers = ((h * g).relu() + (g > 0) * memory).mean(-1)
    variance = (answers[:, 0] - answers[:, 1]).var().item()
    r, s = 1.0, h * (d / n) ** 0.5  # the closed form's own variance: A / sqrt(V) is its quantile
    mean = (r * n / d) ** 0.5 / 2 * 0.8 * c
    expected = (mean / ndtri(float(large_start_error(r, s, 0.1, m, 400.0)))) ** 2
    assert variance == pytest.approx(expected, rel=0.05)


def test_networks_of_a_large_start_err_as_it_says():
    s, d = 100.0, 10**8
    r = float(large_start_border(s, 0.1, 10, 400.0))
    setting = output_layers.experiment.setting(
        "border", d=d, sigma_0=(s * 20**0.5 / d,), r=(r / 4, r), seed=tuple(range(24))
    )
    error = output_layers.experiment.measure(setting).test_error.mean("seed").values.flatten()
    np.testing.assert_allclose(error, large_start_error(np.array([r / 4, r]), s, 0.1, 10, 400.0), atol=0.03)
