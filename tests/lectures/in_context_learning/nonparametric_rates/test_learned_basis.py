"""Learned features at a tiny preset."""

import torch

from flbook.lectures.in_context_learning.nonparametric_rates.learned_basis import FeatureAttention, experiment
from flbook.shapes import Context

TINY = experiment.setting("tiny")


def test_the_network_is_its_formula():
    model = FeatureAttention(TINY.thinned(seed=(5,)))
    context, query = Context(torch.rand(1, 7, 6, 2), torch.randn(1, 7, 6)), torch.rand(1, 7, 3, 2)
    first, second, last = model.features.layers
    hidden = [((2 * x - 1) @ first.weight + first.bias).relu() for x in (context.x, query)]
    keys, queries = ((h @ second.weight).relu() @ last.weight for h in hidden)
    means = torch.einsum("bn,bnk->bk", context.y[0], keys[0]) / 6
    expected = torch.einsum("bk,kl,bql->bq", means, model.gamma[0, 0], queries[0])
    torch.testing.assert_close(model(context, query)[0], expected)
    frozen = FeatureAttention(TINY, frozen=True)
    assert [name for name, p in frozen.named_parameters() if p.requires_grad] == ["gamma"]
