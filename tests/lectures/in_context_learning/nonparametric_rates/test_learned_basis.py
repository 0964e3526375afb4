"""Learned features at a tiny preset."""

import numpy as np
import pytest
import torch

from flbook.data.prompt_pool import PromptPool
from flbook.lectures.in_context_learning.nonparametric_rates import learned_basis as lecture
from flbook.lectures.in_context_learning.nonparametric_rates.learned_basis import FeatureAttention, Laws, Setting
from flbook.shapes import Context

TINY = Setting.tiny()


def test_training_helps():
    risk = lecture.run(TINY).risk.squeeze("n").mean("seed")
    assert risk.sel(model="learned features", T=64) < 0.9 and np.isfinite(risk).all()
    assert risk.sel(model="ridge on the basis", T=64) < risk.sel(model="attention on the basis", T=64)


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


def test_a_pool_is_a_fixed_set_of_prompts():
    pool = PromptPool(Laws(TINY, 12), 3)
    targets = torch.cat([pool.draw(8, (0, 1), step).target[0] for step in range(6)])
    assert len(torch.unique(targets[:, 0])) == 3
    torch.testing.assert_close(pool.draw(8, (0, 1), 2).query, pool.draw(8, (0, 1), 2).query)
    alone = Laws(TINY, 12).draw(3, (1,))
    assert {float(y) for y in pool.draw(8, (0, 1), 0).target[1, :, 0]} <= {float(y) for y in alone.target[0, :, 0]}


def test_the_paper_preset_has_the_papers_prompts_and_passes():
    paper = Setting.paper()
    assert 512 in paper.T and 512 in paper.n and paper.steps * paper.batch == 50 * 512


def test_more_hidden_features_than_there_are_are_refused():
    with pytest.raises(ValueError, match="size must be at most"):
        TINY.thinned(hidden=100)
