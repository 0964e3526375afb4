"""The exchange law: by hand, against training in small steps, and the forecast that it gives for the square."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook import measures
from flbook.data import SignalNoise
from flbook.dynamics import GramTraining, draw_gram
from flbook.lectures.benign_overfitting import relu_power_phase
from flbook.lectures.benign_overfitting.relu_power_phase import Setting, exchange_law
from flbook.models import ReLUPower
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

BY_HAND = [(1.0, 2.0, 2.5), (2.0, math.log(2), 2.0), (3.0, -0.5, 1.6), (4.0, -0.125, 1.372)]


@pytest.mark.parametrize("q, at_2, mean", BY_HAND)
def test_the_potential_and_the_mean_by_hand(q, at_2, mean):
    assert float(exchange_law.potential(2.0, q)) == pytest.approx(at_2)
    assert float(exchange_law.mean_response(np.array([1.0, 4.0]), q)) == pytest.approx(mean, abs=5e-4)
    z = np.array([0.3, 1.7])
    slope = (exchange_law.potential(z + 1e-6, q) - exchange_law.potential(z - 1e-6, q)) / 2e-6
    np.testing.assert_allclose(slope, z ** (1 - q), rtol=1e-6)


def test_what_starts_below_zero_has_no_potential():
    assert np.isnan(exchange_law.potential(np.array([-1.0, 0.0]), 3.0)).all()


def test_the_signal_by_hand():
    assert float(exchange_law.signal_at(3.0, 0.5, 1.0, 4.0, 1.0)) == pytest.approx(4.5)  # 0.5 + 2 (3 - 1)
    assert float(exchange_law.signal_at(3.0, 0.5, 1.0, 4.0, 2.0)) == pytest.approx(4.5)  # 0.5 * 3^2
    assert float(exchange_law.signal_at(2.0, 0.5, 1.0, 1.0, 3.0)) == pytest.approx(1 / 1.75)  # 1/u = 2 - (1 - 1/2)/2
    assert np.isnan(exchange_law.signal_at(2.0, 0.5, 1.0, 9.0, 3.0)), "it has blown up"


@pytest.mark.parametrize("q, steps", [(1.0, 150), (2.0, 300), (3.0, 300)])
def test_trained_networks_keep_the_law(q, steps):
    """Whatever the loss does: three signals, two labels, from the start to the end, where all labels are fitted."""
    a = np.array([0.3, 1.0, 3.0])
    setting = Setting(q=(q,), d=(10_000_000,), snr=tuple((a / 20) ** 0.5), seed=(0, 1, 2), lr=0.02, steps=steps)
    run = relu_power_phase.responses(relu_power_phase.paths(setting), q)
    start, end = run.isel(step=0), run.isel(step=-1)
    found, noise, u_0, noise_0 = (da.transpose("seed", "snr", "label").values
                                  for da in (end.signal, end.noise, start.signal, start.noise))
    told = exchange_law.signal_at(noise, u_0, noise_0, a[:, None], q)
    won = np.isnan(told) | (found > 3.0)
    np.testing.assert_allclose(found[~won], told[~won], rtol=0.06)


def square_problem(a, seeds=4, n=10, m=8, d=10_000_000):
    gram = draw_gram(n, 2 * m, d, sigma_0=0.1 / math.sqrt(d), orthogonal=True, seed=tuple(range(seeds)))
    y = 1.0 - 2.0 * (torch.arange(n) % 2).double()
    return GramTraining(gram.with_signals(torch.tensor([math.sqrt(a * d / n)], dtype=torch.float64)), y, y, 1 / m,
                        ReLUPower(2.0), law=SignalNoise(orthogonal=True).test_law)


@pytest.mark.parametrize("a", [0.3, 1.0, 2.5])
def test_the_square_ends_as_forecast(a):
    problem, lr, steps = square_problem(a, seeds=12), 0.05, 600
    trained = fit(problem, GradientDescent(lr * 10 * 8 / 10_000_000), steps).params
    told = exchange_law.square_forecast(problem, exchange_law.margin_after(steps, lr))
    found, forecast = (measures.test_error(problem, p, 256) for p in (trained, told))
    assert (found - forecast).abs().median() < 0.01 and (found - forecast).abs().mean() < 0.03


def test_the_margin_is_that_of_the_last_samples():
    """Where noise wins, training ends at the margin of the formula, up to the time that growing took."""
    problem = square_problem(0.05)
    params = fit(problem, GradientDescent(0.05 * 10 * 8 / 10_000_000), 600).params
    margins = problem.y * problem.predict(params)
    assert exchange_law.margin_after(600, 0.05) == pytest.approx(6.69, abs=0.01)
    assert float(margins.median()) == pytest.approx(exchange_law.margin_after(600, 0.05), abs=0.5)


def test_only_the_square_is_forecast():
    with pytest.raises(ValueError, match=r"activation must be ReLU\^2; got ReLUPower"):
        exchange_law.square_forecast(replace(square_problem(1.0), activation=ReLUPower(3.0)), 6.0)


def test_square_holds_both_beside_each_other():
    setting = Setting(n=(8, 10), d=(100_000,), snr=(0.1, 0.6), seed=(0, 1, 2), points=64)
    both = relu_power_phase.square(setting)
    assert both.network.dims == both.forecast.dims == ("n", "seed", "snr")
    assert abs(both.network - both.forecast).max() < 0.1
    assert both.network.sel(snr=0.6).max() < 0.05 < both.network.sel(snr=0.1).min()
