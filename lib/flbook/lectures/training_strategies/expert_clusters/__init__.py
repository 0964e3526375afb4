r"""Two experts and their router, trained together on two clusters that share a direction with opposite signs.

Claim (Kawata et al. 2025): on clusters of single-index models a plain network fails to detect the clusters, since its
information exponent rises when the whole task is considered; a mixture of experts divides the task, as each expert
first recovers the function of one cluster weakly. Here: experts of cubic neurons, beside one network of as many (the
router held at zero), a router held at random, and data without local parts.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch

from flbook import devices
from flbook.domains import Count, Natural, NonNegative, Positive, Range
from flbook.lectures.training_strategies.expert_clusters.index_clusters import (
    FIRST,
    SECOND,
    SHARED,
    IndexClusters,
    IndexSample,
)
from flbook.lectures.training_strategies.expert_clusters.index_experts import IndexExperts, Together, start
from flbook.runs import Experiment, Grid, axis

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

    def data(self, case: str, d: int) -> IndexClusters:
        """The data of a case."""
        return IndexClusters(d, self.rho, local=0.0 if case == "no local parts" else 1.0)

    def begin(self, case: str, d: int, device: str | torch.device = "cpu") -> tuple[IndexExperts, Together]:
        """The networks of all seeds, and the rule that trains them."""
        net = start(d, self.neurons, self.seed, self.held if case == "router at random" else 0.0, device)
        free = case in ("router trained", "no local parts")
        return net, Together(lr_router=self.lr_router if free else 0.0)


experiment = Experiment(
    Setting, version=1, loops=("case", "d"), chunk={"case": 1, "d": 1, "seed": 5}, stored="longer",
    gives={
        "learned": ("shared part learned", "fraction"),
        "router": ("cosine of the router with the centres", "1"),
        "local": ("largest overlap with a local direction", "1"),
        "shared": ("largest overlap with the shared direction", "1"),
    },
    presets={
        "tiny": ("A blink", dict(
            case=CASES, d=(8, 12), seed=(0, 1), step=(0, 5, 10), neurons=2, batch=50, points=100)),
        "longer": ("With local parts and without, in 24 and in 96 dimensions, on twenty seeds", dict(
            case=CASES[:2], d=(24, 96), seed=tuple(range(20)), step=tuple(range(0, 3001, 150)), batch=800)),
    },
)


def learned(f: torch.Tensor, fresh: IndexSample) -> torch.Tensor:
    """The share of the shared part that an output holds: its regression coefficient on fresh samples."""
    return (f * fresh.shared).mean(-1) / (fresh.shared**2).mean(-1)


def looked_at(net: IndexExperts, fresh: IndexSample) -> torch.Tensor:
    """What is followed, in the order of what the experiment gives, shape (4, seed)."""
    m = net.w.abs().flatten(-3, -2).amax(-2)  # the largest overlap of any neuron with each direction
    local = torch.minimum(m[..., FIRST], m[..., SECOND])
    return torch.stack([learned(net.predict(fresh.x), fresh), net.cosine(), local, m[..., SHARED]])


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train one case in one dimension on fresh batches."""
    place = devices.device(device)
    data, (net, rule), path = s.data(s.case, s.d), s.begin(s.case, s.d, place), {}
    fresh = data.draw(s.points, s.seed, "fresh samples", place)
    for step in range(max(s.step) + 1):
        if step in s.step:
            path[step] = looked_at(net, fresh)
        net = rule.step(net, data.draw(s.batch, s.seed, f"batch {step}", place))
    followed = torch.stack([path[step] for step in s.step], -1)  # (4, seed, step)
    return dict(zip(experiment.gives, followed, strict=True))


run = experiment.run
