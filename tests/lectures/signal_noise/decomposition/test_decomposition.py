"""The decomposition at a tiny size: the law of its first step, the span, and what no dimension may change."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr

from flbook import devices
from flbook.data.signal_noise import SignalNoise
from flbook.lectures.signal_noise import decomposition as experiment
from flbook.lectures.signal_noise.decomposition import Setting
from flbook.models.cnn import TwoLayerCNN
from flbook.runs import results
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent

TINY = Setting(d=(300, 10**7), flip_prob=(0.0, 0.2), n_snr2=(0.5, 4.0), seed=(0, 1, 2), n=10, m=8, steps=12)


@pytest.mark.parametrize("device", devices.present())
def test_tiny_preset(device):
    found = experiment.measure(TINY, device)
    sizes = {"model": 1, "d": 2, "flip_prob": 2, "n_snr2": 2, "seed": 3}
    assert {name: size for name, size in found.sizes.items() if name != "step"} == sizes
    assert all(np.isfinite(values).all() for values in found.values())
    assert (found.gamma.isel(step=-1) > 0).all() and (found.rho.isel(step=-1) > 0).all()
    np.testing.assert_allclose(found.gamma, experiment.measure(TINY, "cpu").gamma, rtol=1e-6)


def test_the_first_step_follows_the_recursion():
    """From zero weights every margin is 0, so gamma/rho is known: half the samples see a filter's signal."""
    zero = replace(TINY, start=1e-9)
    measured = experiment.ratio(experiment.measure(zero)).squeeze("model").mean("seed")
    law = (1 - 2 * measured.flip_prob) * measured.n_snr2 / 2
    np.testing.assert_allclose(measured.sel(d=10**7), law.transpose("flip_prob", "n_snr2"), rtol=2e-3)
    linear = experiment.ratio(experiment.measure(replace(zero, model=("linear",)))).squeeze("model").mean("seed")
    np.testing.assert_allclose(linear.sel(d=10**7), 2 * law.transpose("flip_prob", "n_snr2"), rtol=2e-3)


def test_a_cell_does_not_depend_on_the_grid_around_it():
    whole = experiment.measure(replace(TINY, model=("network", "lazy")))
    part = experiment.measure(replace(TINY, model=("lazy",), d=(300,), flip_prob=(0.2,), n_snr2=(4.0,), seed=(1,)))
    for name in part:
        same = whole[name].sel(model=["lazy"], d=[300], flip_prob=[0.2], n_snr2=[4.0], seed=[1])
        np.testing.assert_allclose(same, part[name], rtol=1e-9, atol=1e-12)


def test_coefficients_of_a_known_move():
    sample = SignalNoise(n=5, d=40, mu_norm=2.0).draw(0)
    along_mu = torch.tensor([[1.5], [-0.5]], dtype=torch.float64)  # (sign, filter)
    along_xi = torch.linspace(-1, 1, 10, dtype=torch.float64).reshape(2, 1, 5)
    move = along_mu[..., None] * sample.mu + along_xi @ sample.xi
    found = experiment.decompose(move, sample)
    torch.testing.assert_close(found, (along_mu, along_xi))
    assert float(experiment.outside(move, sample).abs().max()) < 1e-14
    beside = torch.linalg.qr(torch.cat([sample.mu[None], sample.xi]).T, mode="complete").Q[:, -1]
    length = move.norm(dim=-1)[..., None]
    torch.testing.assert_close(experiment.outside(move + length * beside, sample), torch.full_like(along_mu, 0.5))


def test_the_share_outside_is_taken_member_by_member():
    data, seeds = SignalNoise(n=4, d=30, mu_norm=1.0), (0, 1)
    sample = data.draw(seeds)
    cnn = TwoLayerCNN(30, 3, sigma_0=0.1, seed=seeds, dtype=torch.float64)
    moved = fit(Training(cnn, sample.x, sample.observed), GradientDescent(0.1), 3).params["w"] - cnn.w.detach()
    noise = torch.ones_like(moved)
    for k, seed in enumerate(seeds):
        alone = experiment.outside((moved + noise)[k], data.draw(seed))
        torch.testing.assert_close(experiment.outside(moved + noise, sample)[k], alone)
    assert float(experiment.outside(moved, sample).max()) < 1e-12


def test_both_ways_of_the_clock_train():
    found = experiment.timed(replace(Setting(), n=6, m=2, steps=2), repeats=1, dimensions=(50, 60), direct=(50,))
    assert found["drawn_d"] == [50.0, 60.0] and found["direct_d"] == [50.0] and found["timed_steps"] == 2
    assert min(found["drawn_seconds"] + found["direct_seconds"]) > 0
    drawn = experiment.clock(xr.Dataset(attrs=found), "drawn")
    assert drawn.d.values.tolist() == [50.0, 60.0] and drawn.attrs["long_name"] == "set-up and 2 steps"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"n_snr2": (0.0, 1.0)}, "n_snr2 must be positive"),
        ({"d": (20,)}, "d must be at least"),
        ({"flip_prob": (0.5,)}, "flip_prob must lie in"),
    ],
)
def test_bad_input(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        experiment.run(replace(TINY, **change))


def test_three_cells_of_the_stored_result():
    paper = results.open("decomposition")
    for cell in ({"d": 1_000, "flip_prob": 0.1, "n_snr2": 1.0, "seed": 3},
                 {"d": 100_000, "flip_prob": 0.2, "n_snr2": 0.03, "seed": 50},
                 {"d": 10_000_000, "flip_prob": 0.0, "n_snr2": 30.0, "seed": 99}):  # fmt: skip
        again = experiment.measure(replace(Setting.paper(), **{name: (value,) for name, value in cell.items()}))
        for name, step in (("ratio_first", 1), ("ratio_last", -1)):
            there = float(paper[name].sel(cell))
            assert math.isclose(there, float(experiment.ratio(again, step).squeeze()), rel_tol=1e-4), (name, cell)
