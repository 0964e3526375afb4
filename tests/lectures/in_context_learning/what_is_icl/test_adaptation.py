"""Adapting to a prompt: the line that a rule answers with, and copies of a network trained on a prompt each."""

import pytest
import torch

from flbook.data import LinearPrompts
from flbook.estimators.in_context import LeastSquares, NearestNeighbours
from flbook.lectures.in_context_learning.what_is_icl.adaptation import fine_tune, implied_weights
from flbook.models.transformer import PromptTransformer
from flbook.shapes import Context
from flbook.training.pretrain import Recipe


def test_implied_weights_of_a_line_and_of_what_is_none():
    prompts = LinearPrompts(n=5, d=3).draw(4, seed=(0, 1))
    weights, share = implied_weights(LeastSquares(), prompts.context)
    torch.testing.assert_close(weights, prompts.task)  # n > d: the task itself
    torch.testing.assert_close(share, torch.ones_like(share))
    assert implied_weights(NearestNeighbours(1), prompts.context)[1].max() < 0.95


def test_each_copy_learns_its_own_prompt_and_the_original_stays():
    context = LinearPrompts(n=3, d=2).draw(2, seed=(0, 1)).context
    network = PromptTransformer(2, 3, 16, 1, 2, sigma_0=0.1, dtype=torch.float64)
    before = [p.detach().clone() for p in network.parameters()]
    copies = PromptTransformer(2, 3, 16, 1, 2, seed=(0, 1, 2, 3), dtype=torch.float64)
    tuned = fine_tune(copies, network, context, Recipe(steps=60, batch=1, lr=0.02, warmup=0))
    x, y = context.x.flatten(0, 1)[:, None], context.y.flatten(0, 1)[:, None]
    alone = Context(x[..., :0, :], y[..., :0])
    assert (tuned(alone, x) - y).square().mean() < 0.01 * y.square().mean()
    assert (network(Context(x[:, 0, :0], y[:, 0, :0]), x[:, 0]) - y[:, 0]).square().mean() > 0.3 * y.square().mean()
    assert all(torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True))
    with pytest.raises(ValueError, match="copies must be 4 networks"):
        fine_tune(PromptTransformer(2, 3, 16, 1, 2, seed=(0, 1)), network, context, Recipe(steps=1))
