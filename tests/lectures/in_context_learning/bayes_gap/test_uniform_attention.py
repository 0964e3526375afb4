"""Uniform attention: every length at once, what it can and cannot tell apart, ensembles."""

import pytest
import torch

from flbook.lectures.in_context_learning.bayes_gap.uniform_attention import UniformAttention
from flbook.shapes import Context


def drawn(*lead, n=5, d=2):
    return Context(torch.randn(*lead, n, d), torch.randn(*lead, n)), torch.randn(*lead, n, d)


@pytest.mark.parametrize("told", [True, False])
def test_every_length_is_the_prompt_of_that_length(told):
    model = UniformAttention(2, told=told)
    context, query = drawn(3)
    every = model.every(context, query)
    for k in range(1, 6):
        alone = model(Context(context.x[:, :k], context.y[:, :k]), query[:, k - 1 : k])
        torch.testing.assert_close(every[:, k - 1 : k], alone)


def test_order_does_not_matter_and_the_count_only_if_told():
    context, query = drawn(3)
    twice = Context(torch.cat([context.x] * 2, -2), torch.cat([context.y] * 2, -1))
    back = Context(context.x.flip(-2), context.y.flip(-1))
    for told in (True, False):
        model = UniformAttention(2, told=told)
        torch.testing.assert_close(model(context, query), model(back, query))
        assert torch.allclose(model(context, query), model(twice, query), atol=1e-6) != told


def test_bad_input_is_one_sentence():
    with pytest.raises(ValueError, match="context must hold at least one example"):
        UniformAttention()(Context(torch.zeros(1, 0, 1), torch.zeros(1, 0)), torch.zeros(1, 1, 1))
