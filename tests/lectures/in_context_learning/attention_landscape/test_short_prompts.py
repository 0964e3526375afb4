"""The landscape at finite prompts: L^n by drawn prompts and by any attention, and its minima on a rung."""

import numpy as np
import pytest
import torch

from flbook import rng
from flbook.lectures.in_context_learning.attention_landscape import short_prompts
from flbook.lectures.in_context_learning.shared import mean_field
from flbook.lectures.in_context_learning.shared.mean_field import Population, second_moment

F, STARTS = short_prompts.draw((0, 1), points=12)
MIXED = F[0] + 0.2 * STARTS[0, 0]  # features that know much of the true ones


def at_attention(gamma, n, noise, prompts=200_000):
    """The loss of an attention matrix over drawn prompts; tasks, noise and queries are averaged exactly."""
    h, f = MIXED, F[0]
    i = torch.randint(12, (prompts, n), generator=rng.generator(0, "prompts of the test"))
    cross = torch.einsum("pnq,pnk->pqk", f[i], h[i]) / n
    error = (f - torch.einsum("pqk,kl,xl->pxq", cross, gamma, h)).square().sum(-1).mean() / 2
    read = torch.einsum("kl,xl->xk", gamma, h)  # what the noise of a label is multiplied by
    noisy = torch.einsum("xk,pnk->pxn", read, h[i]).square().sum(-1).mean() * noise / n**2 / 2
    return float(error + noisy)


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_the_loss_is_that_of_drawn_prompts_at_the_best_attention(noise):
    n, h, f = 5, MIXED, F[0]
    cross = second_moment(f, h)
    B = cross.T @ cross
    A = (1 - 1 / n) * B + second_moment(h * (f.square().sum(-1, keepdim=True) + noise), h) / n
    best = torch.linalg.inv(A) @ B @ torch.linalg.inv(second_moment(h, h))
    exact = float(short_prompts.loss(h, f, n, noise))
    assert at_attention(best, n, noise) == pytest.approx(exact, rel=3e-3)
    assert at_attention(1.3 * best, n, noise) > exact
    assert at_attention(0.7 * best, n, noise) > exact


def test_a_long_prompt_is_least_squares_and_only_the_span_counts():
    h, f = STARTS[0], F
    long = short_prompts.loss(h, f, float("inf"))
    residual = f - h @ second_moment(f, h).mT
    torch.testing.assert_close(long, residual.square().sum(-1).mean(-1) / 2)
    torch.testing.assert_close(short_prompts.loss(h, f, 1e9), long)
    mixed = h @ torch.tensor([[2.0, 1.0], [0.5, -3.0]], dtype=torch.float64)
    torch.testing.assert_close(short_prompts.loss(mixed, f, 7, 0.3), short_prompts.loss(h, f, 7, 0.3))


def test_the_minimum_on_a_rung_is_one_at_random_turns_and_the_bump_is_the_closed_form():
    end = short_prompts.descend(STARTS[1], F, 16)
    on = short_prompts.known(end.h, F)[:, 0] < 0.5
    assert on.any()
    h, f = end.h[on], F[on]
    assert end.slope.max() < 1e-9 < end.curvature.min()
    for size in (1e-3, 1e-2):
        near = h + size * rng.normal(tuple(h.shape), 0, "turns")
        assert (short_prompts.loss(near, f, 16) > end.loss[on]).all()
    end = short_prompts.descend(h, f, 4096, steps=0)
    at = short_prompts.turn(end.h, f)
    kappa, q = short_prompts.spare(at, f)
    angle = torch.linspace(0, 0.1, 30, dtype=torch.float64).expand(len(h), -1)
    t = 4096 * angle.sin() ** 2 / (2 * kappa[:, None])
    measured = (short_prompts.along(at, f, 4096, angle) + short_prompts.along(at, f, 4096, -angle)) / 2
    expected = kappa[:, None] / 4096 * short_prompts.bump(t, q[:, None])
    np.testing.assert_allclose(measured - measured[:, :1], expected, atol=float(0.03 * expected.abs().max()))
    found = short_prompts.basins(h, f, (1024, 4096))
    np.testing.assert_allclose(found.radius, found.theory, rtol=0.02)
    np.testing.assert_allclose(found.curvature, 1, rtol=0.02)
    bump = short_prompts.bump(torch.tensor(found.scaled.values) ** 2, q[:, None])
    np.testing.assert_allclose(found.profile.sel(n=4096), bump, atol=0.05)


def test_neurons_trained_with_an_endless_prompt_are_the_static_dynamics():
    population = Population(rng.normal((12, 3), (0, 1), "inputs of the test"), F)
    start = end = mean_field.draw(8, 2, 3, (0, 1))
    for _ in range(3):
        end = mean_field.step(end, population, 0.1)
    ours = short_prompts.train(start, population, float("inf"), 0.1, 3)
    torch.testing.assert_close(ours.w, end.w)
    short = short_prompts.train(start, population, 20, 0.1, 3)
    before, after = (short_prompts.loss(at.features(population.x), F, 20) for at in (start, short))
    assert (after < before).all() and not torch.allclose(short.w, end.w)
