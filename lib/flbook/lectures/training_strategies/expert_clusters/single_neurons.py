"""One cubic neuron on two clusters: it sees one cluster, one half of the inputs, or everything.

Each takes steps that raise the correlation of its label and its output, on the same batches, and returns to length one.
What it does not see counts as zero, so that all have the same number of samples and the same pull to local directions.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from flbook import devices, rng
from flbook.domains import Count, Fraction, Natural, NonNegative, Positive
from flbook.lectures.training_strategies.expert_clusters.correlations import flow
from flbook.lectures.training_strategies.expert_clusters.index_clusters import (
    CENTRE,
    FIRST,
    SECOND,
    SHARED,
    IndexClusters,
    IndexSample,
)
from flbook.lectures.training_strategies.expert_clusters.index_experts import SLOPE
from flbook.runs import Experiment, Grid, axis

SEES = ("one cluster", "spectral half", "everything")
PULLS = {"one cluster": (0.5, 0.0, 0.5), "everything": (0.5, 0.5, 0.0)}  # towards w_1, w_2, w_g


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    sees: tuple[Literal[SEES], ...] = axis(SEES, "what the neuron sees")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    step: tuple[Natural, ...] = axis(range(0, 601, 20), "step")
    d: Count = 24
    rho: NonNegative = 2.0  # centres
    batch: Count = 400
    lr: Positive = 0.01
    to_local: Fraction = 0.2  # overlap with either local direction at the start
    to_shared: Fraction = 0.4  # and with the shared one

    def check(self) -> None:
        """Refuse a dimension below four and a start longer than one."""
        if self.d < 5:
            raise ValueError(f"d must be at least 5, four directions and one more; got {self.d}")
        if 2 * self.to_local**2 + self.to_shared**2 >= 1:
            raise ValueError(f"to_local must leave a start of length one; got {self.to_local}")


experiment = Experiment(
    Setting, version=1, left=("sees", "step", "seed"),
    gives={
        "shared": ("overlap with the shared direction", "1"),
        "local": ("overlap with the nearer local direction", "1"),
    },
    presets={"tiny": ("A blink", dict(seed=(0, 1), step=(0, 5, 10), d=8, batch=50))},
)


def begin(setting: Setting, device: str | torch.device = "cpu") -> Float[Tensor, "seed d"]:
    """Weights of length one at the given overlaps, across the centres, and else in a random direction."""
    w = rng.normal((setting.d,), setting.seed, "directions", device)
    w[:, :4] = 0
    left = 1 - 2 * setting.to_local**2 - setting.to_shared**2
    w = w / w.norm(dim=-1, keepdim=True) * left**0.5
    w[:, FIRST] = w[:, SECOND] = setting.to_local
    w[:, SHARED] = setting.to_shared
    return w


def half(sample: IndexSample) -> Float[Tensor, "*E d"]:
    """The top principal component of a batch: two clusters found without a label. Its sign is that of the centre +1."""
    top = torch.linalg.eigh(sample.x.mT @ sample.x).eigenvectors[..., -1]
    return top * top[..., CENTRE, None].sign()


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Train every neuron on the same batches; axes (sees, step, seed)."""
    data, place = IndexClusters(s.d, s.rho), devices.device(device)
    w = begin(s, place).repeat(len(s.sees), 1, 1)
    every, paths = data.draw(s.batch, s.seed, "batch to split by", place), {}
    split = half(every)
    for step in range(max(s.step) + 1):
        if step in s.step:
            paths[step] = w[..., : SHARED + 1]
        sample = data.draw(s.batch, s.seed, f"batch {step}", place)
        side = (sample.x @ split[..., None]).squeeze(-1)
        shown = {"one cluster": sample.cluster > 0, "spectral half": side > 0, "everything": side == side}
        seen = torch.stack([shown[name] for name in s.sees]).to(w.dtype)
        u = (w.transpose(0, 1) @ sample.x.mT).transpose(0, 1)
        pull = ((seen * sample.y * SLOPE(u)).transpose(0, 1) @ sample.x).transpose(0, 1) / s.batch
        w = w + s.lr * (pull - (pull * w).sum(-1, keepdim=True) * w)
        w = w / w.norm(dim=-1, keepdim=True)
    path = torch.stack([paths[step] for step in s.step], 1)  # (sees, step, seed, 4)
    return {"shared": path[..., SHARED], "local": path[..., FIRST:SHARED].amax(-1)}


run = experiment.run


def equation(setting: Setting, sees: str) -> xr.Dataset:
    """The same two overlaps by the equation, for a neuron that sees one cluster or everything."""
    start = (setting.to_local, setting.to_local, setting.to_shared)
    times = setting.lr * np.asarray((0, *setting.step))
    local, other, shared = flow(PULLS[sees], start, times)[:, 1:]
    found = {"shared": ("step", shared), "local": ("step", np.maximum(local, other))}
    return xr.Dataset(found, {"step": list(setting.step)})
