"""The experiments at tiny presets, and the exchange rate on curves that are known."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from flbook.lectures.training_strategies import federated_learning
from flbook.lectures.training_strategies.federated_learning import exchange, federated_alone, federated_rounds
from flbook.lectures.training_strategies.federated_learning.federation import agreeing

TINY = federated_learning.experiment.setting("tiny")


def test_with_one_signal_clients_are_one_client_with_all_samples():
    together = federated_learning.experiment.measure(replace(TINY, agreement=(1.0,))).test_error
    pool = federated_alone.experiment.setting("tiny", n=(TINY.samples,))
    lone = federated_alone.experiment.measure(pool).test_error
    for k in TINY.clients:  # the same law, not the same draws: other coordinates hold features
        assert together.sel(clients=k).shape == (1, 2)
        assert abs(float(together.sel(clients=k).mean() - lone.mean())) < 0.3


def test_the_race_ends_where_the_sweep_does():
    setting = replace(TINY, clients=(4,), agreement=(0.5,))
    race, cell = federated_learning.race(setting), federated_learning.experiment.measure(setting)
    for name in ("test_error", "train_loss"):
        np.testing.assert_allclose(race[name].isel(step=-1), cell[name][0, 0], rtol=1e-5)
    assert race.train_loss[0].values == pytest.approx(np.log(2), rel=1e-3)


def test_averages_every_step_are_the_pool_in_the_sweep_of_rounds():
    setting = federated_rounds.experiment.setting("tiny")
    every = federated_rounds.experiment.measure(setting).test_error.sel(every=1)
    samples = setting.clients * setting.n
    pool = federated_alone.Setting(n=(samples,), seed=setting.seed, d=setting.d, m=setting.m, mu=setting.mu,
                                   step=setting.lr / samples, steps=setting.steps, points=setting.points)
    np.testing.assert_allclose(every, federated_alone.experiment.measure(pool).test_error[0], atol=1 / 32)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.2])
def test_the_exchange_finds_the_power_that_is_there(power):
    n = np.array([2, 5, 10, 20, 40, 70, 100])
    seeds = 1 + 0.01 * np.random.default_rng(0).normal(size=6)

    def curve(x):
        return 0.5 / (1 + (np.asarray(x) / 25.0) ** 2)

    grid, errors = np.log(n), curve(n)
    rho, k = np.array([0.0, 0.3, 0.5, 0.8, 1.0]), np.array([5, 10])
    worth = 100 * agreeing(k[:, None], rho) ** power
    cells = np.interp(np.log(worth), grid, errors)[..., None] * seeds
    axes = {"clients": k, "agreement": rho}
    federated = xr.DataArray(cells, axes | {"seed": range(6)}, ("clients", "agreement", "seed"), "error")
    alone = xr.DataArray(errors[:, None] * seeds, {"n": n, "seed": range(6)}, ("n", "seed"), "error")
    assert exchange.exponent(federated, alone, 100).value == pytest.approx(power, abs=0.02)


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="^clients must divide the 8 samples"):
        replace(TINY, clients=(3,))
    with pytest.raises(ValueError, match="^every must divide the 40 steps"):
        replace(federated_rounds.experiment.setting("tiny"), every=(7,))
    with pytest.raises(ValueError, match="^agreement "):
        replace(TINY, agreement=(1.5,))
