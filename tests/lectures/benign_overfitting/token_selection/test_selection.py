"""Closed forms of token selection against brute force, simple cases and each other."""

import numpy as np
import pytest
from scipy.special import ndtr

from flbook import theory
from flbook.lectures.benign_overfitting.token_selection import selection


def test_the_chance_of_the_largest():
    assert selection.chance_of_largest(0.0, [0.0] * 7) == pytest.approx(1 / 8, rel=1e-6), "all alike"
    assert selection.chance_of_largest(1.3, [0.0]) == pytest.approx(ndtr(1.3 / np.sqrt(2)), rel=1e-9), "two numbers"
    normal = np.random.default_rng(0).normal(size=(200_000, 3)) + [1.0, 0.5, -0.5]
    share = (normal.argmax(1) == 0).mean()
    assert selection.chance_of_largest(1.0, [0.5, -0.5]) == pytest.approx(share, abs=0.005)


def test_the_gain_of_strong_signals_and_of_none():
    right, hints = 0.85, 0.15  # 1 - mean share; the mean share
    assert selection.gain(1e3, flip_prob=0.0) == pytest.approx(right)
    assert selection.gain(1e3, flip_prob=0.3) == pytest.approx(0.7 * right + 0.3 * (0.1 - hints)), "opposed hint"
    assert selection.gain(0.0, flip_prob=0.2) == pytest.approx(0.0, abs=1e-9), "any of eight"


@pytest.mark.parametrize("varrho", [0.0, 0.2])
def test_the_least_norm_by_brute_force(varrho, monkeypatch):
    """Two signals and orthogonal noise; one sample a class with a wrong label has chosen token 4."""
    n, tokens, mu_norm, d = 10, 8, 6.0, 300
    mu = np.zeros((2, 2 + n * tokens))
    mu[0, 0] = mu[1, 1] = mu_norm
    x = np.sqrt(d) * np.eye(2 + n * tokens)[2:].reshape(n, tokens, -1)
    for i in range(n):
        x[i, 0] += mu[i % 2]
        x[i, 1] += varrho * mu[i % 2]
        x[i, 2] += varrho * mu[1 - i % 2]
    chosen = [3 if i < 2 else 0 for i in range(n)]
    rows = [x[i, k] - x[i, other] for i, k in enumerate(chosen) for other in range(tokens) if other != k]
    u = np.linalg.lstsq(np.array(rows), np.ones(len(rows)), rcond=None)[0]
    carries = selection.signal_shares(varrho, tokens)
    monkeypatch.setattr(selection, "gain", lambda *_: carries[chosen].mean() - carries.mean())
    pull, length = selection.least_norm(n, mu_norm, d, varrho=varrho)
    assert pull == pytest.approx(mu[0] @ u, rel=1e-9) and pull == pytest.approx(mu[1] @ u, rel=1e-9)
    assert length == pytest.approx(np.linalg.norm(u), rel=1e-9)
    assert np.min(np.linalg.lstsq(np.array(rows).T, u, rcond=None)[0]) > 0, "all demands hold the query back"


def test_a_weak_signal_has_the_ratio_of_the_root_of_r():
    weak = selection.selection_ratio(20, 40.0, 10**9, varrho=0.0)  # strong in a token, weak in the query
    assert weak == pytest.approx(0.675 / (2 * np.sqrt(7 / 8)) * np.sqrt(theory.kou_variable(20, 40.0, 10**9)), rel=1e-3)


def test_errors_of_uniform_and_of_hard_attention():
    assert selection.uniform_attention_error(5.0) == pytest.approx(0.105650, abs=1e-6)
    assert selection.clock_error(0.0, 20, 5.0, 4500) == pytest.approx(selection.uniform_attention_error(5.0))
    ratio = selection.selection_ratio(20, 5.0, 4500)
    hard = selection.hard_attention_error(ratio, 5.0)
    assert selection.clock_error(1e300, 20, 5.0, 4500) < hard < 0.5
    assert selection.hard_attention_error(50.0, 5.0) == pytest.approx(ndtr(-5 / np.sqrt(2)), rel=1e-3)
    assert selection.hard_attention_error(0.0, 5.0) == pytest.approx(7 / 16 + ndtr(-5 / np.sqrt(2)) / 8)
