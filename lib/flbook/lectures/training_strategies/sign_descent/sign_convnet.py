"""A small convolutional network on digits, all pictures in every step, classes balanced or by Zipf's law.

Claim (Kunstner et al. 2024): frequent and rare classes alone, without language, set gradient descent back against sign
descent and Adam. Every rule has its best step on a grid of seven, by the training loss after the last step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from flbook import devices, rng
from flbook.data.ten_digits import ten_digits
from flbook.domains import Count, Natural
from flbook.models.convnet import ConvNet
from flbook.runs import Experiment, Grid, axis, single_precision
from flbook.training.fit import fit
from flbook.training.losses import cross_entropy
from flbook.training.network import Training
from flbook.training.optimizers import Adam, GradientDescent, Momentum, NormalisedDescent, SignDescent
from flbook.training.problem import Rule

RULES: dict[str, tuple[Callable[..., Rule], float]] = {  # how it is made, and the least of its seven steps
    "gradient descent": (GradientDescent, 0.05),
    "momentum": (lambda lr: Momentum(lr, 0.9), 0.01),
    "normalised": (NormalisedDescent, 0.03),
    "sign descent": (SignDescent, 3e-4),
    "sign descent with memory": (lambda lr: SignDescent(lr, 0.9), 5e-5),
    "Adam": (Adam, 1e-3),
}
FACTORS = (1.0, 2.5, 6.0, 15.0, 37.0, 90.0, 220.0)


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: Zipf's law alone, two seeds."""

    classes: tuple[Literal["balanced", "Zipf"], ...] = axis(["Zipf"], "classes")
    rule: tuple[Literal[tuple(RULES)], ...] = axis(RULES, "rule")
    seed: tuple[Natural, ...] = axis(range(2), "seed")
    n: Count = 200  # training pictures
    steps: Natural = 100

    def check(self) -> None:
        """Refuse more pictures of a class than there are."""
        if not 20 <= self.n <= 250:
            raise ValueError(f"n must lie from 20 to 250, so that every class has pictures and enough; got {self.n}")


experiment = Experiment(
    Setting, version=2, loops=("classes", "rule"), chunk={"classes": 1, "rule": 1}, stored="longer",
    gives={
        "train_loss": ("training loss", "nats"),
        "test_error": ("test error, mean over classes", "fraction"),
        "best": ("place of the best step on its grid", "1"),
    },
    presets={
        "tiny": ("A few steps of two rules", dict(rule=("gradient descent", "Adam"), seed=(0, 1), n=40, steps=4)),
        "longer": ("Both laws of the classes, more seeds", dict(
            classes=("balanced", "Zipf"), seed=tuple(range(10)))),
    },
)
experiment.kept(single_precision)


def pictures(n: int, classes: str, seed: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """Training pictures and their classes; which class is frequent is drawn for each seed."""
    split = ten_digits(1000, seed)
    share = np.arange(1, 11) ** (-1.0 if classes == "Zipf" else 0.0)
    counts = np.maximum(1, np.round(share / share.sum() * n)).astype(int)
    counts[0] += n - counts.sum()
    places = []
    for y, one in zip(split.y, seed, strict=True):
        order = torch.randperm(10, generator=rng.generator(one, "order of the classes"))
        places.append(torch.cat([torch.nonzero(y == c)[:k, 0] for c, k in zip(order, counts, strict=True)]))
    x, y = (torch.stack([part[i] for part, i in zip(whole, places, strict=True)]) for whole in (split.x, split.y))
    return x, y


@experiment.shared()
def fresh(s: Setting, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Test pictures and their classes."""
    split = ten_digits(1000, s.seed)
    return split.x_test.to(devices.device(device)), split.y_test.to(devices.device(device))


@experiment.shared("classes")
def drawn(s: Setting, device: str) -> Training:
    """The networks and pictures that every rule trains."""
    x, y = pictures(s.n, s.classes, s.seed)
    network = ConvNet(filters=(8, 16), seed=s.seed)
    return Training(network, x, y, cross_entropy).to(devices.device(device))


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Training loss of a rule at its best step, and the mean over the classes of the test error there."""
    training, (x, y) = drawn(s, device), fresh(s, device)
    one_hot = torch.nn.functional.one_hot(y, 10).to(torch.float32)
    (make, least), loss, error = RULES[s.rule], [], []
    for factor in FACTORS:
        params = fit(training, make(least * factor), s.steps).params
        with torch.no_grad():
            wrong = training.predict(params, x).argmax(-1) != y
        loss.append(training.train_loss(params).detach().nan_to_num(torch.inf))
        error.append(((wrong[..., None] * one_hot).sum(-2) / one_hot.sum(-2)).mean(-1))
    loss, error = torch.stack(loss), torch.stack(error)
    best = loss.argmin(0, keepdim=True)
    return {"train_loss": loss.gather(0, best)[0], "test_error": error.gather(0, best)[0], "best": best[0].double()}


run = experiment.run
