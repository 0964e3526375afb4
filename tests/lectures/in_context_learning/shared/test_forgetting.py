"""Closed forms against the paper's tables, sums by hand, and simulation."""

import numpy as np
import pytest

from flbook.lectures.in_context_learning.shared import forgetting as theory


@pytest.mark.parametrize(("d", "n", "loss"), [(10, 10, 2.6671), (10, 80, 0.6254), (20, 4, 8.4484), (4, 30, 0.2954)])
def test_the_papers_tables(d, n, loss):
    assert theory.mamba_risk(np.ones(d), n) / 2 == pytest.approx(loss, abs=5e-5)


def test_effective_samples_are_those_of_the_weights():
    omega = theory.weights(0.9, 7)
    assert theory.effective_samples(0.9, 7) == pytest.approx(omega.sum() ** 2 / (omega**2).sum(), rel=1e-12)
    assert theory.effective_samples(1.0, 7) == 7
    assert theory.effective_samples(theory.decay(5000), 5000) / 5000 == pytest.approx(2 / (3 * np.log(2)), rel=1e-3)


def test_risk_of_the_best_matrix_is_its_risk():
    covariance = np.array([[2.0, 0.5], [0.5, 1.0]])
    omega, noise = theory.weights(0.8, 6), 0.7
    gamma = theory.attention_matrix(covariance, omega, noise)
    one, two = omega.sum(), (omega**2).sum()
    square = covariance @ covariance
    second = (one**2 + two) * square + two * (np.trace(covariance) + noise**2) * covariance
    risk = np.trace(covariance @ (gamma @ second @ gamma.T + np.eye(2) - 2 * one * gamma @ covariance))
    assert theory.attention_risk(covariance, theory.effective_samples(0.8, 6), noise) == pytest.approx(risk, rel=1e-12)
    assert theory.attention_risk(np.ones(5), 20) == pytest.approx(5 * 6 / 26, rel=1e-12)


def test_the_untrained_length_is_the_trained_one_there():
    assert theory.untrained_length_risk(4, 20, 20) == pytest.approx(float(theory.mamba_risk(np.ones(4), 20)), rel=1e-12)


def test_the_kalman_filter_is_the_best_decay_of_a_long_prompt():
    alpha, risk = theory.kalman(4, 0.97, 0.5)
    assert theory.drifting_risk(4, 600, alpha, 0.97, 0.5) == pytest.approx(risk, rel=1e-9)
    assert min(theory.drifting_risk(4, 600, alpha + step, 0.97, 0.5) for step in (-0.01, 0.01)) > risk


def test_a_task_with_perfect_memory_is_the_fixed_one():
    expected = theory.mamba_risk(np.ones(3), 9, 0.4, alpha=0.9)
    assert theory.drifting_risk(3, 9, 0.9, 1.0, 0.4) == pytest.approx(float(expected), rel=1e-12)
