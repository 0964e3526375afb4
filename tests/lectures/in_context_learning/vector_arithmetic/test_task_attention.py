"""The task-vector layer by hand; what division by the length does; an ensemble is the loop."""

import math

import pytest
import torch

from flbook.lectures.in_context_learning.vector_arithmetic.factual_recall import FactualRecall
from flbook.lectures.in_context_learning.vector_arithmetic.task_attention import (
    LinearRecall,
    TaskVectorAttention,
    read_out,
    unit,
)

DATA = FactualRecall(concepts=3, common=3, d=9, noise=0.1)


def test_two_tokens_by_hand():
    layer = TaskVectorAttention(2, start=1.0, spread=0.0, dtype=torch.float64)
    with torch.no_grad():
        layer.v += torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    tokens, query = torch.eye(2).double()[None], torch.tensor([[1.0, 0.0]]).double()
    share = math.e / (math.e + 1)
    h_0 = torch.tensor([2 * share, 1 - share]).double()
    torch.testing.assert_close(layer.task_vector(tokens, query)[0].detach(), h_0 / h_0.norm())
    logits = layer(tokens, query, torch.eye(2).double()).detach()
    torch.testing.assert_close(logits[0], 4 * (h_0 / h_0.norm() + query[0]))


def test_a_word_plus_a_task_is_an_answer():
    h = unit(0.37 * DATA.tasks) - DATA.facts
    torch.testing.assert_close(h, 2**0.5 * DATA.answers[3:])
    assert torch.equal(read_out(h, DATA.answers).argmax(-1), torch.arange(3, 6))


def test_the_task_vector_forgets_the_length():
    z = torch.randn(4, 9, dtype=torch.float64)
    torch.testing.assert_close(unit(5 * z), unit(z))
    torch.testing.assert_close(unit(z).norm(dim=-1), torch.ones(4).double())


def test_an_ensemble_is_the_loop():
    prompts = DATA.in_context(5, 2, (3, 4))
    both = TaskVectorAttention(9, seed=(3, 4))
    for k, seed in enumerate((3, 4)):
        one = TaskVectorAttention(9, seed=seed)(prompts.tokens[k], prompts.query[k], DATA.answers)
        torch.testing.assert_close(one, both(prompts.tokens, prompts.query, DATA.answers)[k])


def test_the_linear_rival_sees_the_mean_token():
    prompts = DATA.in_context(5, 2)
    model = LinearRecall(9, 6)
    with torch.no_grad():
        model.w += torch.randn_like(model.w)
    shuffled = prompts.tokens.flip(-2)
    torch.testing.assert_close(*(model(t, prompts.query, DATA.answers) for t in (prompts.tokens, shuffled)))


def test_bad_sizes_are_refused():
    prompts = DATA.questions(2)
    with pytest.raises(ValueError, match="do not fit values"):
        TaskVectorAttention(8)(prompts.tokens, prompts.query, DATA.answers)
