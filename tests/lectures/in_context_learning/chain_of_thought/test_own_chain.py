"""The layer's own chain: the filter level by level, gradients, and rounding."""

import numpy as np
import pytest
import torch

from flbook.lectures.in_context_learning.chain_of_thought import own_chain
from flbook.lectures.in_context_learning.chain_of_thought.parity_trees import ParityTree

TREE = ParityTree(12, 4)


def solved(levels: int):
    """Scores in which the first levels are right."""
    parents = TREE.draw(1, 0).parents
    w = torch.zeros(3, 15).scatter(-1, parents, 50.0)
    w[TREE.levels > levels] = 0
    return w


def test_the_filter_lets_one_level_after_the_other_speak():
    bits = TREE.draw(400, 0).tokens[:, :12]
    silent = own_chain.written(solved(0), bits, TREE, True, False)
    assert (silent[:, 14] == 0).all() and (silent[:, 12] < 0).float().mean() > 0.9
    assert (own_chain.written(solved(1), bits, TREE, True, False)[:, 14] != 0).any()
    torch.testing.assert_close(own_chain.written(solved(2), bits, TREE, True, False), TREE.draw(400, 0).tokens)


def test_only_levels_that_speak_have_a_gradient_and_it_is_that_of_their_loss():
    tokens = TREE.draw(300, 0).tokens
    g = own_chain.slope(solved(0), tokens, TREE, True, False)
    assert (g[:2].abs().amax(-1) > 0).all() and (g[2] == 0).all()
    w = torch.linspace(-1, 1, 45).reshape(3, 15).requires_grad_()
    own = own_chain.written(w.detach(), tokens[:, :12], TREE, False, False)
    loss = (2 * (own @ own_chain.attention(w, TREE).mT).square() - 1 - tokens[:, 12:]).square().sum(-1).mean() / 2
    torch.testing.assert_close(own_chain.slope(w.detach(), tokens, TREE, False, False), torch.autograd.grad(loss, w)[0],
                               rtol=1e-4, atol=1e-6)


def test_both_mends_together_solve_what_neither_does_alone():
    setting = own_chain.experiment.setting(n=(4000,), way=tuple(own_chain.WAYS), seed=tuple(range(8)))
    share = (own_chain.run(setting).accuracy.squeeze("n").isel(step=2) > 0.99).mean("seed")
    assert share.sel(way="filter, frozen, signs") == 1 and share.sel(way="no filter") == 0
    assert all(share.sel(way=way) < 0.8 for way in ("filter", "filter, frozen", "filter, signs"))


def test_more_samples_split_fewer_parents():
    setting = own_chain.experiment.setting()
    shares = [own_chain.unsplit(setting, n) for n in (1000, 10_000, 10**7)]
    assert shares == sorted(shares) and shares[-1] == pytest.approx(1, abs=0.06)
    assert np.isclose(own_chain.unsplit(setting, 10**12), 1, atol=1e-3)
