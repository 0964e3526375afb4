"""How much of the shared direction leaks into a neuron that sees everything, and into one that sees half of the inputs.

Two measurements on data without local parts, each the mean over a sample: the velocity of the overlap of neurons with
the activation h_3 or h_3 + h_4, which hold a given overlap with the shared direction and are random else; and the pull
on neurons across v that see one side of v.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from flbook import hermite, rng
from flbook.domains import Count, Natural, NonNegative, Range
from flbook.lectures.training_strategies.expert_clusters.index_clusters import CENTRE, SHARED, IndexClusters
from flbook.runs import Grid, axis, cached, labelled, sweeps

VERSION = 1
ACTIVATIONS = {"cubic": hermite.he(3), "quartic": hermite.Series((0.0, 0.0, 0.0, 1.0, 1.0))}


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    activation: tuple[Literal[tuple(ACTIVATIONS)], ...] = axis(ACTIVATIONS, "activation")
    d: tuple[Annotated[int, Range(6)], ...] = axis([12, 36, 108, 324], "dimension d")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    rho: NonNegative = 2.0
    m: Annotated[float, Range(0, 1, "()")] = 0.4  # overlap with the shared direction
    n: Count = 12000  # samples
    neurons: Count = 100

    @classmethod
    def tiny(cls) -> "Setting":
        """A blink."""
        return cls(d=(8, 16), seed=(0, 1), n=200, neurons=10)


def directions(setting: Setting, d: int, seed: int) -> Float[Tensor, "neurons d"]:
    """Neurons of length one at the overlap m, in a random direction else."""
    w = rng.normal((setting.neurons, d), seed, "directions")
    w[:, SHARED] = 0
    w = w / w.norm(dim=-1, keepdim=True) * (1 - setting.m**2) ** 0.5
    w[:, SHARED] = setting.m
    return w


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """The leak: velocity of m, counted on the neuron's own side of v; dimensions (activation, d, seed)."""
    slopes = [ACTIVATIONS[name].derivative() for name in setting.activation]
    leak = np.empty((len(slopes), len(setting.d), len(setting.seed)))
    lean = np.empty_like(leak[0])
    for i, d in enumerate(setting.d):
        for j, seed in enumerate(setting.seed):
            sample = IndexClusters(d, setting.rho, local=0.0).draw(setting.n, seed, "samples", device)
            w = directions(setting, d, seed).to(sample.x)
            u = sample.x @ w.T
            across = sample.y[:, None] * (sample.x[:, SHARED, None] - setting.m * u)
            side = w[:, CENTRE].sign()
            leak[:, i, j] = [float(((slope(u) * across).mean(0) * side).mean()) for slope in slopes]
            lean[i, j] = w[:, CENTRE].abs().mean()
    dims = ("activation", "d", "seed")
    return labelled(
        {"leak": (dims, leak, "velocity of the overlap m"), "lean": (dims[1:], lean, "mean size of a")},
        setting.coordinates(),
    )


run = sweeps(measure)


@cached
def gated(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Pull of the shared part on one side of v over that on one cluster, at m = 1; dimensions (distance, seed)."""
    distances = (0.5, 1.0, 2.0)
    ratio = np.empty((len(distances), len(setting.seed)))
    for i, rho in enumerate(distances):
        for j, seed in enumerate(setting.seed):
            sample = IndexClusters(4, rho, local=0.0).draw(16 * setting.n, seed, "gated samples", device)
            shown = sample.x[:, CENTRE] > 0
            h = hermite.polynomial(3, sample.x[:, SHARED])
            ratio[i, j] = (sample.y * h)[shown].mean() / (h * h)[shown].mean()
    about = {"long_name": "distance ρ of a centre", "units": "1"}
    return labelled({"ratio": (("distance", "seed"), ratio, "pull, over that of one cluster")},
                    {"distance": ("distance", list(distances), about)} | setting.coordinates("seed"))  # fmt: skip
