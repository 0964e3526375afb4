"""One ReLU network with biases on the two clusters, the strongest plain rival: Adam on fresh batches, all layers.

Its step size is the best of 0.001, 0.003 and 0.01; it falls to zero along a cosine.
"""

from dataclasses import dataclass
from typing import Annotated

import torch

from flbook import devices
from flbook.domains import Count, Natural, NonNegative, Positive, Range
from flbook.lectures.training_strategies.expert_clusters import learned
from flbook.lectures.training_strategies.expert_clusters.index_clusters import IndexClusters
from flbook.models.layers import MLP
from flbook.runs import Experiment, Grid, axis


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


experiment = Experiment(
    Setting, version=1, loops=("d", "width"), chunk={"d": 1, "width": 1, "seed": 1}, stored="longer",
    gives={"learned": ("shared part learned", "fraction")},
    presets={
        "tiny": ("A blink", dict(d=(8, 12), width=(2, 4), seed=(0, 1), steps=5, batch=20, points=100)),
        "longer": ("The samples of the experts' stored runs, and sixteen times as many neurons", dict(
            d=(24, 96), seed=tuple(range(10)), steps=3000)),
    },
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train networks of one width in one dimension: the share of the shared part that they hold."""
    data, place = IndexClusters(s.d, s.rho), devices.device(device)
    net = MLP((s.d, s.width, 1), spread=0.5, seed=s.seed).to(place)
    adam = torch.optim.Adam(net.parameters(), lr=s.lr)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(adam, s.steps)
    for step in range(s.steps):
        sample = data.draw(s.batch, s.seed, f"batch {step}", place)
        loss = (net(sample.x.float()).squeeze(-1) - sample.y.float()).square().mean(-1).sum()
        adam.zero_grad()
        loss.backward()
        adam.step()
        falling.step()
    fresh = data.draw(s.points, s.seed, "fresh samples", place)
    with torch.no_grad():
        return {"learned": learned(net(fresh.x.float()).squeeze(-1).double(), fresh)}


run = experiment.run
