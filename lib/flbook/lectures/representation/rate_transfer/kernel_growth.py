r"""How far the tangent kernel of a two-layer linear network grows until it fits, over width and output scale.

Claim (derived in the lecture): along the target the kernel grows from 2 to :math:`2\sqrt{1 + \gamma^2|b_*|^2}` in
gradient flow from the infinitely wide start; so with :math:`\gamma = n^{-(1/2 - k)}` by a share of the order
:math:`n^{-(1 - 2k)}`: :math:`1/n` in the neural tangent parametrisation, k = 0.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from flbook.domains import Count, Natural, Positive, Range
from flbook.lectures.representation.rate_transfer import width_moments
from flbook.runs import Experiment, Grid, axis


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on."""

    k: tuple[Annotated[float, Range(0, 0.5)], ...] = axis([0.0, 0.25, 0.5], "k of the output scale γ = N^-(1/2 - k)")
    width: tuple[Count, ...] = axis([4**k for k in range(3, 9)], "neurons N")
    seed: tuple[Natural, ...] = axis(range(20), "seed")
    d: Count = 5
    length: Positive = 2.0  # |b_*|
    rate: Positive = 0.01
    time: Positive = 6.0  # the rate times the steps; the error falls like e^(-2 time) at least


experiment = Experiment(
    Setting, version=1, loops=("k", "width"),
    gives={"before": ("kernel along the target, at the start", "1"), "after": ("the same at the end", "1"),
           "left": ("error left over its start", "fraction")},
    presets={"tiny": ("Two widths, a short time", dict(width=(16, 64), seed=(0, 1), rate=0.1, time=2.0))},
    devices=("cpu",),  # a few numbers a run
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, np.ndarray]:
    """The kernel before and after training at one width."""
    gamma, target = s.width ** -(0.5 - s.k), np.eye(s.d)[0] * s.length
    state = begin = width_moments.start(s.width, s.d, s.seed)
    g = np.full(len(s.seed), s.rate * gamma)
    for _ in range(round(s.time / s.rate)):
        state = width_moments.step(state, width_moments.error(state, target, gamma), g, g)
    left = np.linalg.norm(width_moments.error(state, target, gamma), axis=-1) / s.length
    return {"before": width_moments.along(begin, target), "after": width_moments.along(state, target), "left": left}


run = experiment.run
