"""A small convolutional network on digits, all pictures in every step, classes balanced or by Zipf's law.

Claim (Kunstner et al. 2024): frequent and rare classes alone, without language, set gradient descent back against sign
descent and Adam. Every rule has its best step on a grid of four, by the training loss after the last step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import xarray as xr

from flbook import devices, rng
from flbook.data.ten_digits import ten_digits
from flbook.domains import Count, Natural
from flbook.models.convnet import ConvNet
from flbook.runs import Grid, axis, labelled, single_precision, sweeps
from flbook.training.fit import fit
from flbook.training.losses import cross_entropy
from flbook.training.network import Training
from flbook.training.optimizers import Adam, GradientDescent, Momentum, NormalisedDescent, SignDescent
from flbook.training.problem import Rule

VERSION = 1

RULES: dict[str, tuple[Callable[..., Rule], float]] = {  # how it is made, and the least of its four steps
    "gradient descent": (GradientDescent, 0.05),
    "momentum": (lambda lr: Momentum(lr, 0.9), 0.01),
    "normalised": (NormalisedDescent, 0.03),
    "sign descent": (SignDescent, 3e-4),
    "sign descent with memory": (lambda lr: SignDescent(lr, 0.9), 5e-5),
    "Adam": (Adam, 1e-3),
}
FACTORS = (1.0, 2.5, 6.0, 15.0)


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: Zipf's law alone, two seeds."""

    classes: tuple[Literal["balanced", "Zipf"], ...] = axis(["Zipf"], "classes")
    rule: tuple[Literal[tuple(RULES)], ...] = axis(RULES, "rule")
    seed: tuple[Natural, ...] = axis(range(2), "seed")
    n: Count = 200  # training pictures
    steps: Natural = 100

    @classmethod
    def tiny(cls) -> "Setting":
        """A few steps of two rules."""
        return cls(rule=("gradient descent", "Adam"), seed=(0, 1), n=40, steps=4)

    @classmethod
    def paper(cls) -> "Setting":
        """Both laws of the classes, more seeds."""
        return cls(classes=("balanced", "Zipf"), seed=tuple(range(10)))

    def check(self) -> None:
        """Refuse more pictures of a class than there are."""
        if not 20 <= self.n <= 250:
            raise ValueError(f"n must lie from 20 to 250, so that every class has pictures and enough; got {self.n}")


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


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Training loss at the best step, and the mean over the classes of the test error; dimensions of the setting."""
    split, there = ten_digits(1000, setting.seed), devices.device(device)
    x_test, one_hot = split.x_test.to(there), torch.nn.functional.one_hot(split.y_test, 10).to(there, torch.float32)
    cells = []
    for classes in setting.classes:
        x, y = pictures(setting.n, classes, setting.seed)
        training = Training(ConvNet(filters=(8, 16), seed=setting.seed), x, y, cross_entropy).to(there)
        for name in setting.rule:
            make, least = RULES[name]
            loss, error = [], []
            for factor in FACTORS:
                params = fit(training, make(least * factor), setting.steps).params
                with torch.no_grad():
                    wrong = training.predict(params, x_test).argmax(-1) != split.y_test.to(there)
                loss.append(training.train_loss(params).detach().nan_to_num(torch.inf))
                error.append(((wrong[..., None] * one_hot).sum(-2) / one_hot.sum(-2)).mean(-1))
            loss, error = torch.stack(loss), torch.stack(error)
            best = loss.argmin(0, keepdim=True)
            cells.append((loss.gather(0, best)[0], error.gather(0, best)[0], best[0]))
    shape = setting.shape
    loss, error, best = (torch.stack(part).reshape(shape).cpu() for part in zip(*cells, strict=True))
    dims = ("classes", "rule", "seed")
    return labelled({"train_loss": (dims, loss, "training loss", "nats"),
                     "test_error": (dims, error, "test error, mean over classes", "fraction"),
                     "best": (dims, best.double(), "place of the best step on its grid")}, setting.coordinates())


run = sweeps(measure, chunk={"classes": 1, "rule": 1})
stored = single_precision
