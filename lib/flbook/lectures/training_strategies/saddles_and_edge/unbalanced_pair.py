r"""One mode of two layers beside the edge of stability: an oscillation spends the imbalance of the layers.

The mode's output is :math:`f = \langle a, b\rangle` with a, b in R^m, its residual :math:`\zeta = s - f`, and its
sharpness at a minimum :math:`Q = |a|^2 + |b|^2`. With :math:`Q = (2 + h)/\eta` and :math:`c = \eta s < 1`: training
that starts at a small residual with the height :math:`h_0 > 0` ends at :math:`-h_0` up to the order :math:`h_0^2`.
"""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.domains import Count, Natural, Positive, Range
from flbook.lectures.training_strategies.saddles_and_edge.linear_network import LinearNetworkTraining, Numbers
from flbook.runs import Experiment, Grid, axis
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; the step size is 1, so that s is c."""

    height: tuple[Positive, ...] = axis([0.03, 0.1, 0.3], "start above the edge, h")
    c: tuple[Annotated[float, Range(0.01, 0.99)], ...] = axis([0.1, 0.3, 0.5, 0.8], "step size times strength")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    m: Count = 32


experiment = Experiment(
    Setting, version=1, loops=("height",), chunk={"height": 1},
    gives={
        "end": ("height over the edge at the end", "1"),
        "peak": ("largest residual, times the step size", "1"),
        "spent": ("product of the two differences at the end over that at the start", "1"),
    },
    presets={
        "tiny": ("A blink", dict(height=(0.1,), c=(0.3,), seed=(0, 1), m=4)),
        "wide": ("Up to twice the edge", dict(height=(0.03, 0.06, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0), seed=(0, 1))),
    },
)  # fmt: skip


def start(c: Float[Tensor, " C"], height: float, seed: tuple[int, ...], m: int) -> LinearNetworkTraining:
    r"""A network of one mode that starts above the edge, next to a minimum, (C, seed), with the step size 1.

    The residual at the start has a random sign and a size between 1e-6 and 1e-5; the directions of a + b and of a - b
    are random, and their lengths are those that Q and f ask for, :math:`|a \pm b|^2 = Q \pm 2f`.
    """
    draws = rng.over_seeds(lambda one: torch.rand(2, generator=rng.generator(one, "residual")), seed).double()
    residual = 10 ** (-6 + draws[..., 0]) * (draws[..., 1] - 0.5).sign()
    f = c[:, None] - residual
    towards = [torch.nn.functional.normalize(rng.normal((m,), seed, role, dtype=torch.float64), dim=-1)
               for role in ("a + b", "a - b")]  # fmt: skip
    plus, minus = ((2 + height + sign * 2 * f).sqrt()[..., None] * v for sign, v in zip((1, -1), towards, strict=True))
    a, b = (plus + minus) / 2, (plus - minus) / 2
    return LinearNetworkTraining(c[:, None, None, None], (a[..., None], b[..., None, :]))


def trace(training: LinearNetworkTraining, steps: int) -> tuple[Float[Tensor, "T C S"], Float[Tensor, "T C S"]]:
    """The height over the edge, h, and the residual, after every step."""

    def both(w):
        residual = (training.target - training.product(w))[..., 0, 0]
        return torch.stack([sum(part.square().sum((-2, -1)) for part in w.values()) - 2, residual], -1)

    recorded = Quantity("both", both, ("what",))
    names = [f"axis_{k}" for k in range(len(training.ensemble))]
    history = fit(training, GradientDescent(1.0), steps, [recorded], names, at=range(steps + 1)).history
    return torch.from_numpy(history.both.values).unbind(-1)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """End, largest residual and what is left of the imbalance, (c, seed)."""
    c = torch.tensor(s.c, dtype=torch.float64)
    training = start(c, s.height, s.seed, s.m).to(device)
    h, residual = trace(training, math.ceil(2 * math.log(1e7) / s.height))
    parts = [(2 + h[k]) ** 2 - 4 * (c[:, None] - residual[k]) ** 2 for k in (0, -1)]
    return {"end": h[-1], "peak": residual.abs().amax(0), "spent": (parts[1] / parts[0]).sqrt()}


def end(height: Numbers, c: Numbers) -> Numbers:
    r"""The end to second order, :math:`-h_0 - \frac23\frac{1-4c^2}{1-c^2}\,h_0^2`."""
    return -height - 2 / 3 * (1 - 4 * np.square(c)) / (1 - np.square(c)) * np.square(height)


def largest(height: Numbers, c: Numbers) -> Numbers:
    r"""The largest residual times the step size, :math:`h_0/\sqrt{2(1-c^2)}`, to first order."""
    return height / np.sqrt(2 * (1 - np.square(c)))


run = experiment.run
