"""The averaging classifier: simulation, the closed form, and two exact ways that must agree."""

import numpy as np
import pytest
import torch
from scipy.special import ndtr

from flbook.data.signal_noise import SignalNoise
from flbook.estimators import averaging
from flbook.lectures.signal_noise.signal_noise_model.averaging_classifier import (
    exact_error,
    experiment,
    quadrature_error,
)

TINY = experiment.setting("tiny")


def test_simulation_and_formulas_agree():
    found = experiment.run(TINY)
    np.testing.assert_allclose(found.exact, found.quadrature, atol=1e-10)
    np.testing.assert_allclose(found.test_error.mean("seed"), found.exact, atol=0.06)
    np.testing.assert_allclose(found.closed_form, found.exact, atol=0.02)


def test_the_simulation_is_the_classifier_of_the_page():
    data = SignalNoise(n=10, d=60, mu_norm=(0.5 * 60 / 10) ** 0.25, flip_prob=0.2)
    errors = []
    for seed in range(60, 80):
        sample = data.draw(seed)
        w = averaging(sample.x.sum(-2), sample.observed)
        errors.append(torch.special.ndtr(-(w @ sample.mu) / w.norm()))
    found = experiment.run(TINY).test_error.sel(flip_prob=0.2, r=0.5, seed=3)
    assert float(found) == pytest.approx(float(torch.stack(errors).mean()))


@pytest.mark.parametrize(("delta", "kappa"), [(0.7, 0.4), (3.0, 1.5)])
def test_exact_error_in_one_dimension(delta, kappa):
    # in one dimension the classifier is the sign of a number: it errs if exactly one of two normal numbers is negative
    n, p = 9, (1 - delta / (3 * kappa)) / 2
    by_hand = ndtr(delta) * ndtr(-kappa) + ndtr(-delta) * ndtr(kappa)
    assert exact_error(n, 2 * kappa, 1, p, sigma_xi=2.0) == pytest.approx(by_hand, abs=1e-12)


@pytest.mark.parametrize(("n", "mu", "d", "p"), [(20, 2.1, 400, 0.0), (40, 3.0, 100_000, 0.1), (1000, 5.0, 1000, 0.2)])
def test_two_exact_ways_agree(n, mu, d, p):
    assert exact_error(n, mu, d, p) == pytest.approx(quadrature_error(n, mu, d, p), abs=1e-10)
