"""Metrics set by hand: their size, their symmetry, and what one fit in them does."""

import pytest
import torch

from flbook.lectures.representation.grokking import set_by_hand
from flbook.lectures.representation.grokking.modular_table import ModularTable
from flbook.lectures.representation.grokking.recursive_machine import accuracy_in, explained, profile, progress


@pytest.mark.parametrize("kind", ["phases", "entries"])
def test_circulants_have_the_size_that_is_asked(kind):
    metric = set_by_hand.metric(kind, 0.4, 9, (0, 1))
    assert progress(metric).tolist() == pytest.approx([0.4, 0.4], rel=1e-9)
    torch.testing.assert_close(metric, metric.mT)
    assert explained(metric)[0].min() > 1 - 1e-9


def test_phases_have_equal_moduli():
    moduli = torch.fft.fft(profile(set_by_hand.metric("phases", 0.7, 11, 3))).abs()
    torch.testing.assert_close(moduli[1:], torch.full((10,), 0.7, dtype=torch.float64))
    assert moduli[0] < 1e-12


def test_other_kinds_are_no_circulants():
    assert explained(set_by_hand.metric("Hankel", 0.5, 11, 0))[1] > 1 - 1e-9
    matrix = set_by_hand.metric("matrix", 0.5, 40, 0)
    assert max(explained(matrix)) < 0.1
    torch.testing.assert_close(matrix[40:, :40].std(), torch.tensor(0.5 / 40**0.5).double(), rtol=0.1, atol=0)


def test_a_large_circulant_generalises_at_once():
    setting = set_by_hand.experiment.setting(kind=("phases", "matrix"), R=(0.9,), p=13, share=0.7)
    found = set_by_hand.run(setting).accuracy
    assert found.sel(kind="phases").mean() > 0.8 > 0.2 > found.sel(kind="matrix").mean()


def test_profiles_give_the_metrics_fit():
    import xarray as xr

    table, seeds = ModularTable(11, 0.7), (0, 1)
    metrics = [set_by_hand.metric("phases", R, 11, seeds) for R in (0.5, 0.9)]
    named = {"seed": list(seeds), "round": [3, 4]}
    profiles = xr.DataArray(torch.stack([profile(m) for m in metrics], 1), named, ("seed", "round", "difference"))
    found = set_by_hand.of_profiles(profiles, table)
    for k, m in enumerate(metrics):
        torch.testing.assert_close(torch.from_numpy(found.values[k]), accuracy_in(m, 11, table.draw(seeds)))
