"""Mixtures of tasks: posteriors against Bayes' rule written out, laws of the draws, error messages."""

import math

import numpy as np
import pytest
import torch

from flbook.lectures.in_context_learning.bayes_gap.task_mixture import PlanePrompts, SignPrompts

DISCRETE = SignPrompts(3, 1.0, (-2.0, 0.0, 2.0), (0.25, 0.5, 0.25))


def test_the_posterior_mean_of_two_signs():
    y = torch.tensor([[1.0, 0.5, -3.0]], dtype=torch.float64)
    found = SignPrompts(3, 2.0).bayes(y)[0]
    for k in range(4):
        plus, minus = (math.exp(-sum(abs(float(a) - s) for a in y[0, :k]) / 2) for s in (1, -1))
        assert float(found[k]) == pytest.approx((plus - minus) / (plus + minus))


def test_discrete_noise_by_hand():
    found = DISCRETE.bayes(torch.tensor([[1.0, 1.0, 3.0], [-1.0, -3.0, -1.0]], dtype=torch.float64))
    expected = torch.tensor([[0, 1 / 3, 3 / 5, 1], [0, -1 / 3, -1, -1]], dtype=torch.float64)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("data", [SignPrompts(4, 1.5), DISCRETE, PlanePrompts(4, 0.8)])
def test_draws(data):
    many = data.draw(20000, 0)
    assert abs(many.target.mean()) < 0.04 and (many.task.norm(dim=-1) - 1).abs().max() < 1e-12
    noise = many.observed - many.target
    expected = 2.0 if data is DISCRETE else data.noise**2 * (2 if isinstance(data, SignPrompts) else 1)
    np.testing.assert_allclose(noise.square().mean(), expected, rtol=0.08)
    if isinstance(data, SignPrompts) and data is not DISCRETE:
        np.testing.assert_allclose(noise.abs().mean(), data.noise, rtol=0.05, err_msg="Laplace: the mean size is b")
    if data is DISCRETE:
        assert set(np.unique(noise)) == {-2.0, 0.0, 2.0}


def test_planes_are_orthogonal_and_their_posterior_adds_up():
    data = PlanePrompts(6, 0.7, angles=64)
    prompts = data.draw(400, 0)
    first, second = prompts.task[:, :2].norm(dim=-1), prompts.task[:, 2:].norm(dim=-1)
    assert ((first < 1e-12) ^ (second < 1e-12)).all() and 0.4 < float((first > 0.5).double().mean()) < 0.6
    found = data.posterior(prompts.context)
    torch.testing.assert_close(found.variance, found.known + found.cost)
    torch.testing.assert_close(found.variance[:, 0], torch.ones(400, dtype=torch.float64))
    square = (found.mean - prompts.task[:, None]).square().sum(-1).mean(0)
    np.testing.assert_allclose(square, found.variance.mean(0), atol=0.12, rtol=0)
    # Bayes' rule written out for one prompt and its whole context
    log = [[-(((prompts.context.y[0] - prompts.context.x[0] @ task) ** 2).sum() / (2 * 0.49)).item() for task in plane]
           for plane in data.grid()]
    weight = np.exp(np.array(log))
    np.testing.assert_allclose(found.type[0, -1], weight.sum(1) / weight.sum())


def test_bad_input_is_one_sentence():
    for make, sentence in [
        (lambda: SignPrompts(2, 0.0), "noise must be positive"),
        (lambda: SignPrompts(2, 1.0, (0.0, 1.0), (0.5,)), "chances must add up to 1"),
        (lambda: SignPrompts(2).draw(0, 0), "batch must be at least 1"),
        (lambda: PlanePrompts(2).draw(0, 0), "batch must be at least 1"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            make()
