"""Errors by importance sampling against a law that is known: two filters that carry the samples of one label each."""

import numpy as np
import pytest
import torch
from scipy.special import ndtr

from flbook.data import SignalNoise
from flbook.dynamics.gram import GramTraining
from flbook.dynamics.inner_products import Gram
from flbook.lectures.benign_overfitting.relu_heatmap.averages import (
    averaging_error,
    two_averages_error,
)
from flbook.lectures.benign_overfitting.shared.rare_noise import log_error
from flbook.models import TwoLayerCNN


def two_filters(a: float) -> tuple[GramTraining, dict]:
    """One filter of each sign, orthogonal, of length 1, which answer a to the signal: by their initial weights."""
    zero, a = torch.zeros(1, dtype=torch.float64), torch.tensor([a, -a], dtype=torch.float64)
    gram = Gram(mu_mu=torch.tensor(1.0, dtype=torch.float64), mu_xi=zero, xi_xi=torch.ones(1, 1, dtype=torch.float64),
                w_mu=a, w_xi=torch.zeros(2, 1, dtype=torch.float64), w_w=torch.eye(2, dtype=torch.float64),
                b=torch.zeros(2, dtype=torch.float64))  # fmt: skip
    label = torch.ones(1, dtype=torch.float64)
    problem = GramTraining(gram, label, label, scale=1.0)
    return problem, problem.start()


@pytest.mark.parametrize("a", [0.0, 0.5, 1.5, 4.0, 7.0])
def test_two_filters_err_with_the_probability_of_the_closed_form(a):
    problem, params = two_filters(a)
    exact = two_averages_error(2 * a**2)
    if a == 0:
        exact += 0.25  # where both are silent nothing says the class, and a missing sign counts as an error
    assert log_error(problem, params, 2**15).exp().item() == pytest.approx(exact, rel=0.02)


def test_the_closed_form_lies_between_its_bounds_and_falls_at_its_rate():
    r = np.geomspace(0.01, 300, 40)
    a = 0.8 * np.sqrt(r / 2)
    error = two_averages_error(r, flip_prob=0.1)
    assert (ndtr(-a) / 2 < error).all() and (error < ndtr(-a)).all()
    assert two_averages_error(r[3], flip_prob=0.1) == pytest.approx(error[3])
    rng = np.random.default_rng(0)
    z, other = rng.standard_normal((2, 1_000_000))
    counted = (np.maximum(other, 0) - np.maximum(z, 0) > 0.8).mean()
    assert two_averages_error(2.0, flip_prob=0.1) == pytest.approx(counted, abs=0.002)


def test_the_averaging_classifier_errs_on_drawn_data_as_its_inner_products_say():
    data = SignalNoise(n=10, d=60, mu_norm=2.0, sigma_xi=1.5, flip_prob=0.2)
    sample, fresh = data.draw(seed=3), data.draw_test(100_000, seed=4)
    problem = GramTraining.of(data, sample, TwoLayerCNN(60, 2, dtype=torch.float64))
    w = (sample.observed[:, None] * sample.x.sum(-2)).mean(0)
    counted = (fresh.x.sum(-2) @ w * fresh.y <= 0).double().mean().item()
    assert averaging_error(problem, 1.5).item() == pytest.approx(counted, abs=0.005)
