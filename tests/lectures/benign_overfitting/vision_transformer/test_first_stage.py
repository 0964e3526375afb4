"""Closed forms of the first stage: against the flow integrated in small steps, and in limits that are known."""

import numpy as np
import pytest
import xarray as xr

from flbook.lectures.benign_overfitting.vision_transformer import first_stage


def flow(u, w, n_snr2, tokens, until, steps=20000):
    """Values, queries and keys of orthogonal tokens in the learning time of mean pooling, with n = 1; u, w at the end.

    Returns the margin, too.
    """
    h, theta = until / steps, 0.0
    fast = n_snr2 + 2 * (tokens - 1)
    slow = (tokens - 1) * (n_snr2 * (tokens - 1) + 2) / tokens**2
    for _ in range(steps):
        middle = theta + h / 2
        lead = middle * n_snr2 / (4 * tokens) - middle / (2 * tokens)  # value of the signal less that of the noise
        speed = h * lead / (4 * tokens**2)
        u, w, theta = u + speed * fast * w, w + speed * slow * u, theta + h
    margin = (theta * n_snr2 / (4 * tokens) + (tokens - 1) * theta / (2 * tokens)) / tokens
    return u, w, margin


@pytest.mark.parametrize("n_snr2", [0.5, 2.0, 6.0])
def test_scores_follow_the_flow(n_snr2):
    u, w = np.array([0.3, -0.1]), np.array([-0.2, 0.4])
    u_end, w_end, z = flow(u, w, n_snr2, 8, until=30.0)
    told = first_stage.score_gap(*(xr.DataArray(part, dims="component") for part in (u, w)), n_snr2, 8, z)
    np.testing.assert_allclose(told, u_end @ w_end / 7, rtol=1e-3)


def test_the_margin_solves_its_equation():
    z = first_stage.margin(4.0, 16, 0.6, 400)
    assert z + np.exp(z) == pytest.approx(1 + 0.6 * 34 * 400 / 32)


def test_nothing_grows_at_two():
    assert first_stage.growth(2.0, 16, 5.0) == 0
    assert first_stage.growth(1.0, 16, 5.0) < 0 < first_stage.growth(3.0, 16, 5.0)


def test_the_border_falls_towards_two_with_time_and_knows_n_by_the_start_only():
    late = [first_stage.border(4, steps=steps) for steps in (400, 10**6, 10**60)]
    assert late[0] > late[1] > late[2] > 2 and late[2] < 2.1
    assert first_stage.border(16, sigma_0=0.02) == pytest.approx(first_stage.border(4, sigma_0=0.01))
    with pytest.raises(ValueError, match="sign"):
        first_stage.border(4, sigma_0=1e4)
