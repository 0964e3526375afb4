r"""A kernel machine that learns its metric, on the table of addition: what moves while no test entry is right?

Claim (Mallinar, Beaglehole, Zhu, Radhakrishnan, Pandit and Belkin 2025): the metric of a recursive feature machine
becomes block-circulant, and then it generalises at once, without a network and without gradient descent.

Round t fits in the metric :math:`M_t`, from :math:`M_0 = I` on; what is measured of M at round t is of that metric.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import xarray as xr
from torch import Tensor

from flbook import devices, fits
from flbook.domains import Count, Natural, Probability
from flbook.lectures.representation.grokking.modular_table import SPLITS, ModularTable, differences
from flbook.lectures.representation.grokking.recursive_machine import batches, explained, profile, progress, recursion
from flbook.runs import Experiment, Grid, axis


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    split: tuple[Literal[SPLITS], ...] = axis(SPLITS, "split")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    p: Count = 31
    share: Probability = 0.61
    rounds: Count = 16


experiment = Experiment(
    Setting, version=2, loops=("split",), chunk={"split": 1}, stored="larger",
    beside={"round": (lambda s: range(s.rounds + 1), "round t", "count"),
            "difference": (lambda s: range(s.p), "difference v - u", "1")},
    gives={name: (words, "1", ("split", "seed", "round")) for name, words in {
        "accuracy": "test accuracy", "loss": "test loss", "rank": "other classes above the right one, share",
        "least": "test accuracy of the class with the least output",
        "progress": "progress R", "correlation": "correlation of profile and histogram",
        "ratio": "profile over histogram, in units of its theory",
        "circulant": "variance of C that is a function of a - b", "hankel": "variance of C that is a function of a + b",
    }.items()} | {"profile": ("profile of C", "1", ("split", "seed", "round", "difference"))},
    presets={
        "tiny": ("A blink: what the tests run", dict(p=7, seed=(0, 1), rounds=3)),
        "larger": ("p = 61, half of the table; minutes", dict(
            p=61, share=0.5, split=("random", "equal a-b"), seed=tuple(range(10)), rounds=21)),
    },
)  # fmt: skip


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """What is measured at each round, (seed, round), and the profiles, (seed, round, difference)."""
    table = ModularTable(s.p, s.share, s.split)
    parts = [_watched(table, some, s.rounds, devices.device(device)) for some in batches(s.seed, table.n)]
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def _watched(table: ModularTable, seeds: tuple[int, ...], rounds: int, device: torch.device) -> dict[str, Tensor]:
    """The same for some of the seeds."""
    split = table.draw(seeds)
    histogram, found = differences(split.train, table.p).to(device), []
    for now in recursion(table.p, split, rounds, device):
        c = profile(now.metric)
        correlation, ratio = _likeness(c, histogram)
        circulant, hankel = (part.nan_to_num() for part in explained(now.metric))
        found.append({"accuracy": now.accuracy, "rank": now.rank, "least": now.least, "loss": now.loss,
                      "progress": progress(now.metric), "profile": c, "correlation": correlation, "ratio": ratio,
                      "circulant": circulant, "hankel": hankel})
    return {name: torch.stack([one[name] for one in found], 1) for name in found[0]}


def _likeness(profile: Tensor, histogram: Tensor) -> tuple[Tensor, Tensor]:
    """Correlation of profile and histogram, and the slope of the one over the other's N/(2 p^2).

    Zero at M = I, whose profile is constant, and where the histogram is.
    """
    p = profile.shape[-1]
    c, N = (part - part.mean(-1, keepdim=True) for part in (profile, histogram / (2 * p * p)))
    product, square, size = (c * N).sum(-1), c.square().sum(-1), N.square().sum(-1)
    none = (square == 0) | (size < 1e-20)
    return (product / (square * size).sqrt()).masked_fill(none, 0), (product / size).masked_fill(none, 0)


def half(found: xr.Dataset) -> xr.Dataset:
    """The round at which the accuracy crosses one half, and R there, by split and seed."""
    when = fits.crossing(found.accuracy, "round", 0.5, over="", log=False).rename("when")
    size = found.progress.interp(round=when).drop_vars("round").rename("size")
    return xr.Dataset({"when": when, "size": size})


def law(histogram: Tensor, rounds: int) -> Tensor:
    r"""R by the linear law from the training set's histogram, (*E, p) to (*E, rounds + 1).

    .. math:: R_t = \frac{(1+f)^t - 1}f R_1, \qquad R_1 = \frac1{2p^2}\,\mathrm{mean}_{k\ne0}|\hat N_k|
    """
    p = histogram.shape[-1]
    f = histogram.sum(-1, keepdim=True) / p**2
    first = torch.fft.fft(histogram).abs()[..., 1:].mean(-1, keepdim=True) / (2 * p**2)
    return first * ((1 + f) ** torch.arange(rounds + 1) - 1) / f


run = experiment.run
