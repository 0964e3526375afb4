"""The race at a tiny preset: cells are what direct training gives, whatever grid stands around them."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook import measures
from flbook.data import SignalNoise
from flbook.lectures.benign_overfitting import relu_power_phase
from flbook.lectures.benign_overfitting.relu_power_phase import Setting, measure
from flbook.models import TwoLayerCNN, relu_power
from flbook.runs import results, settings
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent

TINY = Setting(n=(10,), d=(500, 2000), snr=(0.1, 1.2), seed=(0, 1, 2), m=10, steps=300, points=64)


def test_a_labelled_dataset():
    models = ("network", "linear", "lazy", "frozen", "forecast")
    setting = replace(TINY, model=models, q=(3.0, 4.0), n=(6, 10), steps=10)
    dataset = measure(setting)
    assert set(dataset) == {"test_error", "test_loss", "train_error", "train_loss"}
    assert set(settings.axes(setting)) == set(dataset.dims)
    for name, values in settings.axes(setting).items():
        assert tuple(dataset[name].values.tolist()) == values, name
    for name, variable in {**dataset.data_vars, **dataset.coords}.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, name
    assert ((dataset.test_error >= 0) & (dataset.test_error <= 1)).all()
    assert dataset.train_loss.sel(model="forecast").isnull().all()
    assert dataset.drop_sel(model="forecast").notnull().all()


def test_one_regime_learns_the_signal_the_other_the_noise():
    cells, run = measure(TINY).squeeze(), relu_power_phase.growth(TINY)
    assert (cells.train_error == 0).all()
    assert (cells.test_error.sel(snr=0.1) > 0.4).all() and (cells.test_error.sel(snr=1.2) < 0.05).all()
    end = run.isel(step=-1)
    assert (end.gamma.sel(snr=0.1) < end.rho.sel(snr=0.1) / 10).all()
    assert (end.gamma.sel(snr=1.2) > end.rho.sel(snr=1.2)).all()
    np.testing.assert_allclose(end.train_loss.transpose("d", "seed", "snr"), cells.train_loss, rtol=1e-4)
    assert run.time[-1] == pytest.approx(300 * TINY.lr * 10)


def test_a_cell_does_not_see_the_grid_around_it():
    models = ("network", "linear", "lazy", "forecast")
    setting = replace(TINY, model=models, q=(3.0, 4.0), n=(6, 10), steps=50)
    whole = measure(setting)
    for model, q, n, d, snr, seed in (("network", 3.0, 10, 2000, 1.2, 1), ("lazy", 4.0, 6, 500, 0.1, 2),
                                      ("forecast", 3.0, 6, 2000, 1.2, 0)):
        one = measure(replace(setting, model=(model,), q=(q,), n=(n,), d=(d,), snr=(snr,), seed=(seed,)))
        expected = whole.test_error.sel(model=model, q=q, n=n, d=d, snr=snr, seed=seed)
        np.testing.assert_allclose(one.test_error.squeeze(), expected, atol=0.02)


def test_a_cell_is_that_of_networks_on_drawn_vectors():
    """Equal in distribution: forty networks in d = 300, drawn as vectors and drawn as a Gram matrix."""
    seeds, d, snr = tuple(range(40)), 300, 0.75
    setting = replace(TINY, d=(d,), snr=(snr,), seed=seeds, points=128)
    cells = measure(setting).squeeze()
    data = SignalNoise(n=10, d=d, mu_norm=snr * math.sqrt(d), orthogonal=True)
    sample, fresh = data.draw(seeds), data.draw_test(200, seeds)
    cnn = TwoLayerCNN(d, 10, 0.1 / math.sqrt(d), relu_power(3.0), seed=seeds, dtype=torch.float64)
    direct = Training(cnn, sample.x, sample.observed)
    params = fit(direct, GradientDescent(setting.lr * 10 * 10 / d), setting.steps).params
    error = measures.test_error_on(direct, params, fresh.x, fresh.y).numpy()
    spread = math.hypot(error.std(), float(cells.test_error.std())) / math.sqrt(len(seeds))
    assert abs(error.mean() - float(cells.test_error.mean())) < 4 * spread


def test_the_clocks_are_those_of_the_closed_form():
    setting = replace(TINY, n=(8,), d=(100000,), snr=(0.05, 1.5), lr=0.01, steps=900, start=0.2)
    clocks = relu_power_phase.clocks(setting).squeeze("n")
    np.testing.assert_allclose(clocks.noise.sel(snr=0.05), clocks.noise_theory.sel(snr=0.05), rtol=0.03)
    np.testing.assert_allclose(clocks.signal.sel(snr=1.5), clocks.signal_theory.sel(snr=1.5), rtol=0.2)
    assert (clocks.signal > clocks.signal_theory * 0.98).sel(snr=1.5).all(), "steps lag behind the flow"
    assert clocks.signal.sel(snr=0.05).isnull().all()


def test_step_sizes_and_the_size_of_the_start():
    problem = relu_power_phase.exact(TINY, 3.0, 10)
    assert problem.start()["mu"].shape == (2, 3, 2, 20), "ensemble axes d, seed, snr"
    rms = problem.gram.w_xi.square().mean((1, 2, 3, 4)).sqrt()
    np.testing.assert_allclose(rms, 0.1, rtol=0.1)
    np.testing.assert_allclose(problem.gram.mu_mu[:, 0, 0], [0.01 * 500, 0.01 * 2000])
    like = torch.zeros((), dtype=torch.float64)
    network = relu_power_phase.step_size(TINY, 10, like).flatten()
    np.testing.assert_allclose(network, [0.05 * 100 / 500, 0.05 * 100 / 2000])
    lazy = relu_power_phase.step_size(TINY, 10, like, "lazy", 3.0).flatten()
    np.testing.assert_allclose(lazy, [100 / 500 / 0.03**2, 100 / 2000 / 0.03**2])


@pytest.mark.parametrize("preset", [Setting.book, Setting.relu, Setting.rivals, Setting.lazy, Setting.clocks,
                                    Setting.paper])
def test_presets_can_be_run(preset):
    relu_power_phase.check(preset())
    assert settings.to_json(preset())


@pytest.mark.parametrize("change, sentence", [
    (dict(model=("network", "kernel")), "model must be among network, linear, lazy, frozen, forecast; got 'kernel'"),
    (dict(model=("forecast",), q=(2.0,)), "q must be above 2 for a forecast, since slower growth has no finite end"),
    (dict(d=(10,)), r"d must be at least n \+ k \+ 1 = 31"),
    (dict(snr=(0.0,)), "snr must be positive, so that noise can be orthogonal to the signal; got 0.0"),
])
def test_bad_settings_are_one_sentence(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        relu_power_phase.run(replace(TINY, **change))


def test_run_and_what_is_stored(tmp_path):
    setting = replace(TINY, model=("network", "forecast"), steps=20)
    dataset = relu_power_phase.run(setting, cache=tmp_path)
    np.testing.assert_allclose(dataset.test_error, measure(setting).test_error.transpose(*dataset.test_error.dims))
    kept = relu_power_phase.stored(dataset)
    assert kept.test_error.sizes["seed"] == 3 and "seed" not in kept.train_loss.dims


def test_paths_begin_at_the_start_and_end_with_a_winner():
    setting = replace(TINY, d=(100000,), snr=(0.05, 1.5), steps=300)
    paths = relu_power_phase.paths(setting)
    assert paths.u.sizes["filter"] == 20 and paths.z.sizes["sample"] == 10 and paths.time[0] == 0
    assert abs(paths.z[0]).max() < 0.5
    end = paths.isel(step=-1)
    assert (end.u.max("filter").sel(snr=1.5) > 1).all() and (end.u.max("filter").sel(snr=0.05) < 0.1).all()
    assert (end.z.median("sample").sel(snr=0.05) > 1).all()


@pytest.mark.parametrize("model, q, n, d, snr, seed", [("network", 3.0, 20, 16000, 4, 3),
                                                       ("network", 4.0, 10, 256000, 6, 0),
                                                       ("forecast", 3.0, 40, 64000, 5, 7)])
def test_the_stored_result_can_be_had_again(model, q, n, d, snr, seed):
    paper = Setting.paper()
    at = dict(model=(model,), q=(q,), n=(n,), d=(d,), snr=(paper.snr[snr],), seed=(seed,))
    kept = results.open("relu_power_phase").test_error.sel(**{name: value[0] for name, value in at.items()})
    again = measure(paper.thinned(**at)).test_error.item()
    assert again == pytest.approx(kept.item(), abs=0.01)
