"""Rounds of the machine: laws by hand, the stored result's beginning, and what the split decides."""

import numpy as np
import pytest
import torch
import xarray as xr

from flbook.lectures.representation import grokking
from flbook.lectures.representation.grokking.modular_table import ModularTable, differences


def test_the_law_by_hand():
    histogram = torch.tensor([4.0, 2.0, 2.0, 2.0]).double()  # p = 4, ten of sixteen pairs: every wave has modulus 2
    first = 2 / 32
    expected = [0, first, first * (1 + 1.625), first * (1 + 1.625 + 1.625**2)]
    torch.testing.assert_close(grokking.law(histogram, 3), torch.tensor(expected).double())


def test_the_law_starts_where_the_machine_does():
    setting = grokking.experiment.setting("tiny", p=19, split=("random", "uneven a-b"), seed=(0, 1, 2), rounds=3)
    found = grokking.run(setting)
    for split in setting.split:
        train = ModularTable(19, setting.share, split).draw(setting.seed).train
        law = grokking.law(differences(train, 19), 3)[:, 1:]
        np.testing.assert_allclose(found.progress.sel(split=split)[:, 1:], law, rtol=0.25)
    assert (found.progress.sel(split="uneven a-b", round=1) > 2 * found.progress.sel(split="random", round=1)).all()
    assert (found.correlation.sel(round=1) > 0.85).all() and (found.progress.sel(round=0) == 0).all()


def test_half_by_hand():
    rounds = {"round": range(4)}
    accuracy = xr.DataArray([[[0, 0.25, 0.75, 1]]], dims=("split", "seed", "round"), coords=rounds)
    found = grokking.half(xr.Dataset({"accuracy": accuracy, "progress": accuracy * 2}))
    assert found.when.item() == pytest.approx(1.5) and found["size"].item() == pytest.approx(1.0)


def test_the_stored_rounds_begin_as_they_would_today():
    stored = grokking.experiment.stored()
    setting = grokking.experiment.setting("larger", seed=(0,), rounds=2)
    again = grokking.run(setting)
    for name in again.data_vars:
        there = stored[name].sel(seed=[0], round=slice(0, 2))
        np.testing.assert_allclose(again[name], there, rtol=1e-5, atol=1e-8)
