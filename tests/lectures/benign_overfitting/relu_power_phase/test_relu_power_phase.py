"""The race at a tiny preset: cells are what direct training gives, whatever grid stands around them."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook import measures
from flbook.data import SignalNoise
from flbook.lectures.benign_overfitting import relu_power_phase
from flbook.lectures.benign_overfitting.relu_power_phase import experiment
from flbook.models import ReLUPower, TwoLayerCNN
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent

TINY = experiment.setting("tiny", model=("network",), steps=300)


def test_a_cell_is_that_of_networks_on_drawn_vectors():
    """Equal in distribution: forty networks in d = 300, drawn as vectors and drawn as a Gram matrix."""
    seeds, d, snr = tuple(range(40)), 300, 0.75
    setting = replace(TINY, d=(d,), snr=(snr,), seed=seeds, points=128)
    cells = experiment.measure(setting).squeeze()
    data = SignalNoise(n=10, d=d, mu_norm=snr * math.sqrt(d), orthogonal=True)
    sample, fresh = data.draw(seeds), data.draw_test(200, seeds)
    cnn = TwoLayerCNN(d, 10, 0.1 / math.sqrt(d), ReLUPower(3.0), seed=seeds, dtype=torch.float64)
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


def test_a_class_that_is_not_ahead_is_not_timed():
    times = np.array([[1.0, 3.0], [1.0, np.nan], [np.nan, np.nan]])
    ahead = np.array([[True, True], [True, False], [False, False]])
    np.testing.assert_array_equal(relu_power_phase._mean_of(times, ahead), [2.0, 1.0, np.nan])


def test_paths_begin_at_the_start_and_end_with_a_winner():
    setting = replace(TINY, d=(100000,), snr=(0.05, 1.5), steps=300)
    paths = relu_power_phase.paths(setting)
    assert paths.u.sizes["filter"] == 20 and paths.z.sizes["sample"] == 10 and paths.time[0] == 0
    assert abs(paths.z[0]).max() < 0.5
    end = paths.isel(step=-1)
    assert (end.u.max("filter").sel(snr=1.5) > 1).all() and (end.u.max("filter").sel(snr=0.05) < 0.1).all()
    assert (end.z.median("sample").sel(snr=0.05) > 1).all()


def test_one_regime_learns_the_signal_the_other_the_noise():
    cells, paths = experiment.run(TINY).squeeze(), relu_power_phase.paths(TINY)
    assert (cells.train_error == 0).all()
    assert (cells.test_error.sel(snr=0.1) > 0.4).all() and (cells.test_error.sel(snr=1.2) < 0.05).all()
    end = paths.isel(step=-1)
    signal, noise = end.u.max("filter"), end.z.median("sample")
    assert (signal.sel(snr=0.1) < noise.sel(snr=0.1) / 10).all()
    assert (signal.sel(snr=1.2) > noise.sel(snr=1.2)).all()
    assert paths.time[-1] == pytest.approx(300 * TINY.lr * 10)
