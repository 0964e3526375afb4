"""Gradients by hand against autograd, an ensemble against its members, Adam against torch.optim."""

import pytest
import torch
from torch import nn

from flbook.lectures.representation.maximal_update import two_hidden_layers as network
from flbook.lectures.representation.maximal_update.two_hidden_layers import Weights
from flbook.training.parametrisation import MAXIMAL_UPDATE, NEURAL_TANGENT, STANDARD

CHOSEN = [STANDARD, NEURAL_TANGENT, MAXIMAL_UPDATE]
X = torch.randn(7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
Y = X[:, 0].sign()


def test_gradients_are_those_of_half_the_mean_squared_error():
    w = Weights(*(part.clone().requires_grad_() for part in network.start(6, 3, X, 0, [STANDARD])))
    loss = (network.outputs(w, X).f - Y).square().mean() / 2
    for ours, theirs in zip(network.gradients(w, X, Y), torch.autograd.grad(loss, w), strict=True):
        torch.testing.assert_close(ours.detach().reshape(theirs.shape), theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("rule", ["gradient descent", "Adam"])
def test_an_ensemble_moves_as_its_members_do(rule):
    lr = network.rates(12, 4, 0.02, CHOSEN, rule)
    together = network.moved(network.start(12, 4, X, 1, CHOSEN), X, Y, lr, (1, 3), rule)
    for k, one in enumerate(CHOSEN):
        own = Weights(*(rates[k : k + 1] for rates in lr))
        alone = network.moved(network.start(12, 4, X, 1, [one]), X, Y, own, (1, 3), rule)
        torch.testing.assert_close(together[:, k], alone[:, 0], rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("rule, optimizer", [("gradient descent", torch.optim.SGD), ("Adam", torch.optim.Adam)])
def test_three_steps_are_those_of_the_optimizers_of_pytorch(rule, optimizer):
    start, lr = network.start(6, 3, X, 2, [MAXIMAL_UPDATE]), network.rates(6, 3, 0.05, [MAXIMAL_UPDATE], rule)
    theirs = [nn.Parameter(part.clone()) for part in start]
    more = {"eps": network.EPSILON} if rule == "Adam" else {}
    steps = optimizer([{"params": [w], "lr": float(r)} for w, r in zip(theirs, lr, strict=True)], lr=1.0, **more)
    ours = network.descend(start, X, Y, lr, rule)
    for _ in range(3):
        steps.zero_grad()
        ((network.outputs(Weights(*theirs), X).f - Y).square().mean() / 2).backward()
        steps.step()
        now = next(ours)
    for one, other in zip(now, theirs, strict=True):
        torch.testing.assert_close(one.reshape(other.shape), other.detach(), rtol=1e-8, atol=1e-10)


def test_rates_and_starts_are_powers_of_the_width():
    start, lr = network.start(12, 3, X, 0, CHOSEN), network.rates(12, 3, 0.1, CHOSEN, "gradient descent")
    torch.testing.assert_close(start.V[2] * 4.0, start.V[0] * 2.0)
    assert float(network.start(400, 100, X, 0, [STANDARD]).V.std()) == pytest.approx(400**-0.5, rel=0.2)
    assert lr.U.tolist() == pytest.approx([0.1, 0.1, 0.4]) and lr.V.tolist() == pytest.approx([0.1, 0.025, 0.025])
    assert float(network.outputs(network.start(400, 3, X, 0, [STANDARD]), X).z1.var()) == pytest.approx(1, rel=0.2)


def test_a_step_of_rate_zero_moves_nothing():
    still = Weights(*(torch.zeros(1, dtype=torch.float64) for _ in range(3)))
    assert float(network.moved(network.start(6, 3, X, 0, [STANDARD]), X, Y, still, (2,)).abs().max()) < 1e-12
