"""How much of the shared direction leaks into a neuron that sees everything, and into one that sees half of the inputs.

Two measurements on data without local parts, each the mean over a sample: the velocity of the overlap of neurons with
the activation h_3 or h_3 + h_4, which hold a given overlap with the shared direction and are random else; and the pull
on neurons across the centres that see one side of the centres' direction.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from flbook import devices, hermite, rng
from flbook.domains import Count, Natural, NonNegative, Range
from flbook.lectures.training_strategies.expert_clusters.index_clusters import CENTRE, SHARED, IndexClusters
from flbook.runs import Experiment, Grid, axis, labelled

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


experiment = Experiment(
    Setting, version=1, loops=("d", "seed"),
    gives={
        "leak": ("velocity of the overlap m", "1", ("activation", "d", "seed")),
        "lean": ("mean size of w_c", "1", ("d", "seed")),
    },
    presets={"tiny": ("A blink", dict(d=(8, 16), seed=(0, 1), n=200, neurons=10))},
)


def directions(setting: Setting, d: int, seed: int, device: str | torch.device = "cpu") -> Float[Tensor, "neurons d"]:
    """Neurons of length one at the overlap m, in a random direction else."""
    w = rng.normal((setting.neurons, d), seed, "directions").to(device)
    w[:, SHARED] = 0
    w = w / w.norm(dim=-1, keepdim=True) * (1 - setting.m**2) ** 0.5
    w[:, SHARED] = setting.m
    return w


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, list[float] | float]:
    """The leak: velocity of m, counted on the neuron's own side; one sample for all activations."""
    place = devices.device(device)
    sample = IndexClusters(s.d, s.rho, local=0.0).draw(s.n, s.seed, "samples", place)
    w = directions(s, s.d, s.seed, place)
    u = sample.x @ w.T
    across = sample.y[:, None] * (sample.x[:, SHARED, None] - s.m * u)
    slopes = (ACTIVATIONS[name].derivative() for name in s.activation)
    leak = torch.stack([((slope(u) * across).mean(0) * w[:, CENTRE].sign()).mean() for slope in slopes])
    # As numbers: small tensors made among large ones, and kept, would keep the memory about them from being used again.
    return {"leak": leak.tolist(), "lean": w[:, CENTRE].abs().mean().item()}


run = experiment.run


@experiment.also
def gated(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Pull of the shared part on one side of 0 over that on one cluster, at m = 1; dimensions (distance, seed)."""
    place, distances = devices.device(device), (0.5, 1.0, 2.0)

    def ratio(rho: float, seed: int) -> Tensor:
        sample = IndexClusters(4, rho, local=0.0).draw(16 * setting.n, seed, "gated samples", place)
        shown = sample.x[:, CENTRE] > 0
        h = hermite.polynomial(3, sample.x[:, SHARED])
        return (sample.y * h)[shown].mean() / (h * h)[shown].mean()

    ratios = torch.stack([torch.stack([ratio(rho, seed) for seed in setting.seed]) for rho in distances])
    about = {"long_name": "distance ‖c‖ of a centre", "units": "1"}
    return labelled({"ratio": (("distance", "seed"), ratios, "pull, over that of one cluster")},
                    {"distance": ("distance", list(distances), about)} | setting.coordinates("seed"))  # fmt: skip
