r"""Two experts and their router, trained together on two clusters that share a direction with opposite signs.

Claim (Kawata et al. 2025): on clusters of single-index models a plain network fails to detect the clusters, since its
information exponent rises when the whole task is considered; a mixture of experts divides the task, as each expert
first recovers the function of one cluster weakly. Here: experts of cubic neurons, beside one network of as many (the
router held at zero), a router held at random, and data without local parts.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
import xarray as xr

from flbook import devices
from flbook.domains import Count, Natural, NonNegative, Positive, Range
from flbook.lectures.training_strategies.expert_clusters.experts import Experts, Together, start
from flbook.lectures.training_strategies.expert_clusters.index_clusters import (
    FIRST,
    SECOND,
    SHARED,
    IndexClusters,
    IndexSample,
)
from flbook.runs import Grid, axis, labelled, sweeps

VERSION = 1
CASES = ("router trained", "no local parts", "router at random", "one network")


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    case: tuple[Literal[CASES], ...] = axis(["router trained", "one network"], "what is trained")
    d: tuple[Annotated[int, Range(5)], ...] = axis([24], "dimension d")
    seed: tuple[Natural, ...] = axis(range(2), "seed")
    step: tuple[Natural, ...] = axis(range(0, 801, 100), "step")
    neurons: Count = 8  # of either expert
    batch: Count = 400
    rho: NonNegative = 2.0  # centres
    lr_router: Positive = 0.05
    held: Positive = 2.5  # length of a router that is held at random: about that of a trained one
    points: Count = 8192  # fresh samples to measure on

    @classmethod
    def tiny(cls) -> "Setting":
        """A blink."""
        return cls(case=CASES, d=(8, 12), seed=(0, 1), step=(0, 5, 10), neurons=2, batch=50, points=100)

    @classmethod
    def paper(cls) -> "Setting":
        """With local parts and without, in 96 dimensions, on ten seeds."""
        return cls(case=CASES[:2], d=(96,), seed=tuple(range(10)), step=tuple(range(0, 3001, 150)), batch=800)

    def data(self, case: str, d: int) -> IndexClusters:
        """The data of a case."""
        return IndexClusters(d, self.rho, local=0.0 if case == "no local parts" else 1.0)

    def begin(self, case: str, d: int, device: str | torch.device = "cpu") -> tuple[Experts, Together]:
        """The networks of all seeds, and the rule that trains them."""
        net = start(d, self.neurons, self.seed, self.held if case == "router at random" else 0.0, device)
        free = case in ("router trained", "no local parts")
        return net, Together(lr_router=self.lr_router if free else 0.0)


def learned(f: torch.Tensor, fresh: IndexSample) -> torch.Tensor:
    """The share of the shared part that an output holds: its regression coefficient on fresh samples."""
    return (f * fresh.shared).mean(-1) / (fresh.shared**2).mean(-1)


def looked_at(net: Experts, fresh: IndexSample) -> np.ndarray:
    """What is followed, shape (4, seed)."""
    m = net.w.abs().flatten(-3, -2).amax(-2)  # the largest overlap of any neuron with each direction
    local = torch.minimum(m[..., FIRST], m[..., SECOND])
    return torch.stack([learned(net.predict(fresh.x), fresh), net.cosine(), local, m[..., SHARED]]).cpu().numpy()


def train(setting: Setting, case: str, d: int, device: str | torch.device = "cpu") -> np.ndarray:
    """One cell for all seeds, shape (4, seed, step)."""
    data, (net, rule) = setting.data(case, d), setting.begin(case, d, device)
    fresh, path = data.draw(setting.points, setting.seed, "fresh samples", device), {}
    for step in range(max(setting.step) + 1):
        if step in setting.step:
            path[step] = looked_at(net, fresh)
        net = rule.step(net, data.draw(setting.batch, setting.seed, f"batch {step}", device))
    return np.stack([path[step] for step in setting.step], -1)


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Train every cell; dimensions (case, d, seed, step)."""
    place = devices.device(device)
    cells = np.stack([np.stack([train(setting, case, d, place) for d in setting.d]) for case in setting.case])
    learned_share, cosine, local, shared = cells.transpose(2, 0, 1, 3, 4)
    dims = ("case", "d", "seed", "step")
    return labelled({"learned": (dims, learned_share, "shared part learned", "fraction"),
                     "router": (dims, cosine, "cosine of the router with v"),
                     "local": (dims, local, "largest overlap with a local direction"),
                     "shared": (dims, shared, "largest overlap with the shared direction")},
                    setting.coordinates("case", "d", "seed", "step"))  # fmt: skip


run = sweeps(measure, chunk={"case": 1, "d": 1, "seed": 5})
