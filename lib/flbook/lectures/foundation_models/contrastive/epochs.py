"""The paper's own experiment, epoch by epoch, and what becomes of it when the loss is another.

Source: Huang et al. (2024), section 6; sigma_0, tau, the negatives and the sum over neurons are not stated there, and
are chosen here so that the first losses and the number of epochs are those of its Figure 1.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import torch
import xarray as xr

from flbook.data.signal_noise import check_sizes
from flbook.domains import Count, Natural, Positive
from flbook.dynamics.wishart import check_room
from flbook.lectures.foundation_models.contrastive import GIVES, accuracy
from flbook.lectures.foundation_models.contrastive.paired_training import (
    ONE_MODALITY,
    TWO_MODALITIES,
    ContrastiveTraining,
    drawn_pairs,
)
from flbook.lectures.foundation_models.contrastive.two_modalities import TwoModalities
from flbook.lectures.foundation_models.shared.info_nce import all_others
from flbook.models.activations import identity
from flbook.runs import Experiment, Grid, axis
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

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


experiment = Experiment(
    Setting, version=1, loops=("variation", "encoders"), chunk={"variation": 1}, gives=GIVES,
    presets={
        "tiny": ("A blink: what the tests run", dict(
            variation=VARIATIONS[:3], seed=(0, 1), n=10, d=200, m=8, sigma_0=0.01, steps=20, points=64)),
        "paper": ("The paper's sizes, as on the page, with twenty seeds", dict(seed=tuple(range(20)))),
    },
)


def followed(s: Setting, device: str, at: Iterable[int]) -> xr.Dataset:
    """Accuracy downstream, loss, signal and noise of one cell at some epochs; dimensions (step, seed)."""
    training = s.problem(s.variation, s.encoders).to(device, torch.float32)
    quantities = [
        Quantity("accuracy", lambda params: accuracy(training, params, s.nu, s.points), (), *GIVES["accuracy"]),
        Quantity("train_loss", training.train_loss, (), *GIVES["train_loss"]),
        Quantity("signal", lambda params: training.largest(params)[0], (), *GIVES["signal"]),
        Quantity("noise", lambda params: training.largest(params)[1], (), *GIVES["noise"]),
    ]
    return fit(training, GradientDescent(s.lr), s.steps, quantities, ("seed",), at).history


@experiment.cell
def cell(s: Setting, device: str) -> xr.Dataset:
    """The last epoch."""
    return followed(s, device, [s.steps]).isel(step=0, drop=True)


run = experiment.run


@experiment.also
def histories(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """The same over the epochs; dimensions (variation, encoders, step, seed)."""
    at = range(0, setting.steps + 1, max(1, setting.steps // 20))
    found = [followed(s, device, at) for s in experiment.cells(setting)]
    rows = [xr.concat(found[k:k + len(setting.encoders)], "encoders")
            for k in range(0, len(found), len(setting.encoders))]
    joined = xr.concat(rows, "variation").assign_coords(setting.coordinates("variation", "encoders", "seed"))
    return joined.assign_coords(step=joined.step.assign_attrs(long_name="epoch", units="1"))
