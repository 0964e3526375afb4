"""Shares of a push along the unstable direction, against Monte Carlo and limits."""

import numpy as np
import pytest

from flbook.lectures.in_context_learning.perturbed_flow import saddles

VALUES = np.array([-2.0, 0.0, 0.0, 1.0, 1.0])


def test_shares():
    assert saddles.guided_share(VALUES) == pytest.approx(4 / 6)
    assert saddles.guided_share(np.stack([VALUES, 3 * VALUES])).tolist() == pytest.approx([4 / 6, 4 / 6])


def test_the_lead_is_the_difference_of_mean_logarithms():
    z = np.random.default_rng(1).standard_normal((200000, 5))
    shaped = z[:, 0] * VALUES[0] / np.linalg.norm(VALUES)  # of equal mean energy, along the first direction
    measured = np.log(np.abs(shaped)).mean() - np.log(np.abs(z[:, 1]) / 5**0.5).mean()
    assert saddles.lead(saddles.guided_share(VALUES), 5) == pytest.approx(measured, abs=0.02)
    assert saddles.lead(np.array(1 / 100), 10) < 0 == saddles.lead(np.array(1 / 10), 10)


def test_lanczos_finds_the_direction_when_it_has_seen_all():
    shares = [saddles.krylov_share(VALUES, products, 0) for products in (0, 1, 2)]
    assert shares[0] < shares[1] < shares[2] == pytest.approx(1.0)  # three different eigenvalues
