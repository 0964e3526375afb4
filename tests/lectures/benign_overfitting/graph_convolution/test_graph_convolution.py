"""The graph's phase diagram at a tiny preset: degree 0 is no graph, and sharing is what it says."""

from dataclasses import replace

import torch

from flbook.lectures.benign_overfitting import graph_convolution as graphs
from flbook.lectures.benign_overfitting.graph_convolution import experiment

TINY = experiment.setting("tiny", model=("network",), steps=200)


def test_private_noise_is_as_short_but_not_shared():
    shared, private = (graphs.exact(replace(TINY, shared=flag), 3.0).gram.xi_xi[1, :, 0] for flag in (True, False))
    scale = TINY.d
    diagonals = [part.diagonal(dim1=-2, dim2=-1) / scale for part in (shared, private)]
    torch.testing.assert_close(diagonals[0].mean(), diagonals[1].mean(), rtol=0.02, atol=0)
    alone = [torch.diag_embed(part.diagonal(dim1=-2, dim2=-1)) for part in (shared, private)]
    off = [(part - own).abs().mean() / scale for part, own in zip((shared, private), alone, strict=True)]
    assert off[0] > 0.03 and off[1] < 0.002


def test_the_edges_tell_the_classes_where_they_are_many():
    setting = graphs.Setting(seed=tuple(range(8)))
    assert (graphs.edges_alone(48.0, setting) == 0).all()
    blind = graphs.edges_alone(24.0, replace(setting, contrast=1.0))
    assert (blind > 0.3).all() and (blind <= 0.5).all()
