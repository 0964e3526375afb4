"""Closed forms of the Bayes gap: against quadrature by scipy, their limits, and enumeration by hand."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from flbook.lectures.in_context_learning.bayes_gap import posterior as theory

K = np.array([1, 4, 30])


def expected(of, m):
    law = lambda z: of(z) * math.exp(-((z - m) ** 2) / (2 * m)) / math.sqrt(2 * math.pi * m)  # noqa: E731
    return quad(law, m - 14 * m**0.5, m + 14 * m**0.5, epsabs=0, epsrel=1e-10, limit=400, points=[0, m])[0]


def test_integrals():
    for k, variance, gap in zip(K, theory.sign_posterior_variance(K, 2.0), theory.linear_gap(K, 2.0), strict=True):
        assert variance == pytest.approx(expected(lambda z: math.cosh(z) ** -2, k / 4), rel=1e-8)
        assert gap == pytest.approx(expected(lambda z, k=k: (math.tanh(z) - z * 4 / (k + 4)) ** 2, k / 4), rel=1e-8)
    np.testing.assert_allclose(theory.sign_posterior_variance(np.array([10, 40, 160]), 2.0),
                               [0.168793025, 2.41131474e-3, 3.96720716e-10], rtol=1e-7)


def test_calibration_and_the_lines_risk():
    variance = theory.sign_posterior_variance(K, 1.5)
    np.testing.assert_allclose(1 - theory.sign_posterior_mean(K, 1.5), variance, rtol=1e-8)
    np.testing.assert_allclose(theory.linear_gap(K, 1.5) + variance, 2.25 / (K + 2.25))


def test_the_asymptote():
    k = np.array([400, 1600])
    ratio = theory.sign_posterior_variance(k, 2.0) / theory.sign_asymptote(k, 2.0)
    assert 0 < 1 - ratio[1] < 1 - ratio[0] < 0.02


def test_rates():
    assert theory.reported_sign(2.0) == pytest.approx(0.03125), "a quarter of the Chernoff information 1/(2 σ²)"
    z, weight = np.polynomial.hermite_e.hermegauss(60)
    bhattacharyya = np.exp(-2 * z**2 / (8 * 1.5**2)) @ weight / math.sqrt(2 * math.pi)
    assert theory.planes_rate(1.5) == pytest.approx(-math.log(bhattacharyya))
    assert theory.reported_planes(1.5) == pytest.approx(1 / (8 * (2.25 + 2)))
    assert theory.reported_planes(0.5) < theory.planes_rate(0.5)


def test_the_floor_of_a_mean_without_its_count():
    law = ((-2.0, 0.0, 2.0), (0.25, 0.5, 0.25))
    assert theory.pooled_floor(*law, p=1) == pytest.approx(0, abs=1e-15)
    # y = 1 once (chance 3/8, Bayes 1/3) or twice (5/32, 3/5), and the same at y = -1
    one, two = 3 / 8 / 2, 5 / 32 / 2
    assert theory.pooled_floor(*law, p=2) == pytest.approx(2 * one * two / (one + two) * (3 / 5 - 1 / 3) ** 2)
    assert theory.pooled_floor(*law, p=2) == pytest.approx(2 / 255, rel=1e-12)


def test_bad_input_is_one_sentence():
    for call, sentence in [
        (lambda: theory.pooled_floor((0.0,), (1.0,), 0), "p must be at least 1"),
        (lambda: theory.pooled_floor((0.0, 1.0), (1.0, 0.0), 1), "chances must be positive"),
        (lambda: theory.sign_posterior_variance(np.array([0]), 1.0), "k must be at least 1 and noise positive"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            call()
