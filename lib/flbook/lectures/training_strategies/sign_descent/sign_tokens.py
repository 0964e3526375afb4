r"""The two-token transformer under sign descent, gradient descent and Adam, with attention trained and frozen.

Claim (Li et al. 2025): sign descent brings the training loss down fast, the test loss stays of order one, and Adam
behaves alike.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import xarray as xr
from torch import Tensor

from flbook import devices
from flbook.domains import Count, Natural, Positive
from flbook.lectures.training_strategies.sign_descent.two_tokens import TwoTokens, TwoTokenTransformer
from flbook.runs import Experiment, Grid, axis, single_precision
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import Adam, GradientDescent, SignDescent
from flbook.training.problem import Params, Rule

AT = (0, 10, 25, 50, 75, 100, 150, 200, 250, 300)  # steps that are looked at
RULES: dict[str, Rule] = {
    "gradient descent": GradientDescent(0.5), "sign descent": SignDescent(1e-4), "Adam": Adam(1e-4)}  # fmt: skip


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: the small training set, attention frozen."""

    attention: tuple[Literal["trained", "frozen"], ...] = axis(["frozen"], "attention")
    rule: tuple[Literal[tuple(RULES)], ...] = axis(RULES, "rule")
    n: tuple[Count, ...] = axis([20], "samples n")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    d: Count = 2000  # dimension of a token
    s: Count = 40  # coordinates of a noise token that are not 0
    sigma_xi: Positive = 2.0  # their standard deviation
    h: Count = 32  # width of queries and keys
    sigma_0: Positive = 0.0022  # initial weights
    steps: Natural = 300
    points: Count = 1000  # fresh samples

    def data(self, n: int) -> TwoTokens:
        """The data model."""
        return TwoTokens(n, self.d, self.s, self.sigma_xi)

    def check(self) -> None:
        """Refuse a data model that there is not."""
        for n in self.n:
            self.data(n)


experiment = Experiment(
    Setting, version=1, loops=("attention", "rule", "n"), chunk={"n": 1, "seed": 5, "rule": 1}, stored="longer",
    presets={
        "tiny": ("A blink: what the tests run", dict(
            attention=("trained", "frozen"), n=(4, 6), seed=(0, 1), d=60, s=5, h=3, steps=25, points=20)),
        "longer": ("Attention trained and frozen, and ten times the samples", dict(
            attention=("trained", "frozen"), n=(20, 200))),
    },
)
experiment.kept(single_precision)


def problem(setting: Setting, attention: str, n: int, device: str = "cpu") -> Training:
    """The training problems of all seeds."""
    x, y = setting.data(n).draw(setting.seed)
    network = TwoTokenTransformer(setting.d, setting.h, setting.sigma_0, setting.seed, frozen=attention == "frozen")
    return Training(network, x, y).to(devices.device(device))


def quantities(training: Training, fresh: tuple[Tensor, Tensor]) -> list[Quantity]:
    """What the lecture follows: losses, the error, who attends to the signal, the value on the signal."""
    x, y = (part.to(training.x) for part in fresh)

    @torch.no_grad()
    def error(params: Params) -> Tensor:
        return (y * training.predict(params, x) <= 0).to(y).mean(-1)

    @torch.no_grad()
    def attention(params: Params, token: int) -> Tensor:
        if training.model.frozen:
            return torch.full_like(params["v"][..., 0], 0.5)
        query, key = (torch.einsum("...nld,...dh->...nlh", training.x, params[name]) for name in "qk")
        return (query[..., token, None, :] * key).sum(-1).softmax(-1)[..., 0].mean(-1)

    return [Quantity("train_loss", training.train_loss, (), "training loss", "nats"),
            Quantity("test_error", error, (), "test error", "fraction"),
            Quantity("from_signal", lambda params: attention(params, 0), (), "attention of the signal to itself"),
            Quantity("from_noise", lambda params: attention(params, 1), (), "attention of the noise to the signal"),
            Quantity("value", lambda params: 2 * params["v"][..., 0], (), "value of the signal")]


@experiment.cell
def cell(s: Setting, device: str) -> xr.Dataset:
    """Train by one rule and look at it on the way; dimensions (step, seed)."""
    training = problem(s, s.attention, s.n, device)
    watched = quantities(training, s.data(s.n).draw_test(s.points, s.seed))
    return fit(training, RULES[s.rule], s.steps, watched, ("seed",), at=AT).history


run = experiment.run
