r"""A metric that nobody has learned: a random circulant of a given size R, set by hand, and one fit in it.

The profile's Fourier coefficients are :math:`C_k = R\,e^{i\theta_k}` with uniform phases (``"phases"``), or those of
uniform entries, scaled to the mean modulus R (``"entries"``); for comparison C is a random matrix whose entries have
the variance of the first kind (``"matrix"``), or is constant along a + b (``"Hankel"``).
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from flbook import devices, rng
from flbook.domains import Count, Natural, Positive, Probability
from flbook.lectures.representation.grokking.modular_table import ModularTable, TablePairs
from flbook.lectures.representation.grokking.recursive_machine import accuracy_in, batches, circulant
from flbook.runs import Experiment, Grid, axis

KINDS = ("phases", "entries", "matrix", "Hankel")


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    kind: tuple[Literal[KINDS], ...] = axis(["phases"], "kind of the block")
    R: tuple[Positive, ...] = axis([0.3, 0.4, 0.5, 0.6, 0.7, 0.85], "size R")
    seed: tuple[Natural, ...] = axis(range(12), "seed")
    p: Count = 31
    share: Probability = 0.61


experiment = Experiment(
    Setting, version=1, loops=("kind", "R"), gives={"accuracy": ("test accuracy", "1")},
    presets={
        "tiny": ("A blink", dict(kind=KINDS, R=(0.5,), seed=(0, 1), p=7)),
        "kinds": ("Other blocks", dict(kind=KINDS, R=(0.5, 0.85))),
    },
)  # fmt: skip


def metric(kind: str, R: float, p: int, seed: int | tuple[int, ...]) -> Float[Tensor, "*E q q"]:
    """Ones on the diagonal, and the block below them."""
    u = rng.over_seeds(lambda one: torch.rand(p, generator=rng.generator(one, "block"), dtype=torch.float64), seed)
    if kind == "entries":
        coefficients = torch.fft.fft(u)
        coefficients[..., 0] = 0
        coefficients = coefficients * (R * (p - 1) / coefficients.abs().sum(-1, keepdim=True))
    else:
        coefficients = torch.polar(torch.full_like(u, R), 2 * math.pi * u)
        coefficients[..., 0] = 0
        half = (p - 1) // 2  # a real profile has conjugate coefficients at k and -k
        coefficients[..., p - half :] = coefficients[..., 1 : half + 1].flip(-1).conj()
    whole = circulant(torch.fft.ifft(coefficients).real)
    block = whole[..., p:, :p]
    if kind == "matrix":
        block = rng.normal((p, p), seed, "matrix") * R / math.sqrt(p)
    if kind == "Hankel":
        block = block.flip(-1)  # constant along v + u in place of v - u
    whole = whole.clone()
    whole[..., p:, :p], whole[..., :p, p:] = block, block.mT
    return whole


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Test accuracy of one fit, (seed,)."""
    where, table = devices.device(device), ModularTable(s.p, s.share)
    found = []
    for some in batches(s.seed, table.n):
        split = TablePairs(*(part.to(where) for part in table.draw(some)))
        found.append(accuracy_in(metric(s.kind, s.R, s.p, some).to(where), s.p, split))
    return {"accuracy": torch.cat(found)}


def of_profiles(profiles: xr.DataArray, table: ModularTable) -> xr.DataArray:
    """Test accuracy in the circulant part of metrics, from their profiles (seed, round, difference)."""
    seeds = tuple(profiles.seed.values.tolist())
    split = table.draw(seeds)
    found = [accuracy_in(circulant(torch.from_numpy(c.values.copy())), table.p, split)
             for c in profiles.transpose("round", "seed", "difference")]
    named = {"round": profiles["round"], "seed": profiles["seed"]}
    return xr.DataArray(torch.stack(found), named, ("round", "seed"), "accuracy")


run = experiment.run
