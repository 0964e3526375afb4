"""The phase diagram at a tiny preset: its cells are what direct training gives, whatever grid stands around them."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook import measures, theory
from flbook.data import SignalNoise
from flbook.lectures.benign_overfitting import relu_heatmap
from flbook.lectures.benign_overfitting.relu_heatmap import experiment
from flbook.models import TwoLayerCNN
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent

TINY = experiment.setting("tiny", model=("network",), steps=150)
AUTHORS = replace(TINY, sigma_0=None, scale=0.5, bias=True, lr=0.1, lr_in_noise_time=False, steps=100)


@pytest.mark.parametrize("d, seed, mu", [(100, 2, 1.0), (400, 0, 6.0)])
def test_the_authors_cells_are_those_of_one_network_on_drawn_vectors(d, seed, mu):
    cell = experiment.measure(replace(AUTHORS, points=2048)).sel(d=d, seed=seed, mu=mu).squeeze()
    data = SignalNoise(n=20, d=d, mu_norm=mu, flip_prob=0.1)
    sample, fresh = data.draw(seed), data.draw_test(20000, seed)
    cnn = TwoLayerCNN(d, 10, scale=0.5, bias=True, seed=seed, dtype=torch.float64)
    plain = Training(cnn, sample.x, sample.observed)
    params = fit(plain, GradientDescent(0.1), 100).params
    assert plain.train_loss(params).item() == pytest.approx(cell.train_loss.item(), rel=1e-3)
    assert measures.train_error(plain, params).item() == cell.train_error.item()
    error = measures.test_error_on(plain, params, fresh.x, fresh.y).item()
    assert error == pytest.approx(cell.test_error.item(), abs=0.02)


def test_the_book_lattice_takes_the_same_values_of_the_phase_variable_at_every_dimension():
    book = experiment.setting("book")
    r = [{float(f"{theory.kou_variable(book.n[0], mu, d):.4g}") for mu in book.mu} for d in book.d]
    assert len(set.intersection(*r)) >= 5
    few = replace(book, d=(128, 512), seed=(0,), steps=2, points=8, mu=book.mu[::2])
    error = experiment.measure(few).test_error.squeeze()
    variable = theory.kou_variable(error.n, error.mu, error.d).rename("r")
    collapsed = relu_heatmap.at_equal(error, variable, 1.0, 100.0)
    assert set(collapsed.dims) == {"r", "d"} and collapsed.sizes["r"] == len(set(collapsed.r.values)) > 2
    for d in (128, 512):
        for value, x in zip(collapsed.sel(d=d).values, collapsed.r.values, strict=True):
            near = np.argmin(abs(variable.sel(d=d).values / x - 1))
            assert value == error.sel(d=d)[near] and 1 <= x <= 100


def test_the_race_ends_where_the_sweep_does():
    setting = replace(TINY, steps=40)
    race, cells = relu_heatmap.race(setting), experiment.measure(setting).squeeze(("model", "n"))
    assert set(race.gamma.dims) == {"step", "d", "seed", "mu"} and race.step[0] == 0 and race.step[-1] == 40
    np.testing.assert_allclose(race.test_error[-1], cells.test_error.transpose("d", "seed", "mu"))
    np.testing.assert_allclose(race.train_loss[-1], cells.train_loss.transpose("d", "seed", "mu"), rtol=1e-5)
    assert (race.gamma[0] == 0).all() and (race.rho[0] == 0).all()
    assert (race.gamma.sel(mu=0.0) == 0).all() and (race.gamma.sel(mu=6.0)[-1] > 0).all()
    for name in race:
        assert race[name].attrs["long_name"] and "units" in race[name].attrs, name


def test_rare_errors_are_measured_where_the_sweep_counts():
    setting = replace(TINY, steps=100, points=4096)
    counted, rare = experiment.measure(setting).squeeze(("model", "n")), relu_heatmap.rare(setting)
    np.testing.assert_allclose(rare.test_error, counted.test_error.transpose("d", "seed", "mu"), atol=0.012)
    np.testing.assert_allclose(rare.train_error, counted.train_error.transpose("d", "seed", "mu"))
    assert rare.test_error.sel(mu=6.0).max() < 0.01 < rare.test_error.sel(mu=1.0).min()


def test_the_start_is_small_as_the_theorem_wants_it():
    for setting in map(experiment.setting, ("book", "samples", "rivals", "strong")):
        assert setting.sigma_0 < min(math.sqrt(n) / (setting.sigma_xi * max(setting.d)) for n in setting.n) / 10
