"""Closed forms of the concept prompts against counting and against an integrated flow."""

import numpy as np
import pytest

from flbook.lectures.in_context_learning.concept_prompts import concept_errors as concepts


def test_errors_by_counting():
    assert concepts.one_sided(2) == pytest.approx(1 / 3)
    noise = np.random.default_rng(0).normal(size=200000)
    assert concepts.known_error(0.8, 1.5) == pytest.approx(np.mean(1.5 + 0.8 * noise < 0), abs=2e-3)


def test_the_criterion_says_where_the_saddle_is_left():
    generator = np.random.default_rng(1)
    u, v = generator.normal(size=(2, 300, 6)) * 0.1
    slope, b, d, active = generator.normal(size=300) * 0.02, 0.8, 1.3, 0.4
    plus, minus = (np.linalg.norm(u + sign * v, axis=1) for sign in (1, -1))
    predicted = concepts.basin(plus, minus, slope, active, b, d)
    for _ in range(3000):
        score = (u * v).sum(1)
        step = np.where(np.abs(score) < 1, 0.05, 0.0)
        u, v = u + (step * b**2 * slope)[:, None] * v, v + (step * b**2 * slope)[:, None] * u
        slope = slope + step * active * d**2 * score
    sure = np.abs(predicted) > np.quantile(np.abs(predicted), 0.05)
    assert (((u * v).sum(1) > 0) == (predicted > 0))[sure].all()
