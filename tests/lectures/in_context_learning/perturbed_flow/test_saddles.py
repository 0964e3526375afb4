"""Shares of a push along the unstable direction, against Monte Carlo and limits."""

import numpy as np
import pytest

from flbook.lectures.in_context_learning.perturbed_flow import saddles

VALUES = np.array([-2.0, 0.0, 0.0, 1.0, 1.0])


def test_shares():
    assert saddles.guided_share(VALUES) == pytest.approx(4 / 6) and saddles.effective_rank(VALUES) == pytest.approx(1.5)


def test_mean_logs():
    z = np.random.default_rng(1).standard_normal((200000, 5))
    isotropic = np.log(np.abs(z[:, 0]) / np.linalg.norm(z, axis=1)).mean()
    assert saddles.mean_log_isotropic(5) == pytest.approx(isotropic, abs=0.02)
    shaped = z * VALUES
    assert saddles.mean_log_guided(VALUES) == pytest.approx(
        np.log(np.abs(shaped[:, 0]) / np.linalg.norm(shaped, axis=1)).mean(), abs=0.02)
    assert saddles.mean_log_guided(np.array([-3.0, 0.0])) == pytest.approx(0.0, abs=1e-12)


def test_a_head_start_is_half_a_logarithm_and_may_be_negative():
    many = saddles.head_start(VALUES, 10000) - saddles.head_start(VALUES, 100)
    assert many == pytest.approx(np.log(100) / 2, abs=0.01)
    stiff = np.array([-1.0, 20.0, 20.0, 20.0])
    assert saddles.effective_rank(stiff) > 4 and saddles.head_start(stiff, 4) < 0
