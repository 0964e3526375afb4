"""Parametrisations: the table of exponents, any module's groups, and that networks move as the table says."""

import pytest
import torch
from torch import nn

from flbook import observe
from flbook.training import parametrisation as p

X = torch.randn(24, 6, generator=torch.Generator().manual_seed(0))
Y = X[:, 0].sign()
BASE = 32


@pytest.mark.parametrize("which, descent, adam", [
    (p.STANDARD, (-0.5, 0.5, 1), (0, 1, 1.5)),
    (p.STANDARD_SLOW, (-1.5, -0.5, 0), (-1, 0, 0.5)),
    (p.NEURAL_TANGENT, (-0.5, -0.5, 0), (0, 0.5, 1)),
    (p.MAXIMAL_UPDATE, (0, 0, 0), (0, 0, 0)),
    (p.NO_MULTIPLIER, (0.5, 0.5, 1), (0, 0, 1)),
])  # fmt: skip
def test_the_table_of_exponents(which, descent, adam):
    assert which.moved() == descent and which.moved("Adam") == adam


class Net(nn.Module):
    """Two hidden layers; the output starts at 0, so that what is left to learn does not depend on the width."""

    def __init__(self, width: int, seed: int):
        super().__init__()
        torch.manual_seed(seed)
        self.first = nn.Linear(6, width, bias=False)
        self.second, self.output = nn.Linear(width, width, bias=False), nn.Linear(width, 1, bias=False)
        for layer in (self.first, self.second, self.output):
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
        self.before = torch.zeros(1)

    def centred(self) -> "Net":
        """The same, minus what it says on X now."""
        self.before = self(X).detach()
        return self

    def forward(self, x):
        return self.output(torch.tanh(self.second(torch.tanh(self.first(x))))) - self.before


def check(which: p.Parametrisation, rule: p.Rule = "gradient descent"):
    base = Net(BASE, 0)
    optimizer, lr = (torch.optim.Adam, 1e-3) if rule == "Adam" else (torch.optim.SGD, 2e-3)
    return observe.coordinate_check(
        lambda width, seed: p.start_as(which, Net(width, seed), base).centred(), (64, 256, 1024),
        lambda module, width: optimizer(p.rate_groups(which, module, base, lr, rule)),
        lambda module: (module(X)[:, 0] - Y).square().mean(), X, seeds=(0, 1, 2)).exponents


@pytest.mark.parametrize("which", [p.STANDARD, p.NEURAL_TANGENT, p.MAXIMAL_UPDATE], ids=["SP", "NTP", "muP"])
@pytest.mark.parametrize("rule", ["gradient descent", "Adam"])
def test_networks_move_as_the_table_says(which, rule):
    found, theory = check(which, rule), which.moved(rule)
    for layer, expected in zip(("first", "second", "output"), theory, strict=True):
        # the output of the standard parametrisation under Adam comes near its exponent at much larger widths only
        assert found[layer].value == pytest.approx(expected, abs=0.3 if rule == "Adam" else 0.15), layer


def test_a_convolution_a_bias_and_what_does_not_grow():
    def make(width):
        return nn.Sequential(nn.Conv2d(3, width, 3), nn.Conv2d(width, width, 1, bias=False), nn.Flatten(),
                             nn.Linear(width, 2))

    kinds = [p.growth(a, b).kind for a, b in zip(make(8).parameters(), make(4).parameters(), strict=True)]
    assert kinds == ["input", "input", "hidden", "output", None]
    groups = p.rate_groups(p.MAXIMAL_UPDATE, make(8), make(4), 1.0)
    assert [group["lr"] for group in groups] == [2, 2, 1, 0.5, 1]


@pytest.mark.parametrize("act, sentence", [
    (lambda: p.Parametrisation(size=(0.0, float("nan"), 0.0)), "tuple of 3 values, each a number"),
    (lambda: p.Parametrisation(size=(0.0, -1.0, -1.0)).moved(), "signals change with the width"),
    (lambda: p.rate_groups(p.STANDARD, nn.Linear(2, 2), nn.Linear(2, 2, bias=False), 0.1), "only one has bias"),
    (lambda: p.growth(torch.ones(2, 2, 3), torch.ones(2, 2, 1)), "only the first two axes"),
])  # fmt: skip
@pytest.mark.usefixtures("without_type_checks")
def test_bad_input_is_one_sentence(act, sentence):
    with pytest.raises(ValueError, match=sentence):
        act()
