"""One ReLU network with biases on the two clusters, the strongest plain rival: Adam on fresh batches, all layers.

Its step size is the best of 0.001, 0.003 and 0.01; it falls to zero along a cosine.
"""

from dataclasses import dataclass
from itertools import product
from typing import Annotated

import torch
import xarray as xr

from flbook import devices
from flbook.domains import Count, Natural, NonNegative, Positive, Range
from flbook.lectures.training_strategies.expert_clusters import learned
from flbook.lectures.training_strategies.expert_clusters.index_clusters import IndexClusters
from flbook.models.layers import MLP
from flbook.runs import Grid, axis, labelled, sweeps

VERSION = 1


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    d: tuple[Annotated[int, Range(5)], ...] = axis([24], "dimension d")
    width: tuple[Count, ...] = axis([256], "neurons")
    seed: tuple[Natural, ...] = axis(range(2), "seed")
    steps: Count = 300
    batch: Count = 800
    rho: NonNegative = 2.0  # centres
    lr: Positive = 0.01
    points: Count = 8192  # fresh samples to measure on

    @classmethod
    def tiny(cls) -> "Setting":
        """A blink."""
        return cls(d=(8, 12), width=(2, 4), seed=(0, 1), steps=5, batch=20, points=100)

    @classmethod
    def paper(cls) -> "Setting":
        """The samples of the experts' stored runs, and sixteen times as many neurons."""
        return cls(d=(24, 96), seed=tuple(range(10)), steps=3000)


def train(setting: Setting, d: int, width: int, device: str | torch.device = "cpu") -> torch.Tensor:
    """The share of the shared part that the trained networks of all seeds hold."""
    data = IndexClusters(d, setting.rho)
    net = MLP((d, width, 1), spread=0.5, seed=setting.seed).to(device)
    adam = torch.optim.Adam(net.parameters(), lr=setting.lr)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(adam, setting.steps)
    for step in range(setting.steps):
        sample = data.draw(setting.batch, setting.seed, f"batch {step}", device)
        loss = (net(sample.x.float()).squeeze(-1) - sample.y.float()).square().mean(-1).sum()
        adam.zero_grad()
        loss.backward()
        adam.step()
        falling.step()
    fresh = data.draw(setting.points, setting.seed, "fresh samples", device)
    with torch.no_grad():
        return learned(net(fresh.x.float()).squeeze(-1).double(), fresh).cpu()


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Train every cell; dimensions (d, width, seed)."""
    place = devices.device(device)
    cells = [train(setting, d, width, place) for d, width in product(setting.d, setting.width)]
    share = torch.stack(cells).unflatten(0, (len(setting.d), len(setting.width)))
    return labelled(
        {"learned": (("d", "width", "seed"), share, "shared part learned", "fraction")},
        setting.coordinates("d", "width", "seed"),
    )


run = sweeps(measure, chunk={"d": 1, "width": 1, "seed": 1})
