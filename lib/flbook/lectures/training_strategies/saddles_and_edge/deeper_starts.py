r"""Three and four linear layers from a random start: they leave a saddle later, and have come nearer to it.

A balanced mode of L layers with the factor a in each grows by :math:`a' = a^{L-1}(s - a^L)`: from the start
:math:`a_0` it is learned at the time :math:`a_0^{-(L-2)}/((L-2)s)`, and comes as near to the saddle as :math:`a_0^L`.
"""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from flbook.domains import Count, Natural, Positive, Range
from flbook.lectures.training_strategies.saddles_and_edge.linear_network import (
    LinearNetworkTraining,
    course,
    first_time,
    random_layers,
)
from flbook.runs import Experiment, Grid, axis
from flbook.shapes import Quantity

STRENGTHS = (2.0, 1.0)
PATIENCE = 2.0  # steps are taken for so many times the time that theory gives the second mode


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; the smallest start of a depth is the first over its depth's power."""

    depth: tuple[Annotated[int, Range(3, 6)], ...] = axis([3, 4], "layers L")
    shrink: tuple[Positive, ...] = axis([1.0, 0.5, 0.25, 0.125], "start over the largest")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    largest: Positive = 0.01  # standard deviation of the start at L = 3; it is squared root by root for more layers
    m: Count = 16
    lr: Positive = 0.15


experiment = Experiment(
    Setting, version=1, loops=("depth", "shrink"), chunk={"depth": 1, "shrink": 1},
    beside={"mode": ((1, 2), "mode", "count")},
    gives={
        "half": ("time at which half of the mode is learned", "1", ("depth", "shrink", "seed", "mode")),
        "distance": ("distance of the product from the saddle half way between the modes", "1"),
        "sigma": ("standard deviation of the start σ", "1", ("depth", "shrink")),
    },
    presets={"tiny": ("A blink", dict(depth=(3,), shrink=(1.0, 0.7), seed=(0, 1), m=4, largest=0.15))},
    missing=("half",),
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Times, (seed, mode), and the distance half way, (seed,), of one depth and start."""
    sigma = s.largest ** (1 / (s.depth - 2)) * s.shrink ** (1 / (s.depth - 2))
    strength = torch.tensor(STRENGTHS, dtype=torch.float64)
    training = LinearNetworkTraining(torch.diag(strength), random_layers(2, s.m, sigma, s.seed, s.depth)).to(device)
    saddle = torch.diag(strength * (strength > STRENGTHS[1])).to(device)
    far = Quantity("far", lambda w: (training.product(w) - saddle).flatten(-2).norm(dim=-1))
    factor = sigma * s.m**0.5  # about what a layer multiplies by
    time = PATIENCE * factor ** (2 - s.depth) / (s.depth - 2)
    modes, distances = course(training, s.lr, math.ceil(time / s.lr), far)
    half = first_time(modes / np.array(STRENGTHS), 0.5, s.lr)
    middle = np.nan_to_num(half.mean(-1) / s.lr).round().astype(int)
    return {
        "half": torch.from_numpy(half),
        "distance": torch.from_numpy(distances[middle, np.arange(len(middle))]),
        "sigma": torch.tensor(sigma, dtype=torch.float64),
    }


run = experiment.run
