"""Closed forms of attention on a basis: against brute force, hand calculation, and their own limits."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from flbook.lectures.in_context_learning.nonparametric_rates import power_laws as theory


def test_the_best_gamma_is_the_best():
    variance = np.array([1.0, 0.3, 0.1, 0.05])
    best = theory.best_attention(variance, 0.5, 10, keep=3)
    v = (variance.sum() + 0.25 - variance) / 10

    def risk(gamma):
        return 0.05 + sum((1 - g) ** 2 * lam + g**2 * one for g, lam, one in zip(gamma, variance, v, strict=False))

    assert best.risk == pytest.approx(risk(best.gamma)) == pytest.approx(best.bias + best.shrinkage + best.spread)
    for j in range(3):
        found = minimize_scalar(lambda g, j=j: risk([g if k == j else one for k, one in enumerate(best.gamma)]))
        assert found.x == pytest.approx(best.gamma[j], abs=1e-6)
    assert best.bias == pytest.approx(0.05)
    assert theory.best_attention(np.zeros(2), 0.0, 5).risk == 0


def test_the_series_is_the_sum_and_tends_to_its_asymptote():
    for s in (0.5, 1.0, 2.0):
        lam = theory.power_law(2**20 + 1, s)
        direct = (lam * 0.02 / (lam + 0.02)).sum()
        assert float(theory.series_risk(100.0, s, 2.0)) == pytest.approx(direct, rel=2e-3 if s < 1 else 1e-6)
        error = abs(theory.series_risk(np.array([2.0**10, 2.0**18]), s, 2.0)
                    / theory.asymptote(np.array([2.0**10, 2.0**18]), s, 2.0) - 1)
        assert error[1] < 1e-5 and error[1] < error[0] < 5e-3


def test_power_law_pairs():
    np.testing.assert_allclose(theory.power_law(5, 0.5), [1, 2.5**-2, 2.5**-2, 4.5**-2, 4.5**-2])
    assert 2 * theory.pair_variance(7, 1.0).sum() == pytest.approx(1)


def test_who_does_not_know_the_basis_expects_a_rougher_function():
    expected = theory.expected_variance(theory.pair_variance(100, 1.0), 2, 3)
    assert len(expected) == 30000 and 2 * expected.sum() == pytest.approx(1)
    k = np.array([3000.0, 27000.0])
    assert theory.fitted_slope(k, expected[k.astype(int)]) == pytest.approx(-2, abs=0.05), "k^(-2s/p - 1)"


def test_the_three_terms_by_hand():
    left_out, prompt, pretraining = theory.risk_terms(np.array([1.0, 0.5]), 1.0, 10, 1, 12)
    assert left_out == pytest.approx(0.5) and prompt == pytest.approx(0.15 / 1.15)
    assert pretraining == pytest.approx((0.5 + 0.15 / 1.15 + 1) / 10)
    assert theory.risk_terms(np.array([1.0, 0.5]), 1.0, 10, 2, 5)[2] == np.inf


def test_no_attention_is_below_the_least_risk():
    variance = theory.power_law(9, 1.0)
    assert theory.least_risk(np.array([1.0, 0.5]), 2.0, 4) == pytest.approx(1 / 2 + 0.5 / 1.5)
    for n in (1, 30, 1000):
        assert theory.least_risk(variance, 0.5, n) < theory.best_attention(variance, 0.5, n).risk


def test_fitted_slopes():
    x = np.array([1.0, 2.0, 8.0])
    assert theory.fitted_slope(x, 3 * x**-0.5) == pytest.approx(-0.5)


def test_a_prompt_of_length_0_is_refused():
    for call in (theory.best_attention, theory.least_risk):
        with pytest.raises(ValueError, match="n must be at least 1"):
            call(np.ones(2), 0.1, 0)
