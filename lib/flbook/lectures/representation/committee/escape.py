r"""How long SGD waits on the plateau of a committee, from random starts.

Claim (derived in the lecture): students with random weights differ by :math:`d^{-1/2}`, and a difference grows like
:math:`e^{g\alpha}`, so for every factor e in the dimension the plateau is longer by :math:`1/(2g)` samples per
dimension.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from flbook.domains import Natural, Positive, Range
from flbook.lectures.representation.committee import LEVEL, crossing, random_start, trained
from flbook.lectures.representation.committee.order_parameters import Committee
from flbook.runs import Experiment, Grid, axis, single_precision

_OFTEN = 4  # looks at the risk per unit of alpha


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on."""

    d: tuple[Annotated[int, Range(8)], ...] = axis([32, 64, 128], "dimension d")
    seed: tuple[Natural, ...] = axis(range(24), "seed")
    lr: Positive = 0.5  # eta
    level: Positive = LEVEL  # of the risk, below which a run has left
    longest: Positive = 400.0  # alpha at which waiting ends


experiment = Experiment(
    Setting, version=1, loops=("d",), chunk={"d": 1}, stored="longer",
    gives={"wait": ("samples over dimension α until the plateau ends", "1")},
    presets={
        "tiny": ("The first fall, at two small dimensions", dict(
            d=(16, 24), seed=(0, 1, 2), level=0.1, longest=12.0)),
        "longer": ("Five dimensions, 256 random starts", dict(
            d=(64, 128, 256, 512, 1024), seed=tuple(range(256)))),
    },
    devices=("cpu",),  # as for the committee
)
experiment.kept(single_precision)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, np.ndarray]:
    """alpha at which each run leaves, at one dimension."""
    return {"wait": wait(s, s.d)}


def wait(setting: Setting, d: int) -> np.ndarray:
    """One number per seed at one dimension, NaN where the risk was never below the level."""
    rule, start = Committee(2, 2, setting.lr), random_start(d, setting.seed)
    every, left = d // _OFTEN, np.zeros(len(setting.seed), bool)
    risks = [rule.risk(start)]
    for now, state in enumerate(trained(rule, start, d, setting.seed, round(setting.longest * d)), start=1):
        if now % every == 0:
            risks.append(rule.risk(state))
            left |= risks[-1] < setting.level
            if left.all():
                break
    return crossing(np.arange(len(risks)) * every / d, np.stack(risks, 1), setting.level)
