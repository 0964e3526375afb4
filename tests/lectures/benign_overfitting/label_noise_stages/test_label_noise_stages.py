"""Two stages at a tiny preset: their order, the exact count on training noise, and what fresh noise does not see."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from flbook.lectures.benign_overfitting import label_noise_stages as stages
from flbook.lectures.benign_overfitting.label_noise_stages import experiment

TINY = experiment.setting("tiny", model=("network",), d=(10**8,), steps=120, points=16)


def test_on_training_noise_the_error_is_half_the_fitted_flips():
    setting = replace(TINY, flip_prob=(0.1,), n_snr2=(12.0,))
    strong = experiment.measure(setting).squeeze(("model", "flip_prob", "d", "n_snr2")).sel(step=slice(2, None))
    np.testing.assert_allclose(strong.test_recycled, 0.5 * 0.1 * strong.fitted_flipped, atol=1e-7)


@pytest.mark.parametrize("model", ["network", "linear", "lazy"])
def test_the_limit_is_where_many_networks_end(model):
    setting = replace(TINY, model=(model,), n_snr2=(4.0, 12.0), n=60, seed=(0, 1, 2, 3), steps=60)
    run, limit = experiment.measure(setting).squeeze(), stages.limit(setting, model).squeeze()
    after = {"step": slice(3, None)}
    ratio = run.signal.mean("seed").sel(**after) / limit.signal.sel(**after)
    assert abs(ratio - 1).max() < (0.01 if model == "linear" else 0.12)
    assert abs(run.fitted_flipped.mean("seed") - limit.fitted_flipped).sel(**after).max() < 0.35


def test_margins_and_overlap():
    film = stages.margins(replace(TINY, n_snr2=(12.0,), seed=(0,)))
    assert film.margin.sizes["sample"] == 20 and film.flipped.sum() == 4
    early, late = film.margin.sel(step=3), film.margin.isel(step=-1)
    assert (early[film.flipped] < 0).all() and (early[~film.flipped] > 0).all() and (late > 0).all()
    turned = stages.overlap(replace(TINY, flip_prob=(0.1,), n_snr2=(12.0,)), (0.0, 0.2, 1.0)).squeeze()
    np.testing.assert_allclose(turned.test_error.mean("seed"), [0, 0, 0.05], atol=1e-6)
    np.testing.assert_allclose(turned.predicted, turned.test_error, atol=1e-6)


def test_crossing():
    curves = xr.DataArray([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]], dims=("seed", "x"), coords={"x": [1.0, 4.0, 16.0]})
    found = stages.crossing(curves, "x", 0.5)
    np.testing.assert_allclose([found.value, *found.per_seed], [4.0, 2.0, 8.0])


def test_presets_flip_exactly_pn_labels():
    for setting in map(experiment.setting, ("book", "flips", "rivals", "longer")):
        for p in setting.flip_prob:
            assert p * setting.n == pytest.approx(round(p * setting.n))
