"""The coordinate check on one hidden layer, whose exponents are known: NTK parametrisation and mean field."""

import pytest
import torch
from torch import nn

from flbook import observe

X = torch.randn(16, 8, generator=torch.Generator().manual_seed(1))
Y = X[:, 0].sign()


class Net(nn.Module):
    """f = v(tanh(u x)) width^-scale, all weights of order 1."""

    def __init__(self, width: int, seed: int, scale: float):
        super().__init__()
        torch.manual_seed(seed)
        self.u, self.v, self.factor = nn.Linear(8, width, bias=False), nn.Linear(width, 1, bias=False), width**-scale
        nn.init.normal_(self.u.weight, std=8**-0.5)
        nn.init.normal_(self.v.weight)
        self.start = 0.0
        with torch.no_grad():
            self.start = self(X)  # the output starts at 0, so that labels are what is left to learn

    def forward(self, x):
        return self.factor * self.v(torch.tanh(self.u(x))) - self.start


def check(scale: float, power: float, **how):
    """With the rate 0.1 width^power."""
    return observe.coordinate_check(
        lambda width, seed: Net(width, seed, scale), (64, 256, 1024),
        lambda module, width: torch.optim.SGD(module.parameters(), 0.1 * width**power),
        lambda module: (module(X)[:, 0] - Y).square().mean(), X, **how)


def test_hidden_layers_of_the_ntk_parametrisation_stand_still_and_those_of_mean_field_move():
    lazy, rich = check(0.5, 0.0), check(1.0, 1.0)
    assert list(lazy.exponents) == ["u", "v"] and lazy.moved.dims == ("layer", "width", "seed")
    assert lazy.exponents["u"].value == pytest.approx(-0.5, abs=0.06)
    assert rich.exponents["u"].value == pytest.approx(0.0, abs=0.06)
    assert "u: exponent -0.5" in lazy.verdict and "stands still in wide networks" in lazy.verdict
    assert "u: exponent " in rich.verdict and "moves alike at every width" in rich.verdict


@pytest.mark.usefixtures("without_type_checks")
def test_bad_input_is_one_sentence():
    with pytest.raises(ValueError, match="two widths and two seeds"):
        check(0.5, 0.0, seeds=(0,))
