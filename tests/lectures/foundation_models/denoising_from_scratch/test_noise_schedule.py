"""The schedule against exact values, and its posterior against Bayes' rule for Gaussians."""

import numpy as np
import pytest
import torch

from flbook.lectures.foundation_models.denoising_from_scratch.noise_schedule import NoiseSchedule

SCHEDULE = NoiseSchedule()


def test_exact_values():
    assert SCHEDULE.kept(1000) == pytest.approx(4.0358e-5, rel=1e-4)
    assert SCHEDULE.kept(500) == pytest.approx(0.07859, rel=1e-3)
    assert SCHEDULE.half() == 260 and SCHEDULE.kept(259) >= 0.5 > SCHEDULE.kept(260)
    assert SCHEDULE.kept(0) == 1 and SCHEDULE.kept(1) == pytest.approx(1 - 1e-4)


def test_the_posterior_is_that_of_ho_et_al():
    for t in (1, 2, 300, 1000):
        beta = 1e-4 + (0.02 - 1e-4) * (t - 1) / 999
        after, before = SCHEDULE.kept(t), SCHEDULE.kept(t - 1)
        own, seen, variance = SCHEDULE.posterior(t, t - 1)
        assert own == pytest.approx(before**0.5 * beta / (1 - after))
        assert seen == pytest.approx((1 - beta) ** 0.5 * (1 - before) / (1 - after), abs=1e-12)
        assert variance == pytest.approx(beta * (1 - before) / (1 - after), abs=1e-15)
    np.testing.assert_allclose(SCHEDULE.posterior(1, 0), (1, 0, 0), atol=1e-12)


@pytest.mark.parametrize("t, s", [(300, 299), (300, 100), (1000, 20)])
def test_the_posterior_is_bayes_rule(t, s):
    """Draw x_s, then x_t from it: the mean and variance of x_s given x_t, from their joint covariance."""
    after, before = SCHEDULE.kept(t), SCHEDULE.kept(s)
    alpha = after / before
    own, seen, variance = SCHEDULE.posterior(t, s)
    gain = alpha**0.5 * (1 - before) / (1 - after)  # cov(x_s, x_t | x_0) / var(x_t | x_0)
    assert seen == pytest.approx(gain) and own + gain * after**0.5 == pytest.approx(before**0.5)
    assert variance == pytest.approx((1 - before) * (1 - gain * alpha**0.5))


def test_noised_samples_have_the_variance_of_the_formula():
    x, t = torch.full((2, 3, 1, 2, 2), 2.0), torch.tensor([[0, 260, 1000]] * 2)
    clean, noise = SCHEDULE.noised(x, t, torch.zeros_like(x)), SCHEDULE.noised(torch.zeros_like(x), t, x)
    torch.testing.assert_close(clean.square() + noise.square(), torch.full_like(x, 4.0))
    torch.testing.assert_close(clean[:, 0], x[:, 0])


@pytest.mark.usefixtures("without_type_checks")
def test_bad_input_gets_a_sentence():
    with pytest.raises(ValueError, match="^t must be a whole number from 0 to 1000"):
        SCHEDULE.kept(1001)
    with pytest.raises(ValueError, match="^t must"):
        SCHEDULE.kept(2.5)
    with pytest.raises(ValueError, match="^s must be below t = 5"):
        SCHEDULE.posterior(5, 5)
    with pytest.raises(ValueError, match="^first must be a number in"):
        NoiseSchedule(first=0.0)
    with pytest.raises(ValueError, match="^last must be a number in"):
        NoiseSchedule(last=1.0)
