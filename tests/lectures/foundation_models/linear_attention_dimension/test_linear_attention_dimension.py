"""What the sweep counts: the worst function of the unit ball, by hand, and the least number of features."""

import math

import numpy as np
import pytest

from flbook.lectures.foundation_models import linear_attention_dimension
from flbook.lectures.foundation_models.linear_attention_dimension import distillation_tables as tables
from flbook.lectures.foundation_models.linear_attention_dimension.gaussian_tokens import GaussianTokens


def test_the_worst_function_is_worse_than_all_others():
    tokens, lam = GaussianTokens(2, 0.3, 5), 0.05
    z = tokens.draw_features(12, "wide", lam)
    features = tokens.coordinates(z) * np.sqrt(tokens.eigenvalues)
    features /= np.sqrt(tokens.density(z, "wide", lam))[:, None]
    operator = np.linalg.inv(features.T @ features / 12 + lam * np.eye(len(tokens.eigenvalues)))
    f = np.sqrt(tokens.eigenvalues) * np.random.default_rng(0).standard_normal((200, len(tokens.eigenvalues)))
    ball = f / np.sqrt((f**2 / tokens.eigenvalues).sum(1, keepdims=True))
    left = (ball @ operator * ball).sum(1)
    worst = linear_attention_dimension.worst(tokens.whitened(z, "wide", lam), tokens.filling(lam))
    root = np.sqrt(tokens.eigenvalues)
    assert left.max() < worst == pytest.approx(np.linalg.eigvalsh(root * operator * root[:, None])[-1], rel=1e-8)


def test_the_least_number_of_features_is_enough_and_the_one_before_is_not():
    tokens, lam = GaussianTokens(2, 0.4, 8), 0.02
    rows, filling = tokens.whitened(tokens.draw_features(256, "optimal", lam), "optimal", lam), tokens.filling(lam)
    least = int(linear_attention_dimension.features_found(rows, filling))
    worst = linear_attention_dimension.worst
    assert worst(rows[:least], filling) <= 4 < worst(rows[: int(least / 1.1)], filling)
    assert linear_attention_dimension.features_found(rows[:4], filling) == math.inf


def test_the_whitened_error_falls_with_more_features():
    tokens = GaussianTokens(1, 0.3, 8)
    rows, filling = tokens.whitened(tokens.draw_features(4000, "optimal", 0.1), "optimal", 0.1), tokens.filling(0.1)
    few, many = (linear_attention_dimension.spread(rows[:m], filling) for m in (40, 4000))
    assert many < few / 3
    exact = (tokens.degrees(0.1) ** 2 - (filling**2).sum()) / 40
    blocks = rows.reshape(100, 40, -1)
    measured = np.mean([np.sum((b.T @ b / 40 - np.diag(filling)) ** 2) for b in blocks])
    assert measured == pytest.approx(exact, rel=0.2)


def test_no_cell_needs_less_than_the_eigenvalues_above_the_level():
    tiny = linear_attention_dimension.experiment.setting("tiny")
    found = linear_attention_dimension.experiment.measure(tiny)
    for d in found.d.values:
        for lam in found.lam.values:
            least = (tiny.tokens(int(d)).eigenvalues > 4 * lam).sum()
            assert (found.needed.sel(d=d, lam=lam) >= least).all()


def test_the_papers_shares_and_sums():
    assert tables.share_closed(tables.FIXED["softmax"], tables.BY_DEGREES["softmax"], tables.ORIGINAL) == pytest.approx(
        0.753, abs=5e-4)
    assert tables.share_closed(*(tables.PYTHIA[k] for k in ("fixed", "by degrees", "original"))) == pytest.approx(
        0.392, abs=5e-4)
    assert tables.ERROR_FIXED.sum() == pytest.approx(45.68)
    assert tables.ERROR_BY_DEGREES.sum() == pytest.approx(44.10)
    assert tables.CHOSEN.mean() == pytest.approx(64.17, abs=0.005)
    assert tables.DEGREES.max(1).tolist() == [150, 173.8, 24.5, 39.8, 42.1, 66.6, 107.4, 33, 24.9, 29.9, 43.2, 39.8]
