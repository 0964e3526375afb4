"""Escape from saddles at a tiny preset: the saddles are saddles, and what each noise does to them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook.lectures.in_context_learning import perturbed_flow as lecture
from flbook.lectures.in_context_learning.perturbed_flow import BUILD, SADDLES, Setting
from flbook.lectures.in_context_learning.perturbed_flow.perturbation import norm
from flbook.lectures.in_context_learning.perturbed_flow.saddles import guided_share
from flbook.lectures.in_context_learning.shared import mean_field
from flbook.lectures.in_context_learning.shared.mean_field import Particles, Population

TINY = lecture.experiment.setting("tiny")


@pytest.mark.parametrize("name", SADDLES)
def test_a_saddle_is_one(name):
    saddle = BUILD[name](TINY)
    about = lecture.course(TINY, saddle)
    assert norm(saddle.functional.slope(saddle.theta)[0]) < 1e-12 and about.rate > 1e-3
    v = torch.randn(saddle.theta.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    whole, inner = saddle.functional.whole(saddle.theta, v), saddle.functional.interaction(saddle.theta, v)
    local = (whole - inner).abs().max() / whole.abs().max()
    assert (local < 1e-12) == (name != "low rank"), "no local part, unless the crowd lies in a subspace"


def test_the_attention_saddle_is_a_point_of_the_attention_landscape():
    saddle = BUILD["attention"](TINY)
    theta = saddle.theta + 0.1
    particles, population = Particles(theta[:, :2], theta[:, 2:]), Population(saddle.x, saddle.f)
    torch.testing.assert_close(saddle.functional.loss(theta), mean_field.loss(particles, population))
    velocity, _ = mean_field.velocity(particles, population)
    torch.testing.assert_close(saddle.functional.slope(theta)[0], -torch.cat(velocity, -1))
    assert saddle.functional.loss(saddle.theta).item() == pytest.approx(1 / 4)


def test_a_crowd_in_a_subspace_escapes_only_by_the_whole_hessian():
    setting = replace(TINY, saddle=("low rank",), noise=("isotropic", "guided", "whole"), copies=(1,))
    found = lecture.experiment.measure(setting)
    loss = found.loss.isel(time=-1).squeeze()
    assert (loss.sel(noise="guided") > 0.999).all() and (loss.sel(noise=["isotropic", "whole"]) < 0.1).all()


def test_escape_times_lie_between_steps():
    losses = torch.tensor([[1.0, 1.0, 0.5], [1.0, 1.0, 1.0], [0.7, 0.6, 0.5]], dtype=torch.float64)
    times = lecture.escape_time(losses, 0.8, 2.0)
    assert times[0].item() == pytest.approx((2 - 0.6) / 2) and times[1] == np.inf and times[2] == 0


def test_the_first_landscape_that_suits_the_guide():
    found = lecture.suited(Setting(), least=0.3).landscape
    shares = [lecture.share(Setting(landscape=landscape)) for landscape in range(found + 1)]
    assert shares[found] >= 0.3 and all(earlier < 0.3 for earlier in shares[:found])
    saddle = lecture.attention(Setting(landscape=found))
    assert shares[found] == guided_share(saddle.functional.spectrum(saddle.theta)[0].numpy())
    with pytest.raises(ValueError, match="least must be a share that a saddle among 2 landscapes reaches; got 1.0"):
        lecture.suited(Setting(), least=1.0, within=2)


def test_birth_death_and_smooth_fields_run():
    setting = replace(TINY, saddle=("attention",), noise=("smooth", "birth-death"), copies=(1,))
    found = lecture.experiment.measure(setting)
    assert np.isfinite(found.loss).all()
