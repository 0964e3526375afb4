"""Escape from saddles at a tiny preset: the saddles are saddles, and what each noise does to them."""

from dataclasses import replace

import pytest
import torch

from flbook.lectures.in_context_learning import perturbed_flow as lecture
from flbook.lectures.in_context_learning.perturbed_flow.perturbation import norm
from flbook.lectures.in_context_learning.shared import mean_field
from flbook.lectures.in_context_learning.shared.mean_field import Particles, Population

TINY = lecture.experiment.setting("tiny")


@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_a_saddle_is_one_and_the_interaction_is_its_whole_hessian(weight):
    saddle = lecture.saddle(TINY, 1, weight)
    loss = lecture.objective(saddle.x, saddle.f)
    assert norm(loss.slope(saddle.theta)[0]) < 1e-12 and saddle.values[0] < -1e-3 < 1e-9 > -saddle.values[1]
    assert loss.loss(saddle.theta).item() == pytest.approx(weight**2 / 4)
    v = torch.randn(saddle.theta.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(loss.whole(saddle.theta, v), loss.interaction(saddle.theta, v))
    torch.testing.assert_close(
        loss.whole(saddle.theta, saddle.direction), saddle.values[0] * saddle.direction, rtol=1e-7, atol=1e-9)


def test_the_saddle_is_a_point_of_the_attention_landscape():
    saddle = lecture.saddle(TINY)
    theta, loss = saddle.theta + 0.1, lecture.objective(saddle.x, saddle.f)
    particles, population = Particles(theta[:, :2], theta[:, 2:]), Population(saddle.x, saddle.f)
    torch.testing.assert_close(loss.loss(theta), mean_field.loss(particles, population))
    velocity, _ = mean_field.velocity(particles, population)
    torch.testing.assert_close(loss.slope(theta)[0], -torch.cat(velocity, -1))


@pytest.mark.parametrize("noise", ["independent", "smooth", "guided", "steepest"])
@pytest.mark.parametrize("copies", [1, 3])
def test_pushes_have_equal_energy_in_the_mean(noise, copies):
    many = replace(TINY, seed=tuple(range(1000)))
    saddles = lecture.stacked(many)
    push = lecture.start(many, saddles, noise, copies) - saddles.crowd(copies)
    energy = norm(push).square().mean(-1) / many.size**2
    torch.testing.assert_close(energy, torch.ones(2, dtype=torch.float64), rtol=0.15, atol=0)
    alike = (push[..., 0, :] - push[..., 1, :]).abs().max() / push.abs().max()
    assert copies == 1 or (alike < 1e-5) == (noise != "independent"), "a field moves copies together"


def test_pushes_of_one_draw_differ_by_a_fixed_factor_along_the_unstable_direction():
    saddles = lecture.stacked(TINY)
    c = {
        noise: lecture.along(saddles, lecture.start(TINY, saddles, noise, 2), 2) for noise in ("independent", "guided")
    }
    factor = (saddles.theta[0].numel() * 2 * torch.as_tensor(lecture.shares(TINY).values)).sqrt()
    torch.testing.assert_close(c["guided"], factor[:, None] * c["independent"])


def test_escape_times_are_those_of_plain_gradient_descent():
    saddles = lecture.stacked(TINY)
    theta = lecture.start(TINY, saddles, "guided", 1)
    found = lecture.escape_times(TINY, saddles, theta)
    loss, rate = lecture.objective(saddles.x[1], saddles.f[1]), -saddles.values[1, 0]
    per = max(5.0, float(saddles.values[1, -1] / rate))
    moving, before = theta[1, 0], None
    level, t = 0.8 * loss.loss(saddles.theta[1]), 0
    while (now := loss.loss(moving)) >= level:
        moving, before, t = moving - loss.slope(moving)[0] / (rate * per), now, t + 1
    steps = t - float((level - now) / (before - now))
    assert found[1, 0].item() == pytest.approx(steps * torch.tensor(1 + 1 / per).log().item(), rel=1e-5)
    short = lecture.escape_times(replace(TINY, time=1.0), saddles, theta)
    assert torch.isinf(short).all()


def test_a_crowd_in_a_subspace_has_its_instability_in_the_local_part():
    loss, theta = lecture.low_rank(TINY)
    assert norm(loss.slope(theta)[0]) < 1e-12
    assert loss.spectrum(theta)[0][0] == pytest.approx(-0.5)
    assert loss.spectrum(theta, local=False)[0][0] > -1e-10
