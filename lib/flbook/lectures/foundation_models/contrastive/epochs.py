"""The paper's own experiment, epoch by epoch, and what becomes of it when the loss is another.

Source: Huang et al. (2024), section 6; sigma_0, tau, the negatives and the sum over neurons are not stated there, and
are chosen here so that the first losses and the number of epochs are those of its Figure 1.
"""

from dataclasses import dataclass, replace
from typing import Literal

import torch
import xarray as xr

from flbook import devices
from flbook.data.signal_noise import check_sizes
from flbook.domains import Count, Natural, Positive
from flbook.dynamics.wishart import check_room
from flbook.lectures.foundation_models.contrastive import accuracy
from flbook.lectures.foundation_models.contrastive.paired_training import (
    ONE_MODALITY,
    TWO_MODALITIES,
    ContrastiveTraining,
    drawn_pairs,
)
from flbook.lectures.foundation_models.contrastive.two_modalities import TwoModalities
from flbook.lectures.foundation_models.shared.info_nce import all_others
from flbook.models.activations import identity
from flbook.runs import Grid, axis, cached, labelled, sweeps
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

VERSION = 1

VARIATIONS = ("the paper's", "all other samples", "gradient everywhere", "normalised", "mean over neurons", "τ = 0.2",
              "larger start", "no ReLU")


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    variation: tuple[Literal[VARIATIONS], ...] = axis(VARIATIONS, "what is changed")
    encoders: tuple[Literal[1, 2], ...] = axis([1, 2], "modalities")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    n: Count = 100
    d: Count = 2000
    m: Count = 50  # neurons of an encoder
    mu: Positive = 5.0  # signal strength of the first modality
    second: Positive = 15.0  # of the second
    sigma_0: Positive = 0.001  # initial weights
    lr: Positive = 0.01  # step size
    steps: Count = 200
    nu: Positive = 2.0  # signal strength downstream
    orthogonal: bool = False  # noise without a part along the signals?
    points: Count = 256  # fresh noise patches to measure the accuracy on, each under both labels

    @classmethod
    def tiny(cls) -> "Setting":
        """A blink: what the tests run."""
        return cls(variation=VARIATIONS[:3], seed=(0, 1), n=10, d=200, m=8, sigma_0=0.01, steps=20, points=64)

    @classmethod
    def paper(cls) -> "Setting":
        """More seeds."""
        return cls(seed=tuple(range(20)))

    def check(self) -> None:
        """Refuse a dimension in which vectors are too short."""
        check_sizes(self.n, self.d)
        check_room(2 * self.n, self.m, self.d)

    @property
    def data(self) -> TwoModalities:
        """The law of the pairs."""
        return TwoModalities(self.n, self.d, self.mu, self.second, nu_norm=self.nu, orthogonal=self.orthogonal)

    def problem(self, variation: str, encoders: int) -> ContrastiveTraining:
        """Pre-training of all seeds, with one thing changed."""
        loss = (ONE_MODALITY, TWO_MODALITIES)[encoders - 1]
        if variation == "gradient everywhere":
            loss = replace(loss, stop_gradient=False)
        if variation == "normalised":
            loss = replace(loss, normalised=True, stop_gradient=False)
        if variation == "τ = 0.2":
            loss = replace(loss, temperature=0.2)
        sigma_0 = self.sigma_0 * (10 if variation == "larger start" else 1)
        problem = drawn_pairs(self.data, self.m, sigma_0, loss, encoders, self.seed)
        if variation == "all other samples":
            return replace(problem, negatives=all_others(self.n))
        if variation == "mean over neurons":
            return replace(problem, scale=1 / self.m)
        return replace(problem, activation=identity) if variation == "no ReLU" else problem


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Accuracy downstream, loss, signal and noise at the end; dimensions (variation, encoders, seed)."""
    return _followed(setting, device, [setting.steps]).isel(step=0, drop=True)


run = sweeps(measure, chunk={"variation": 1})


@cached
def histories(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """The same over the epochs; dimensions (variation, encoders, step, seed)."""
    return _followed(setting, device, range(0, setting.steps + 1, max(1, setting.steps // 20)))


def _followed(setting: Setting, device: str, at) -> xr.Dataset:
    found = []
    for variation in setting.variation:
        for encoders in setting.encoders:
            problem = setting.problem(variation, encoders).to(devices.device(device), torch.float32)
            quantities = [
                Quantity("accuracy", lambda p, q=problem: accuracy(q, p, setting.nu, setting.points)),
                Quantity("train_loss", problem.train_loss),
                Quantity("signal", lambda p, q=problem: q.largest(p)[0]),
                Quantity("noise", lambda p, q=problem: q.largest(p)[1]),
            ]
            found.append(fit(problem, GradientDescent(setting.lr), setting.steps, quantities, ("seed",), at).history)
    steps = ("step", found[0].step.values, "epoch")
    dims = ("variation", "encoders", "step", "seed")
    words = {"accuracy": ("accuracy downstream", "fraction"), "train_loss": ("training loss", "nats"),
             "signal": ("largest response to the unit signal",), "noise": ("largest response to a noise patch",)}
    values = {name: (dims, [torch.from_numpy(one[name].values) for one in found], *said)
              for name, said in words.items()}
    return labelled(values, setting.coordinates("variation", "encoders", "seed") | {"step": steps})
