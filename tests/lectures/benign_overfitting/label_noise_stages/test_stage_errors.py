"""Errors too rare to count: against counting where they are not, and constants in closed form."""

import pytest
import torch

from flbook import measures
from flbook.dynamics.wishart import draw_training
from flbook.lectures.benign_overfitting.label_noise_stages import network_parts, stage_errors
from flbook.lectures.benign_overfitting.label_noise_stages.start_size import trained
from flbook.lectures.benign_overfitting.shared.rare_noise import log_error
from flbook.training.optimizers import GradientDescent


def some(n_snr2=(1.0, 2.0), d=100, n=20, m=5):
    """Networks halfway through training, at errors that can be counted."""
    task = draw_training(n, m, (d,), n_snr2=n_snr2, flip_prob=(0.2,), start=0.001, seed=(0, 1))
    return task, trained(task, GradientDescent(0.05 * n * m / d), 10, task.start())


def test_rare_errors_are_the_counted_ones():
    task, params = some()
    counted = measures.test_error(task, params, 2**15)
    assert counted.min() > 1e-3
    torch.testing.assert_close(log_error(task, params, 2**13).exp(), counted, rtol=0.05, atol=0)


def test_the_constant_is_that_of_the_least_noise_that_errs():
    d = 10**6
    task, params = some((5.0,), d=d, n=100, m=10)
    minus_log = -log_error(task, params)
    constant = network_parts.error_constant(task, params, torch.tensor([5.0]).double())
    torch.testing.assert_close(minus_log.mean() * 100 / d, constant.mean(), rtol=0.05, atol=0)


def test_closed_constants():
    early = network_parts.first_constant(1e6, 0.2, 0.5)
    assert early == pytest.approx(1e6 / 2, rel=1e-3), "no noise in the filters"
    weak = network_parts.first_constant(1e-4, 0.2, 0.5)
    assert weak == pytest.approx((0.6 * 1e-4) ** 2, rel=1e-3)
    assert network_parts.last_constant(5.0, 0.2, 0.8) < network_parts.first_constant(5.0, 0.2, 0.8)
    by_hand = 1 / ((0.8 * 0.7**2 + 0.2 * 1.3**2) / 0.3**2 + 2 / 1.6)  # b = 1, s = 0.3
    assert network_parts.last_constant(1.6, 0.2, 0.8) == pytest.approx(by_hand)


def test_the_error_falls_with_d_over_n():
    run = stage_errors.experiment.measure("tiny").squeeze()
    assert (run.minus_log_first.diff("ratio") > 0).all()
    assert (run.minus_log_last < run.minus_log_first).all()
