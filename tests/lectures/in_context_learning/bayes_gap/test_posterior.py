"""Closed forms of the doubt: against quadrature by scipy, simulation, their limits, and enumeration by hand."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from flbook.lectures.in_context_learning.bayes_gap import posterior as theory


def under_plus(of):
    """E of(y) for y = 1 + Laplace noise."""
    return quad(lambda y: of(y) * 0.5 * math.exp(-abs(y - 1)), -40, 40, points=[-1, 1], limit=400)[0]


def test_one_label_by_quadrature():
    doubt = under_plus(lambda y: math.cosh(max(-1, min(1, y))) ** -2)
    assert theory.doubt(np.array([1]))[0] == pytest.approx(doubt, rel=1e-9)


def test_many_labels_by_simulation():
    rng = np.random.default_rng(0)
    evidence = np.clip(1 + rng.laplace(size=(200_000, 6)), -1, 1).cumsum(1)
    np.testing.assert_allclose((np.cosh(evidence) ** -2).mean(0), theory.doubt(np.arange(1, 7)), rtol=0.02)


def test_cells():
    plus, minus = theory.chances(5)
    assert plus.sum() == pytest.approx(1) and minus == pytest.approx(plus[::-1])
    assert plus[-1] == pytest.approx(0.5), "half of the labels lie above f = 1"
    np.testing.assert_allclose(theory.evidence(5)[[0, 2, 4]], [-1, 0, 1], atol=1e-12)
    # two labels told apart by cells, enumerated
    pairs, other = np.outer(plus, plus), np.outer(minus, minus)
    assert theory.doubt(np.array([2]), 5)[0] == pytest.approx((2 * pairs * other / (pairs + other)).sum(), rel=1e-9)
    gaps = [theory.feature_gap(np.array([3]), m)[0] for m in (4, 6, 10, 18, 34)]
    assert min(gaps) > 0
    np.testing.assert_allclose(np.diff(np.log(gaps))[1:], -2 * math.log(2), rtol=0.02)


def test_the_limit():
    k = np.array([400, 1600])
    ratio = theory.doubt(k) / theory.doubt_limit(k)
    assert 0 < 1 - ratio[1] < 1 - ratio[0] < 0.02


def test_the_reported_constant():
    divergence = under_plus(lambda y: 2 * max(-1, min(1, y)))
    square = under_plus(lambda y: 4 * max(-1, min(1, y)) ** 2)
    expected = divergence**2 / (8 * (square - divergence**2))
    assert theory.reported_rate() == pytest.approx(expected) and expected < math.log(math.e / 2)


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
        (lambda: theory.doubt(np.array([0])), "k must be at least 1"),
        (lambda: theory.edges(2), "m must be at least 3"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            call()
