r"""Least squares for a learner who is told the group: products of the waves of a and b of the same frequency.

With :math:`\omega_k = 2\pi k/p` the features are 1 and, for k = 1 ... (p-1)/2, the four products of
:math:`\cos\omega_k a, \sin\omega_k a` with :math:`\cos\omega_k b, \sin\omega_k b`: 2p - 1 of them for an odd p. The
solution lies in their span. ``"all waves"`` multiplies every wave of a with every wave of b, which is the whole table.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook import devices
from flbook.domains import Count, Natural, Probability
from flbook.lectures.representation.grokking.modular_table import ModularTable, targets
from flbook.lectures.representation.grokking.recursive_machine import accuracy
from flbook.runs import Experiment, Grid, axis

FEATURES = ("same wave", "all waves")


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    features: tuple[Literal[FEATURES], ...] = axis(["same wave"], "features")
    share: tuple[Probability, ...] = axis([0.07, 0.1, 0.13, 0.2, 0.3], "share of the table f")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    p: Count = 31

    def check(self) -> None:
        """Refuse even p, whose middle wave has no sine."""
        if self.p % 2 == 0:
            raise ValueError(f"p must be odd; got {self.p}")


experiment = Experiment(
    Setting, version=1, loops=("features", "share"), gives={"accuracy": ("test accuracy", "1")},
    presets={"tiny": ("A blink", dict(features=FEATURES, share=(0.6,), seed=(0, 1), p=7))},
)  # fmt: skip


def waves(numbers: Int[Tensor, "*E n"], p: int) -> Float[Tensor, "*E n K 2"]:
    """Cosine and sine of each frequency."""
    k = torch.arange(1, (p + 1) // 2, device=numbers.device)
    angle = 2 * math.pi / p * (k * numbers[..., None] % p).double()
    return torch.stack([angle.cos(), angle.sin()], -1)


def products(pairs: Int[Tensor, "*E n 2"], p: int, features: str) -> Float[Tensor, "*E n F"]:
    """The features of pairs."""
    a, b = (waves(pairs[..., side], p) for side in (0, 1))
    if features == "same wave":
        found = (a[..., :, None] * b[..., None, :]).flatten(-3)
    else:
        found = (a.flatten(-2)[..., :, None] * b.flatten(-2)[..., None, :]).flatten(-2)
    return torch.cat([torch.ones_like(found[..., :1]), found], -1)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Test accuracy of the shortest solution of least squares, (seed,)."""
    train, test = (part.to(devices.device(device)) for part in ModularTable(s.p, s.share).draw(s.seed))
    weights = torch.linalg.pinv(products(train, s.p, s.features), rtol=1e-9) @ targets(train, s.p)
    return {"accuracy": accuracy(products(test, s.p, s.features) @ weights, test, s.p)}


run = experiment.run
