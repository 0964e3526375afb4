"""The network of two hidden layers: its steps are those of automatic differentiation and of PyTorch's rules."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from flbook.lectures.representation.rate_transfer.three_layers import ThreeLayers
from flbook.training.parametrisation import MAXIMAL_UPDATE, NEURAL_TANGENT, STANDARD

X = torch.randn(9, 5, generator=torch.Generator().manual_seed(0))
CLASSES = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1, 2])


def by_torch(net, start, lr, steps):
    """The same training by automatic differentiation and torch.optim."""
    params = [w.double().clone().requires_grad_() for w in start]
    powers = net.parametrisation.rates(net.rule)
    groups = [{"params": [w], "lr": lr * net.ratio**r} for w, r in zip(params, powers, strict=True)]
    rule = torch.optim.Adam(groups, eps=1e-12) if net.rule == "Adam" else torch.optim.SGD(groups)

    def output():
        h = (X.double() @ params[0].T).relu()
        return (h @ params[1].T).relu() @ params[2].T

    f_0 = output().detach()
    wanted = net.label * (torch.eye(3).double()[CLASSES] - 1 / 3) * 3**0.5
    for _ in range(steps):
        rule.zero_grad()
        f = output() - f_0
        loss = (f - wanted).square().sum(-1).mean() / 2 if net.loss == "squared" else cross_entropy(f, CLASSES)
        loss.backward()
        rule.step()
    return params


@pytest.mark.parametrize("parametrisation", [STANDARD, NEURAL_TANGENT, MAXIMAL_UPDATE])
@pytest.mark.parametrize("rule", ["gradient descent", "Adam"])
@pytest.mark.parametrize("loss", ["squared", "cross-entropy"])
def test_its_training_is_that_of_torch(parametrisation, rule, loss):
    net = ThreeLayers(16, parametrisation, rule, loss, base=8)
    start, lr = net.start(5, 3, seed=0), 0.05 if rule == "gradient descent" else 1e-3
    found = net.trained(start, X, CLASSES, torch.tensor([lr / 2, lr]), 6)
    for k, rate in enumerate((lr / 2, lr)):
        for ours, theirs in zip(found, by_torch(net, start, rate, 6), strict=True):
            torch.testing.assert_close(ours[k].double(), theirs.detach(), rtol=2e-3, atol=2e-5)


def test_at_the_base_width_all_are_one_network():
    starts = [ThreeLayers(8, one, base=8).start(5, 3, 4) for one in (STANDARD, NEURAL_TANGENT, MAXIMAL_UPDATE)]
    for layers in zip(*starts, strict=True):
        assert torch.equal(layers[0], layers[1]) and torch.equal(layers[0], layers[2])


def test_sizes_of_the_start():
    net = ThreeLayers(400, MAXIMAL_UPDATE, base=100)
    expected = ((2 / 20) ** 0.5, (2 / 400) ** 0.5, 100**-0.5 / 4)
    for w, size in zip(net.start(20, 3, 0), expected, strict=True):
        assert w.std().item() == pytest.approx(size, rel=0.1)
    U, W, _ = ThreeLayers(40, MAXIMAL_UPDATE, base=40, orthogonal=True).start(20, 3, 0)
    torch.testing.assert_close(U.T @ U, torch.eye(20) * 40 * 2 / 20, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(W @ W.T, 2 * torch.eye(40), atol=1e-4, rtol=1e-4)


def test_a_diverged_run_has_an_infinite_loss():
    net = ThreeLayers(8, STANDARD, base=8)
    start = net.start(5, 3, 0)
    end = net.trained(start, X, CLASSES, torch.tensor([1e6, 1e-6]), 30)
    value = net.value(net.outputs(end, X) - net.outputs(start, X), CLASSES)
    assert value[0] > 1e6 and value[1] == pytest.approx(1, abs=1e-3)
