"""Particles under Langevin dynamics: one step by hand, streams of noise, and their stationary law where it is known."""

import pytest
import torch

from flbook.lectures.in_context_learning.mean_field_langevin.convergence import LinearNeurons
from flbook.lectures.in_context_learning.mean_field_langevin.langevin import Langevin
from flbook.lectures.in_context_learning.mean_field_langevin.neurons import BoundedUnit, Neurons, linear_unit, tanh_unit
from flbook.training.fit import fit
from flbook.training.losses import squared
from flbook.training.network import Training

X = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], dtype=torch.float64)
Y = torch.tensor([0.5, -1.0, 0.2], dtype=torch.float64)


def start(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_without_noise_a_step_is_the_potentials_gradient():
    theta = start(4, 2)
    problem = Training(Neurons(tanh_unit, theta), X, Y, squared)
    after = fit(problem, Langevin(0.1, 0.0, 0.3), 1).params["theta"]
    residual = problem.predict({"theta": theta}) - Y
    slopes = 1 - torch.tanh(theta @ X.T) ** 2  # neuron, sample
    force = (slopes * residual) @ X / 3 + 0.3 * theta
    torch.testing.assert_close(after, theta - 0.1 * force)


def test_noise_has_the_temperatures_size_and_belongs_to_the_seed():
    problem = Training(Neurons(linear_unit, torch.zeros(2, 3, 200, 2, dtype=torch.float64)), X, 0 * Y, squared)
    lam = torch.tensor([0.5, 2.0])[:, None]
    after = fit(problem, Langevin(0.01, lam, 0.0, (4, 5, 6), axis=1), 1).params["theta"]
    torch.testing.assert_close(after[1], 2 * after[0], rtol=1e-6, atol=0), "one stream serves both temperatures"
    assert after[0].std().item() == pytest.approx((2 * 0.5 * 0.01) ** 0.5, rel=0.05)
    alone = Training(Neurons(linear_unit, torch.zeros(1, 200, 2, dtype=torch.float64)), X, 0 * Y, squared)
    one = fit(alone, Langevin(0.01, 0.5, 0.0, (5,)), 1).params["theta"]
    torch.testing.assert_close(one[0], after[0, 1], rtol=1e-6, atol=0)


def test_given_noise_is_taken_in_its_order_and_to_rounding():
    theta, xi = start(4, 2), start(2, 4, 2)
    problem = Training(Neurons(tanh_unit, theta), X, Y, squared)
    after = fit(problem, Langevin(0.1, 0.3, 0.2, given=xi), 2).params["theta"]
    for one in xi:
        still = fit(Training(Neurons(tanh_unit, theta), X, Y, squared), Langevin(0.1, 0.0, 0.2), 1).params["theta"]
        theta = still + (2 * 0.1 * 0.3) ** 0.5 * one
    torch.testing.assert_close(after, theta, rtol=1e-14, atol=1e-14)


def test_copies_have_noise_of_their_own():
    problem = Training(Neurons(linear_unit, torch.zeros(2, 5, 3, 2, dtype=torch.float64)), X, 0 * Y, squared)
    after = fit(problem, Langevin(0.1, 1.0, 0.0, (0, 1)), 40).params["theta"]
    assert after.flatten().unique().numel() == after.numel()


def test_interacting_linear_neurons_have_the_predicted_risk():
    s, width, copies, lr = (2.0, 0.5), 4, 512, 0.05
    theory = LinearNeurons(s, (1.0, 1.0), 0.2, 0.5)
    x = torch.tensor([[2.0, 0.0], [0.0, 1.0]], dtype=torch.float64)  # mean of x x^T is diag(s)
    theta = torch.tensor(theory.mean_star) + (0.2 / 0.5) ** 0.5 * start(1, copies, width, 2)
    problem = Training(Neurons(linear_unit, theta), x, x.sum(-1), squared)
    rule, mean, seen = Langevin(lr, 0.2, 0.5), 0.0, 0
    params = fit(problem, rule, 60).params
    state = rule.start(params)
    for _ in range(400):
        params, state = rule.step(problem, params, state)
        off = params["theta"].mean(-2) - torch.tensor(theory.mean_star)
        mean, seen = mean + (torch.tensor(s) / 2 * off.square()).sum(-1).mean(), seen + 1
    euler = sum(v / (v + 0.5) / (1 - lr * (v + 0.5) / 2) for v in s) * 0.2 / 2
    assert width * mean.item() / seen == pytest.approx(euler, rel=0.06)
    assert euler == pytest.approx(theory.lam / 2 * sum(a / b for a, b in zip(s, theory.rates, strict=True)), rel=0.1)


def test_units():
    theta, x = start(3, 4), torch.ones(2, 2, dtype=torch.float64)
    expected = 5 * torch.tanh(theta[:, 3]) * torch.tanh(theta[:, 0] + theta[:, 1] + theta[:, 2])
    torch.testing.assert_close(BoundedUnit(5.0)(theta, x), expected[:, None].expand(3, 2))
    torch.testing.assert_close(tanh_unit(theta[:, :2], x)[:, 0], torch.tanh(theta[:, 0] + theta[:, 1]))


def test_bad_input_is_one_sentence():
    with pytest.raises(ValueError, match="lr must be positive, lam and decay not negative"):
        Langevin(0.1, -1.0, 0.1)
    problem = Training(Neurons(linear_unit, start(3, 4, 2)), X, Y, squared)
    with pytest.raises(ValueError, match="one stream for each of the 3 members"):
        fit(problem, Langevin(0.1, 0.1, 0.1, (0, 1)), 1)
    with pytest.raises(ValueError, match="at least one neuron"):
        Neurons(linear_unit, start(0, 3))
