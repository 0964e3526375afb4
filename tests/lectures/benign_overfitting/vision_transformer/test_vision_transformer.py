"""The vision transformer at a tiny preset: labelled, independent of the grid, and its rival is frozen attention."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook.lectures.benign_overfitting import vision_transformer
from flbook.lectures.benign_overfitting.vision_transformer import Setting, measure
from flbook.runs import results, settings
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

TINY = Setting(d=(120, 400), n=(4, 6), snr=(0.3, 3.0), seed=(0, 1), tokens=6, h=2, steps=60, points=16)


def test_a_labelled_dataset():
    dataset = measure(TINY)
    for name, values in settings.axes(TINY).items():
        assert tuple(dataset[name].values.tolist()) == values, name
    for name, variable in {**dataset.data_vars, **dataset.coords}.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, name
    np.testing.assert_allclose(dataset.signal_fresh.sel(model="pooling"), 1 / 6, rtol=1e-6)


def test_a_cell_does_not_see_the_grid_around_it():
    whole = measure(TINY)
    for model, d, n, snr, seed in (("transformer", 400, 6, 3.0, 1), ("pooling", 120, 4, 0.3, 0)):
        one = measure(replace(TINY, model=(model,), d=(d,), n=(n,), snr=(snr,), seed=(seed,)))
        for name in one:
            expected = whole[name].sel(model=model, d=d, n=n, snr=snr, seed=seed)
            np.testing.assert_allclose(one[name].squeeze(), expected, rtol=2e-3, atol=2e-4, err_msg=name)


def test_strong_signals_are_found_and_weak_ones_are_not():
    found = measure(replace(TINY, steps=300)).sel(model="transformer", n=6).mean("seed")
    assert (found.signal_fresh.sel(snr=3.0) > 0.95).all() and (found.signal_fresh.sel(snr=0.3) < 0.25).all()
    assert (found.train_loss < 0.02).all() and (found.test_error.sel(snr=3.0) == 0).all()


def test_the_rival_is_the_network_with_frozen_attention():
    setting = replace(TINY, d=(120,), n=(6,), sigma_0=0.0, sigma_v=0.0)
    network = vision_transformer.problem(setting, 120, 6)
    frozen = replace(network.to(torch.float64), frozen=True)
    rival, side = vision_transformer.pooling(network.to(torch.float64))
    rule = GradientDescent(3.0)
    theirs, ours = fit(frozen, rule, 50).params, fit(rival, rule, 50).params
    torch.testing.assert_close(rival.predict(ours), frozen.predict(theirs))
    torch.testing.assert_close(torch.einsum("...mn,...n->...m", side, ours["head"]), frozen.seen(theirs)[..., -1])


def test_the_first_step_reads_the_signal_n_snr_squared_over_two_times_as_well():
    setting = Setting(n=(8,), d=(20000,), snr=(0.5, 2.0), seed=tuple(range(4)), tokens=4, sigma_v=1e-6, steps=1)
    step = vision_transformer.race(setting).sel(step=1).mean("seed")
    np.testing.assert_allclose(step.gamma / step.rho, 8 * np.array([0.25, 4.0]) / 2, rtol=0.05)


def test_maps_are_attention():
    maps = vision_transformer.maps(replace(TINY, n=(4,), d=(120,)))
    assert maps.dims == ("snr", "query", "key") and maps.shape == (2, 6, 6)
    np.testing.assert_allclose(maps.sum("key"), 1.0, rtol=1e-5)


@pytest.mark.parametrize(
    "change, message",
    [({"model": ("mamba",)}, "model must be"), ({"d": (40,), "n": (8,)}, "at least 47"), ({"snr": (0.0,)}, "snr must")],
)
def test_bad_cells_are_refused_before_any_work(change, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        vision_transformer.run(replace(TINY, **change), cache=tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_stored_result_is_recomputed_in_three_cells():
    paper = results.open("vision_transformer")
    some = replace(Setting.paper(), n=(4,), snr=Setting.paper().snr[5:12:3], seed=(0, 1))
    stored = paper.sel(n=[4], snr=list(some.snr), seed=[0, 1], method="nearest")
    fresh = measure(some)
    np.testing.assert_allclose(fresh.test_loss, stored.test_loss, atol=0.01)
    np.testing.assert_allclose(fresh.train_loss, stored.train_loss, atol=0.001)
