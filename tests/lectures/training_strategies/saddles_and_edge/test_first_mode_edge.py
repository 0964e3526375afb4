"""The edge of balanced layers: the curvature of the minimum by autograd, and both sides of it."""

import pytest
import torch

from flbook import observe
from flbook.lectures.training_strategies.saddles_and_edge import first_mode_edge
from flbook.lectures.training_strategies.saddles_and_edge.linear_network import LinearNetworkTraining


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_the_sharpness_of_the_balanced_minimum(depth):
    strength = torch.tensor(first_mode_edge.STRENGTHS).double()
    layers = tuple(torch.diag(strength ** (1 / depth)) for _ in range(depth))
    training = LinearNetworkTraining(torch.diag(strength), layers)
    found = observe.sharpness(training.train_loss, training.start()).value
    assert first_mode_edge.edge(depth) == pytest.approx(2 / found, rel=1e-5)


def test_below_the_edge_it_settles_and_above_it_does_not():
    swing = first_mode_edge.run("tiny").swing
    assert (swing.sel(ratio=0.94) < 1e-6).all() and (swing.sel(ratio=1.06) > 0.1).all()
