"""Contexts with a parent: their laws, by counting."""

import pytest
import torch

from flbook.lectures.in_context_learning.induction import causal_chains
from flbook.lectures.in_context_learning.induction.causal_chains import CausalContexts


def test_the_stationary_law_stays():
    pi = causal_chains.transitions((5,), 4, 1.0, 0.2, 0)
    mu = causal_chains.stationary(pi)
    torch.testing.assert_close((mu[:, None] @ pi)[:, 0], mu)
    torch.testing.assert_close(mu.sum(-1), torch.ones(5, dtype=torch.float64))
    assert (pi.diagonal(dim1=-2, dim2=-1) >= 0.2).all()


def test_every_place_of_a_tree_has_an_earlier_parent():
    parents = CausalContexts(length=30, tree=4).parents
    assert parents[0] == causal_chains.ROOT
    assert all(0 <= parent < place for place, parent in enumerate(parents) if place)
    assert len(set(parents)) > 8 and parents != CausalContexts(length=30, tree=5).parents


def test_tokens_follow_their_parents_rows():
    one = CausalContexts(tokens=3, length=6, tree=1)
    drawn = one.draw(40_000, 0)
    parent = drawn.tokens[:, one.parents[5]]
    repeated = (parent == drawn.tokens[:, 5]).double()
    pi = causal_chains.transitions((40_000,), 3, 1.0, 0.0, 0)  # of the same contexts
    expected = (causal_chains.stationary(pi) * pi.diagonal(dim1=-2, dim2=-1)).sum(-1).mean()
    assert float(repeated.mean()) == pytest.approx(float(expected), abs=0.01)
    assert float((drawn.next == drawn.query).double().mean()) == pytest.approx(1 / 3, abs=0.015)
    chosen = drawn.rows.gather(-1, drawn.next[:, None]).mean()
    assert float(chosen) == pytest.approx(1 / 2, abs=0.01), "the mean square of a uniform row, times three"


def test_sticky_tokens_repeat():
    drawn = CausalContexts(tokens=3, length=5, rho=0.5).draw(20_000, 0)
    repeated = (drawn.tokens[:, 1:] == drawn.tokens[:, :-1]).double().mean()
    free = causal_chains.transitions((20_000,), 3, 1.0, 0.0, 0)  # the same rows, with the same stationary laws
    again = (causal_chains.stationary(free) * free.diagonal(dim1=-2, dim2=-1)).sum(-1).mean()
    assert float(repeated) == pytest.approx(0.5 + 0.5 * float(again), abs=0.01)
