"""The race at a tiny preset: cells are what direct training gives, whatever grid stands around them."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook import measures
from flbook.data import SignalNoise
from flbook.lectures.benign_overfitting import relu_power_phase
from flbook.lectures.benign_overfitting.relu_power_phase import Setting, measure, run
from flbook.models import TwoLayerCNN, relu_power
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent

TINY = Setting.tiny().thinned(model=("network",), steps=300)


def test_a_forecast_has_errors_but_no_training():
    dataset = run(Setting.tiny())
    assert ((dataset.test_error >= 0) & (dataset.test_error <= 1)).all()
    assert dataset.train_loss.sel(model="forecast").isnull().all()
    assert dataset.drop_sel(model="forecast").notnull().all()


def test_one_regime_learns_the_signal_the_other_the_noise():
    cells, growth = run(TINY).squeeze(), relu_power_phase.growth(TINY)
    assert (cells.train_error == 0).all()
    assert (cells.test_error.sel(snr=0.1) > 0.4).all() and (cells.test_error.sel(snr=1.2) < 0.05).all()
    end = growth.isel(step=-1)
    assert (end.gamma.sel(snr=0.1) < end.rho.sel(snr=0.1) / 10).all()
    assert (end.gamma.sel(snr=1.2) > end.rho.sel(snr=1.2)).all()
    np.testing.assert_allclose(end.train_loss.transpose("d", "seed", "snr"), cells.train_loss, rtol=1e-4)
    assert growth.time[-1] == pytest.approx(300 * TINY.lr * 10)


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


@pytest.mark.parametrize("change, sentence", [
    (dict(model=("forecast",), q=(2.0,)), "q must be above 2 for a forecast, since slower growth has no finite end"),
    (dict(d=(10,)), r"d must be at least n \+ k \+ 1 = 31"),
])
def test_a_bad_cell_is_refused_before_the_first_is_computed(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        TINY.thinned(**change)


def test_paths_begin_at_the_start_and_end_with_a_winner():
    setting = replace(TINY, d=(100000,), snr=(0.05, 1.5), steps=300)
    paths = relu_power_phase.paths(setting)
    assert paths.u.sizes["filter"] == 20 and paths.z.sizes["sample"] == 10 and paths.time[0] == 0
    assert abs(paths.z[0]).max() < 0.5
    end = paths.isel(step=-1)
    assert (end.u.max("filter").sel(snr=1.5) > 1).all() and (end.u.max("filter").sel(snr=0.05) < 0.1).all()
    assert (end.z.median("sample").sel(snr=0.05) > 1).all()
