"""Both layers in coefficients: equal to direct training, and the balance changes by exactly what it should."""

from dataclasses import replace

import pytest
import torch

from flbook import measures
from flbook.data import SignalNoise
from flbook.lectures.benign_overfitting.output_layers.both_layers import TwoLayerTraining
from flbook.lectures.benign_overfitting.output_layers.trainable import TrainableCNN
from flbook.models import LeakyReLU, ReLUPower, relu, softplus
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent

N, D, M, SEEDS = 8, 30, 3, (0, 1, 2)
DATA = SignalNoise(n=N, d=D, mu_norm=3.0, flip_prob=0.25)


def both(activation, v_0=0.5):
    sample = DATA.draw(SEEDS)
    cnn = TrainableCNN(D, M, 0.1, v_0, activation, seed=SEEDS, dtype=torch.float64)
    return Training(cnn, sample.x, sample.observed), TwoLayerTraining.of(DATA, sample, cnn)


@pytest.mark.parametrize("activation", [relu, softplus, ReLUPower(2.0)])
def test_coefficients_train_like_weights(activation):
    direct, problem = both(activation)
    rule = GradientDescent(0.1)
    expected, found = fit(direct, rule, 60).params, fit(problem, rule, 60).params
    torch.testing.assert_close(found["v"].unflatten(-1, (2, M)), expected["v"], rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(problem.predict(found), direct.predict(expected), rtol=1e-10, atol=1e-12)
    square = expected["w"].square().sum(-1).flatten(-2)
    torch.testing.assert_close(problem.balance(found), square - expected["v"].flatten(-2) ** 2, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("activation", [relu, LeakyReLU(0.2)])
def test_the_balance_changes_by_eta_squared_times_its_rate(activation):
    _, problem = both(activation)
    rule, params, expected = GradientDescent(0.2), problem.start(), problem.balance(problem.start())
    for _ in range(20):
        expected = expected + 0.2**2 * problem.imbalance_rate(params)
        params, _ = rule.step(problem, params, None)
    torch.testing.assert_close(problem.balance(params), expected, rtol=0, atol=1e-12)
    assert (problem.balance(params) - problem.balance(problem.start())).abs().max() > 1e-4


def test_another_power_has_another_balance():
    _, problem = both(ReLUPower(2.0))
    rule, params = GradientDescent(0.01), problem.start()
    drift = problem.balance(fit(problem, rule, 200).params) - problem.balance(params)
    rates = 0.01**2 * problem.imbalance_rate(params)
    assert drift.abs().max() > 100 * rates.abs().max()


def test_the_test_law_is_that_of_fresh_data():
    direct, problem = both(relu)
    rule = GradientDescent(0.1)
    expected, found = fit(direct, rule, 60).params, fit(problem, rule, 60).params
    fresh = DATA.draw_test(4000)
    error = measures.test_error_on(direct, expected, fresh.x, fresh.y)
    torch.testing.assert_close(measures.test_error(problem, found), error, atol=0.02, rtol=0)


def test_a_size_of_its_own_for_every_member():
    _, problem = both(relu)
    sizes = torch.tensor([0.1, 1.0]).double()[:, None]
    together = replace(problem, v_0=sizes, gram=problem.gram.__class__(*(part[None] for part in problem.gram)))
    ends = fit(together, GradientDescent(0.1), 30).params["v"]
    assert ends.shape == (2, 3, 2 * M)
    for member, size in enumerate((0.1, 1.0)):
        torch.testing.assert_close(ends[member], fit(replace(problem, v_0=size), GradientDescent(0.1), 30).params["v"])
    assert problem.norm(problem.start()).shape == (3,)


def test_no_bias():
    with pytest.raises(ValueError, match="bias must be False where the output layer is trained"):
        replace(both(relu)[1], bias=True)
