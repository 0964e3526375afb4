"""The race in closed form: its start by hand, its times and its outcome against training in small steps."""

import math
from dataclasses import replace

import pytest
import torch

from flbook import measures
from flbook.data import SignalNoise
from flbook.dynamics import Gram, GramTraining, draw_gram
from flbook.lectures.benign_overfitting.relu_power_phase import race
from flbook.models import ReLUPower, relu, softplus
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent


def by_hand(q=3.0):
    """Two samples, one filter a sign: u = (0.2, -0.4) for j = +1, -1 times <w, mu>, z = (0.3, 0.5)."""
    eye = torch.eye(2, dtype=torch.float64)
    gram = Gram(mu_mu=torch.tensor(4.0), mu_xi=torch.zeros(2), xi_xi=2 * eye, w_mu=torch.tensor([0.2, 0.4]),
                w_xi=torch.tensor([[0.3, 0.9], [0.7, 0.5]]), w_w=eye, b=torch.zeros(2))
    y = torch.tensor([1.0, -1.0])
    return GramTraining(gram.to(torch.float64), y.double(), y.double(), scale=1.0, activation=ReLUPower(q))


def test_the_start_and_the_times_by_hand():
    u, z = race.contestants(by_hand())
    torch.testing.assert_close(u, torch.tensor([0.2, -0.4], dtype=torch.float64))
    torch.testing.assert_close(z, torch.tensor([0.3, 0.5], dtype=torch.float64))
    signal, noise = race.blow_up_times(by_hand())
    # a = 3 * 4 / 4 = 3 and b = 3 * 2 / (2 * 2) = 1.5
    torch.testing.assert_close(signal, torch.tensor([1 / (3 * 0.2), math.inf], dtype=torch.float64))
    torch.testing.assert_close(noise, torch.tensor([1 / (1.5 * 0.3), 1 / (1.5 * 0.5)], dtype=torch.float64))


def test_the_forecast_by_hand():
    # noise of the class +1 takes 2.22, its signal 1.67: it blows up, to the level where u^3 = 3; the other filter stays
    params = race.forecast(by_hand())
    u = race.positions(by_hand(), params)[0]
    torch.testing.assert_close(u, torch.tensor([3 ** (1 / 3), -0.4], dtype=torch.float64))
    assert (params["xi"] == 0).all()
    weak = replace(by_hand(), gram=by_hand().gram._replace(mu_mu=torch.tensor(1.0, dtype=torch.float64)))
    u = race.positions(weak, race.forecast(weak))[0]
    torch.testing.assert_close(u[0], torch.tensor(1 / (1 / 0.2 - 0.75 / (1.5 * 0.3)), dtype=torch.float64))


@pytest.mark.parametrize("q, snr", [(3.0, 0.15), (3.0, 0.45), (3.0, 0.9), (4.0, 0.2), (4.0, 0.55), (4.0, 0.9)])
def test_the_race_is_run_as_forecast(q, snr):
    """Twelve networks on either side of the boundary and on it, in a dimension where memorised vectors do not meet."""
    n, m, d = 10, 8, 1000000
    gram = draw_gram(n, 2 * m, d, sigma_0=0.1 / math.sqrt(d), orthogonal=True, seed=tuple(range(12)))
    y = 1.0 - 2.0 * (torch.arange(n) % 2).double()
    problem = GramTraining(gram.with_signals(torch.tensor([snr * math.sqrt(d)], dtype=torch.float64)), y, y, 1 / m,
                           ReLUPower(q), law=SignalNoise(orthogonal=True).test_law)
    trained = fit(problem, GradientDescent((0.1, 0.2)[q == 4] * n * m / d), 500).params
    found, forecast = (measures.test_error(problem, p, 256) for p in (trained, race.forecast(problem)))
    assert (found - forecast).abs().median() < 0.01
    assert (found - forecast).abs().mean() < 0.03, "a sample that no filter sees early is not in the formula"


@pytest.mark.parametrize("activation", [relu, ReLUPower(2.0), softplus])
def test_a_race_without_a_finite_end_is_refused(activation):
    with pytest.raises(ValueError, match=r"activation must be ReLU\^q with q > 2 for a race with a finite end"):
        race.forecast(replace(by_hand(), activation=activation))
