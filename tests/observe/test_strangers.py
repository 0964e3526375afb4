"""Networks that the book does not have: a residual block on pictures and a small transformer, observed."""

import pytest
import torch
from torch import nn

from flbook import observe


class Residual(nn.Module):
    """A residual block with batch normalisation, and a linear head on the mean over places."""

    def __init__(self, width: int = 6):
        super().__init__()
        self.stem, self.conv = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        self.norm, self.head = nn.BatchNorm2d(width), nn.Linear(width, 1)

    def forward(self, x):
        h = self.stem(x)
        return self.head((h + self.norm(self.conv(h)).relu()).mean((-2, -1)))


class Reader(nn.Module):
    """An encoder of PyTorch over eight tokens of four numbers, read at the last."""

    def __init__(self, width: int = 8):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 2, 16, dropout=0.0, batch_first=True)
        self.embed, self.encoder = nn.Linear(4, width), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.encoder(self.embed(x))[:, -1])


STRANGERS = {"residual block": (Residual, (3, 6, 6)), "transformer": (Reader, (8, 4))}


@pytest.mark.parametrize("name", STRANGERS)
def test_every_function_observes_it(name):
    make, shape = STRANGERS[name]
    torch.manual_seed(0)
    module, x = make().double().eval(), torch.randn(10, *shape).double()
    y = x.flatten(1)[:, 0].sign()
    f, params = observe.functional(module)

    def loss(params):
        return (f(params, x)[:, 0] - y).square().mean()

    outer = observe.agop(f, params, x)
    torch.testing.assert_close(outer, outer.T)
    assert torch.linalg.eigvalsh(outer)[0] > -1e-10
    kernel = observe.ntk(f, params, x)
    assert torch.linalg.eigvalsh(kernel)[0] > -1e-8
    assert 0 <= observe.alignment(kernel, torch.outer(y, y)) <= 1
    top = observe.sharpness(loss, params)
    assert observe.curvature_along(loss, params, top.vector) == pytest.approx(top.value, rel=1e-6)
    low, high = observe.hessian_trace(loss, params, draws=8).interval
    assert low < high


def test_a_coordinate_check_of_the_residual_block():
    x = torch.randn(12, 3, 6, 6, generator=torch.Generator().manual_seed(0))
    y = x[:, 0, 0, 0].sign()

    def make(width, seed):
        torch.manual_seed(seed)
        return Residual(width).eval()

    found = observe.coordinate_check(
        make, (8, 16, 32), lambda module, width: torch.optim.SGD(module.parameters(), 1e-2 / width),
        lambda module: (module(x)[:, 0] - y).square().mean(), x, seeds=(0, 1))
    assert list(found.exponents) == ["stem", "conv", "norm", "head"] and found.verdict.count("\n") == 3
    assert found.exponents["stem"].value < -0.5, "PyTorch's start with the rate 1/width is a kernel method"
