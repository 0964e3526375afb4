"""Elimination over two elements, alone and pooled, and pair search."""

import torch

from flbook.lectures.in_context_learning.chain_of_thought import set_solvers
from flbook.lectures.in_context_learning.chain_of_thought.parity_trees import ParityTree


def test_elimination_solves_every_system_of_a_batch():
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(5, 30, 11, generator=generator) < 0.5
    hidden = torch.rand(5, 11, generator=generator) < 0.5
    y = (x & hidden[:, None]).sum(-1) % 2 == 1
    assert (set_solvers.eliminated(torch.cat([x, y[..., None]], -1)) == hidden).all()


def test_clean_labels_are_enough_and_pools_survive_flips():
    clean = set_solvers.run(set_solvers.experiment.setting("tiny", flip=0.0, n=(40,), d=16)).found.squeeze("n")
    assert (clean == 1).all()
    noisy = set_solvers.experiment.setting("tiny", n=(150,), d=30, flip=0.05, seed=tuple(range(6)), most=2000)
    found = set_solvers.run(noisy)
    assert found.found.sel(solver="pooled elimination").mean() == 1
    assert found.found.sel(solver="elimination").mean() < 0.8
    assert found.tries.sel(solver="pooled elimination").mean() > 1


def test_pair_search_names_the_parents():
    chains = ParityTree(12, 8).draw(80, 0)
    assert (set_solvers.pairs(chains.tokens, 12) == chains.parents.sort(-1).values).all()
