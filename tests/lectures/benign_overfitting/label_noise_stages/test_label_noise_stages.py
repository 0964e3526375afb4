"""Two stages at a tiny preset: their order, the exact count on training noise, and what fresh noise does not see."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch
import xarray as xr

from flbook import measures, theory
from flbook.lectures.benign_overfitting import label_noise_stages as stages
from flbook.lectures.benign_overfitting.label_noise_stages import Setting, measure
from flbook.lectures.benign_overfitting.label_noise_stages.recycled import RecycledTest
from flbook.runs import results, settings
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

TINY = Setting(d=(10**8,), n_snr2=(1.0, 12.0), seed=(0, 1, 2), n=20, m=6, lr=0.3, steps=120, points=16)


def test_a_labelled_dataset():
    models = ("network", "linear", "lazy", "frozen")
    setting = replace(TINY, model=models, flip_prob=(0.1, 0.3), d=(500, 10**8), steps=4)
    dataset = measure(setting)
    assert set(settings.axes(setting)) | {"step"} == set(dataset.dims)
    for name, values in settings.axes(setting).items():
        assert tuple(dataset[name].values.tolist()) == values, name
    for name, variable in {**dataset.data_vars, **dataset.coords}.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, name


def test_clean_first_flipped_later():
    run = measure(TINY).squeeze(("model", "flip_prob", "d"))
    strong, weak = run.sel(n_snr2=12.0), run.sel(n_snr2=1.0)
    assert (strong.fitted_clean.sel(step=slice(2, None)) == 1).all()
    assert (strong.fitted_flipped.sel(step=3) == 0).all() and (strong.fitted_flipped[:, -1] == 1).all()
    assert weak.fitted_flipped.sel(step=slice(2, None)).min("step").mean() > 0.6, "no first stage"
    assert (strong.test_fresh.sel(step=slice(2, None)) == 0).all(), "fresh noise is never harmed"


def test_on_training_noise_the_error_is_half_the_fitted_flips():
    setting = replace(TINY, flip_prob=(0.1,), n_snr2=(12.0,))
    strong = measure(setting).squeeze(("model", "flip_prob", "d", "n_snr2")).sel(step=slice(2, None))
    np.testing.assert_allclose(strong.test_recycled, 0.5 * 0.1 * strong.fitted_flipped, atol=1e-7)


def test_a_cell_does_not_see_the_grid_around_it():
    setting = replace(TINY, model=("network", "lazy"), d=(500, 10**8), flip_prob=(0.1, 0.2), steps=30)
    whole = measure(setting)
    one = measure(replace(setting, model=("lazy",), d=(500,), flip_prob=(0.2,), n_snr2=(12.0,), seed=(1,)))
    for name in one:
        expected = whole[name].sel(model="lazy", d=500, flip_prob=0.2, n_snr2=12.0, seed=1)
        np.testing.assert_allclose(one[name].squeeze(), expected, rtol=2e-3, atol=0.01, err_msg=name)


@pytest.mark.parametrize("model", ["network", "linear", "lazy"])
def test_the_limit_is_where_many_networks_end(model):
    setting = replace(TINY, model=(model,), n_snr2=(4.0, 12.0), n=60, seed=(0, 1, 2, 3), steps=60)
    run, limit = measure(setting).squeeze(), stages.limit(setting, model).squeeze()
    after = {"step": slice(3, None)}
    ratio = run.signal.mean("seed").sel(**after) / limit.signal.sel(**after)
    assert abs(ratio - 1).max() < (0.01 if model == "linear" else 0.12)
    assert abs(run.fitted_flipped.mean("seed") - limit.fitted_flipped).sel(**after).max() < 0.35


def test_few_random_features_neither_wait_nor_memorise():
    run = measure(replace(TINY, model=("frozen",), n=60, n_snr2=(6.0,), seed=tuple(range(10)))).squeeze()
    last = run.isel(step=-1).mean("seed")
    assert last.fitted_clean < 0.95 and last.fitted_flipped < 0.8, "12 features, 60 labels"
    assert last.test_fresh > theory.random_filters_error(6, 6.0 / 60)
    np.testing.assert_allclose(run.train_loss.diff("step").max(), 0, atol=1e-3)


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


def test_presets_can_be_run():
    for preset in (Setting.book, Setting.flips, Setting.rivals, Setting.paper):
        setting = preset()
        stages.check(setting)
        for field in fields(setting):
            if isinstance(value := getattr(setting, field.name), tuple):
                assert value and len(set(value)) == len(value), field.name
        for p in setting.flip_prob:
            assert p * setting.n == pytest.approx(round(p * setting.n)), "exactly pn flips"
        assert settings.to_json(setting)


def test_bad_settings_are_one_sentence():
    for change, sentence in [
        (dict(flip_prob=(0.5,)), r"flip_prob must lie in \[0, 1/2\)"),
        (dict(flip_prob=(0.0,)), "flip_prob must leave at least one flipped and one clean sample of n = 20; got 0.0"),
        (dict(d=(20,)), "d must be at least"),
        (dict(n_snr2=(0.0,)), "n_snr2 must be positive"),
        (dict(model=("deep",)), "model must be among network, linear, lazy, frozen; got 'deep'"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            stages.run(replace(TINY, **change))


def test_run_is_measure_in_chunks(tmp_path):
    setting = replace(TINY, steps=10)
    dataset = stages.run(setting, cache=tmp_path, memory=1e4)
    assert len(list(tmp_path.iterdir())) > 1
    for name, values in measure(setting).items():
        np.testing.assert_allclose(dataset[name].transpose(*values.dims), values, rtol=1e-4, atol=0.01)


def test_three_cells_of_the_stored_result_again():
    paper, kept = Setting.paper(), results.open("label_noise_stages")
    for p, d, a, seed in ((0.04, 4000, 10.1, 0), (0.2, 10**9, 4.0, 3), (0.32, 4000, 32.0, 11)):
        one = replace(paper, flip_prob=(p,), d=(d,), n_snr2=(a,), seed=(seed,))
        network = stages.problem(one)
        rule = GradientDescent(stages.step_size(one, network.gram.w_w))
        params = fit(network, rule, paper.steps).params
        error = measures.test_error(RecycledTest(network), params).item()
        expected = float(kept.test_recycled_last.sel(flip_prob=p, d=d, n_snr2=a, seed=seed))
        assert error == pytest.approx(expected, abs=0.011), (p, d, a, seed)
    assert torch.get_default_dtype() == torch.float32
