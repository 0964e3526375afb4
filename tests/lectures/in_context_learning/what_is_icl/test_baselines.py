"""Baselines on a prompt: each closed form against its rule on many prompts, and where they are exact by hand."""

import numpy as np
import pytest

from flbook.data import LinearPrompts
from flbook.estimators.in_context import Averaging, GradientStep, LeastSquares
from flbook.lectures.in_context_learning.what_is_icl import baselines as theory

D = 4


def measured(rule, k, noise=0.0):
    prompts = LinearPrompts(k, D, noise).draw(10000, seed=0)
    return float((rule(prompts.context, prompts.query) - prompts.target).square().mean()) / D


@pytest.mark.parametrize("k", [1, 3, 4, 9])
def test_rules_have_the_risk_that_the_formulas_say(k):
    assert measured(LeastSquares(), k) == pytest.approx(float(theory.least_squares(k, D)), abs=0.03)
    assert measured(Averaging(), k) == pytest.approx(float(theory.averaging(k, D)), rel=0.1)
    step = GradientStep(k / (k + D + 1))
    assert measured(step, k) == pytest.approx(float(theory.one_step(k, D)), rel=0.06)


def test_noise_blurs_least_squares_most_near_n_equal_d():
    for k in (1, 9):
        assert measured(LeastSquares(), k, 0.5) == pytest.approx(float(theory.least_squares(k, D, 0.5)), rel=0.08)
    risk = theory.least_squares([0, 3, 4, 5], D, noise=0.5)
    assert risk[0] == 1 and np.isinf(risk[1:]).all()
    assert theory.least_squares([2, 8], D, noise=0.0).tolist() == [0.5, 0.0]


def test_the_step_is_the_best_multiple_of_the_average():
    """Risk of c times the average: c² (k + d + 1)/k - 2 c + 1, least at c = k/(k + d + 1)."""
    k, c = 6, np.linspace(0, 2, 2001)
    risk = c**2 * (k + D + 1) / k - 2 * c + 1
    assert risk.min() == pytest.approx(float(theory.one_step(k, D)), abs=1e-6)
    assert risk[1000] == pytest.approx(float(theory.averaging(k, D)))
