"""Adapting to a prompt: the line that a rule answers with, and copies of a network trained on a prompt each."""

import numpy as np
import torch

from flbook.data import LinearPrompts
from flbook.data.prompts import map_tensors
from flbook.estimators.in_context import LeastSquares, NearestNeighbours
from flbook.lectures.in_context_learning.what_is_icl import adaptation
from flbook.lectures.in_context_learning.what_is_icl.adaptation import fine_tune, implied_weights
from flbook.models.transformer import PromptTransformer
from flbook.shapes import Context
from flbook.training.optimizers import Adam


def test_implied_weights_of_a_line_and_of_what_is_none():
    prompts = LinearPrompts(n=5, d=3).draw(4, seed=(0, 1))
    weights, share = implied_weights(LeastSquares(), prompts.context)
    torch.testing.assert_close(weights, prompts.task)  # n > d: the task itself
    torch.testing.assert_close(share, torch.ones_like(share))
    assert implied_weights(NearestNeighbours(1), prompts.context)[1].max() < 0.95


def test_the_read_out_of_lone_states_is_the_answer_without_a_context():
    network = PromptTransformer(2, 3, 16, 1, 2, seed=(0, 1), dtype=torch.float64)
    x = LinearPrompts(n=4, d=2).draw(5, seed=(0, 1)).context.x
    answers = network.read_out(adaptation.lone_states(network, x))[..., 0]
    torch.testing.assert_close(answers, network(Context(x[..., :0, :], x[..., :0, 0]), x))


def test_the_linear_share_of_what_is_affine_and_of_what_is_half_so():
    x = LinearPrompts(n=50, d=2).draw(400, seed=(0, 1)).context.x
    affine = torch.cat([3 + x, 2 * x], -1)
    torch.testing.assert_close(adaptation.linear_share(x, affine), torch.ones(2, dtype=torch.float64))
    bent = torch.cat([x, (x.square() - 1) / 2**0.5], -1)  # of variance 1, and uncorrelated with the inputs
    torch.testing.assert_close(adaptation.linear_share(x, bent).mean().item(), 0.5, rtol=0.03, atol=0)


def test_each_copy_learns_its_own_prompt():
    prompts = map_tensors(LinearPrompts(n=3, d=2).draw(2, seed=(0, 1)), lambda t: t.flatten(0, 1))
    copies = PromptTransformer(2, 3, 16, 1, 2, seed=(0, 1, 2, 3), dtype=torch.float64)
    params, history = fine_tune(copies, prompts, Adam(0.02), 60, at=(0, 60))
    x, y = prompts.context.x[:, None], prompts.context.y[:, None]
    answer = torch.func.functional_call(copies, params, (Context(x[..., :0, :], y[..., :0]), x))
    last = history.isel(step=-1)
    np.testing.assert_allclose(last.loss, (answer - y).square().mean((-2, -1)).detach(), rtol=1e-9)
    assert (last.loss < 0.01 * history.loss.sel(step=0)).all()


def test_the_query_is_answered_without_a_context():
    """A network that has not moved answers it as an input of its own, whatever the examples are."""
    prompts = map_tensors(LinearPrompts(n=3, d=2).draw(2, seed=(0, 1)), lambda t: t.flatten(0, 1))
    copies = PromptTransformer(2, 3, 16, 1, 2, seed=(0, 1, 2, 3), dtype=torch.float64)
    query = prompts.query[:, None]
    answer = copies(Context(query[..., :0, :], query[..., :0, 0]), query)[:, 0, 0]
    history = fine_tune(copies, prompts, Adam(0.02), 0, at=(0,)).history
    np.testing.assert_allclose(history.error[0], (answer - prompts.target[:, 0]).square().detach(), rtol=1e-9)
