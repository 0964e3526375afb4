"""Residual networks: their steps are those of automatic differentiation and of PyTorch's rules."""

import pytest
import torch
from torch import nn

from flbook.lectures.representation.rate_transfer import deep_rates

X = torch.randn(9, 5, generator=torch.Generator().manual_seed(0))
CLASSES = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1, 2])
DEPTH, SCALE = 3, 3**-0.5


class Residual(nn.Module):
    """The network as a module, in double precision."""

    def __init__(self, begin):
        super().__init__()
        first, *blocks, last = (nn.Parameter(w.double()) for w in begin)
        self.first, self.blocks, self.last = first, nn.ParameterList(blocks), last

    def forward(self, x):
        h = x @ self.first.T
        for W in self.blocks:
            h = h + SCALE * torch.tanh(h) @ W.T
        return h @ self.last.T

    def in_order(self):
        return [self.first, *self.blocks, self.last]


def by_torch(begin, rule, lr, steps):
    """The same training by automatic differentiation and torch.optim; labels of size 0.3."""
    net = Residual(begin)
    optimizer = torch.optim.Adam(net.parameters(), lr, eps=1e-12) if rule == "Adam" else torch.optim.SGD(
        net.parameters(), lr)
    f_0 = net(X.double()).detach()
    wanted = 0.3 * (torch.eye(3).double()[CLASSES] - 1 / 3) * 3**0.5
    for _ in range(steps):
        optimizer.zero_grad()
        ((net(X.double()) - f_0 - wanted).square().sum(-1).mean() / 2).backward()
        optimizer.step()
    return net.in_order()


@pytest.mark.parametrize("rule, lr", [("gradient descent", 0.05), ("Adam", 1e-3)])
def test_its_training_is_that_of_torch(rule, lr):
    begin = deep_rates.start(16, DEPTH, 5, 3, seed=0)
    found = deep_rates.trained(begin, SCALE, X, CLASSES, rule, torch.tensor([lr / 2, lr]), 6)
    assert len(found) == DEPTH + 2
    for k, rate in enumerate((lr / 2, lr)):
        for ours, theirs in zip(found, by_torch(begin, rule, rate, 6), strict=True):
            torch.testing.assert_close(ours[k].double(), theirs.detach(), rtol=2e-3, atol=2e-5)


@pytest.mark.parametrize("rule", ["gradient descent", "Adam"])
def test_progress_is_the_first_decrease(rule):
    """The loss after one step at a small rate; its unit, that of predicting 0, is 0.3^2 (1 - 1/10) 10 / 2."""
    found = deep_rates.experiment.measure(deep_rates.Setting(
        rule=(rule,), alpha=(0.5,), depth=(2,), seed=(0,), octave=(-10.0,), steps=1, width=16)).squeeze()
    decrease = 0.405 * (1 - found.loss.item())
    assert decrease == pytest.approx(found.progress.item() * found.rate.item(), rel=0.05)


@pytest.mark.parametrize("rule, alpha, exponent", [
    ("gradient descent", 0.0, -1.0), ("gradient descent", 0.5, 0.0), ("gradient descent", 1.0, 0.0),
    ("Adam", 0.0, -1.0), ("Adam", 0.5, -0.5), ("Adam", 1.0, 0.0)])
def test_the_window_moves_by_the_exponent_of_theory(rule, alpha, exponent):
    setting = deep_rates.Setting()
    shallow, deep = (deep_rates.window(setting, rule, alpha, depth) for depth in (2, 32))
    torch.testing.assert_close(deep, shallow * 16**exponent)


def test_unknown_rules_and_too_many_samples():
    with pytest.raises(ValueError, match="rule must be among gradient descent"):
        deep_rates.Setting(rule=("momentum",))
    with pytest.raises(ValueError, match="samples must be at most 1796, the digits that there are; got 1797"):
        deep_rates.Setting(samples=1797)
