"""The graph's phase diagram at a tiny preset: degree 0 is no graph, and sharing is what it says."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook.lectures.benign_overfitting import graphs_and_output_layers as graphs
from flbook.lectures.benign_overfitting.graphs_and_output_layers import Setting, measure

TINY = replace(Setting.tiny(), model=("network",), steps=200)


def test_both_regimes_with_and_without_a_graph():
    cells = measure(TINY).squeeze(("q", "model"))
    assert (cells.train_error < 0.1).all()
    assert (cells.test_error.sel(snr=0.05) > 0.3).all() and (cells.test_error.sel(snr=0.9) < 0.1).all()


def test_private_noise_is_as_short_but_not_shared():
    shared, private = (graphs.exact(replace(TINY, shared=flag), 3.0).gram.xi_xi[1, :, 0] for flag in (True, False))
    scale = TINY.d
    diagonals = [part.diagonal(dim1=-2, dim2=-1) / scale for part in (shared, private)]
    torch.testing.assert_close(diagonals[0].mean(), diagonals[1].mean(), rtol=0.02, atol=0)
    alone = [torch.diag_embed(part.diagonal(dim1=-2, dim2=-1)) for part in (shared, private)]
    off = [(part - own).abs().mean() / scale for part, own in zip((shared, private), alone, strict=True)]
    assert off[0] > 0.03 and off[1] < 0.002


def test_attenuation_and_step_sizes():
    shares = graphs.attenuation(replace(TINY, degree=(0.0, 4.0, 11.0)))
    assert shares[0] == 1.0 and shares[1] > shares[2] > TINY.graph(11.0).attenuation
    like = torch.zeros((), dtype=torch.float64)
    for model in ("network", "linear", "lazy"):
        steps = graphs.rule(TINY, 3.0, model, like).lr.flatten()
        unit = TINY.lr * TINY.n * TINY.m / TINY.d
        first = {"network": 1 / TINY.start, "linear": 20.0, "lazy": 2 / (3 * TINY.start**2) ** 2}[model]
        growth = {"network": 7**0.5, "linear": 1.0, "lazy": 7.0**2}[model]
        np.testing.assert_allclose(steps, [unit * first, unit * first * growth])


@pytest.mark.parametrize("change, sentence", [
    (dict(degree=(0.0, 30.0)), r"degree must lie in \[0, 12\], so that p is a probability; got 30"),
    (dict(n=21), "n must be even"),
    (dict(d=30), r"d must be at least n \+ k \+ 1 = 37"),
])
def test_cells_that_the_model_does_not_have_are_refused(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        replace(TINY, **change)
