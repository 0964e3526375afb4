r"""Digits, to be copied by a linear network of two layers: when it learns each principal direction, and how abruptly.

The inputs' coordinates are the leading principal directions of training pictures, their variances are divided by the
largest, and the target is the identity. The mode of variance v grows like a mode of strength v with the ceiling 1,
:math:`u' = 2vu(1-u)`, from a small start; from a lazy one it is :math:`1 - e^{-\Lambda vt}`, with one rate for all but
the variance.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from flbook.data.ten_digits import ten_digits
from flbook.domains import Count, Natural
from flbook.lectures.training_strategies.saddles_and_edge.linear_network import (
    LinearNetworkTraining,
    course,
    first_time,
    free_share,
    initial_strength,
    random_layers,
)
from flbook.runs import Experiment, Grid, axis

STARTS = {  # standard deviation of the start, width, step size, time
    "small": (1e-3, 32, 0.05, 45.0),
    "lazy": (1.0, 256, 0.0002, 0.08),
}


CLOCK = tuple(k / 20 for k in range(61))  # times, over each mode's half time, at which its course is kept


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on."""

    start: tuple[Literal[tuple(STARTS)], ...] = axis(STARTS, "start")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    n: Count = 1000  # pictures that the directions are of
    d: Count = 20  # directions that are kept
    watched: Count = 8


experiment = Experiment(
    Setting, version=1, loops=("start",), chunk={"start": 1},
    beside={
        "mode": (lambda s: range(1, s.watched + 1), "principal direction", "count"),
        "clock": (lambda s: CLOCK, "time over the mode's half time", "1"),
    },
    gives={
        "half": ("time at which half of the mode is learned", "1", ("start", "seed", "mode")),
        "width": ("time from a tenth to nine tenths of it", "1", ("start", "seed", "mode")),
        "u_0": ("the part at the start that grows, squared", "1", ("start", "seed", "mode")),
        "share": ("share of the mode that is learned", "1", ("start", "seed", "mode", "clock")),
        "variance": ("variance over the largest", "1", ("start", "seed", "mode")),
    },
    presets={"tiny": ("A blink", dict(seed=(0, 1), n=50, d=3, watched=2))},
    missing=("half", "width"),
)  # fmt: skip


def variances(n: int, d: int, seed: tuple[int, ...]) -> Tensor:
    """Of the leading principal directions of n training pictures, over the largest; (seed, d)."""
    x = ten_digits(n, seed).x.flatten(2)
    values = torch.linalg.svdvals(x - x.mean(-2, keepdim=True)).square()[..., :d]
    return values / values[..., :1]


def copying(start: str, d: int, n: int, seed: tuple[int, ...]) -> tuple[LinearNetworkTraining, Tensor]:
    """The training, and the modes at its start, which are subtracted in the lazy one."""
    sigma, m, *_ = STARTS[start]
    layers = random_layers(d, m, sigma, seed)
    first, second = layers
    begin = second @ first if start == "lazy" else torch.zeros(d, d, dtype=torch.float64)
    found = LinearNetworkTraining(torch.eye(d, dtype=torch.float64) + begin, layers, variances(n, d, seed)[:, None])
    return found, begin.diagonal(dim1=-2, dim2=-1)


def learned(s: Setting, start: str, device: str = "cpu") -> tuple[np.ndarray, float]:
    """The share of every mode that is learned after each step, (step, seed, d), and the step size."""
    *_, lr, time = STARTS[start]
    training, begin = copying(start, s.d, s.n, s.seed)
    return course(training.to(device), lr, math.ceil(time / lr)) - begin.numpy(), lr


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Times of the first modes, (seed, mode)."""
    share, lr = learned(s, s.start, device)
    share = share[..., : s.watched]
    times = {level: first_time(share, level, lr) for level in (0.1, 0.5, 0.9)}
    sigma, m, *_ = STARTS[s.start]
    return {
        "half": torch.from_numpy(times[0.5]),
        "width": torch.from_numpy(times[0.9] - times[0.1]),
        "share": torch.from_numpy(_at(share, times[0.5] / lr)),
        "u_0": initial_strength(random_layers(s.d, m, sigma, s.seed))[:, : s.watched],
        "variance": variances(s.n, s.d, s.seed)[:, : s.watched],
    }


def _at(share: np.ndarray, half: np.ndarray) -> np.ndarray:
    """The courses at the times `CLOCK`, in units of each one's own half time, (seed, mode, clock)."""
    step = np.arange(len(share))
    found = [np.interp(np.multiply(CLOCK, half[place]), step, share[:, *place]) for place in np.ndindex(half.shape)]
    return np.reshape(found, (*half.shape, len(CLOCK)))


def expected(found: xr.Dataset, m: int = STARTS["small"][1]) -> xr.DataArray:
    """The width of a mode's rise over its half time from a small start, by theory, (seed, mode)."""
    free = xr.DataArray(free_share(m, found.sizes["mode"]), dims="mode")
    return np.log(81) / np.log(1 / (found.u_0 * free) - 1)


def order(found: xr.Dataset) -> np.ndarray:
    """Of each seed of one start, the power of a mode's variance in its half time."""
    pairs = zip(found.variance.values, found.half.values, strict=True)
    return np.array([np.polyfit(np.log(v), np.log(half), 1)[0] for v, half in pairs])


run = experiment.run
