"""Closed forms of the concept prompts against counting and against an integrated flow."""

import itertools

import numpy as np
import pytest

from flbook.lectures.in_context_learning.concept_prompts import concept_errors as concepts


@pytest.mark.parametrize("score", [0.0, 0.09, 0.4, 1.0])
@pytest.mark.parametrize("contains", [False, True])
def test_the_staircase_counts_prompts(score, contains):
    wrong, total = 0.0, 0
    for signs in itertools.product((1, -1), repeat=6):
        if contains and 1 not in signs:
            continue
        vote = sum(s * np.exp(s * score) for s in signs)
        wrong, total = wrong + (0.5 if abs(vote) < 1e-12 else vote < 0), total + 1
    assert concepts.frozen_error(score, 6, contains) == pytest.approx(wrong / total)


def test_the_last_step_of_the_staircase():
    last = np.log(7) / 2
    assert concepts.frozen_error(last - 1e-6, 8) > 0 and concepts.frozen_error(last + 1e-6, 8) == 0
    assert concepts.one_sided(2) == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="n must be at least 1"):
        concepts.frozen_error(1.0, 0)


def test_the_floor_is_a_minimum():
    margin = np.linspace(0, 12, 2001)
    for n in (2, 5):
        loss = (1 - 2.0**-n) * np.log1p(np.exp(-margin)) + 2.0**-n * np.log1p(np.exp(margin))
        assert loss.min() == pytest.approx(concepts.cross_entropy_floor(n), rel=1e-4)


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
