r"""The last phase: how long gradient flow takes to halve the loss in the lowest gap, over the number of features.

Claim (Kim and Suzuki 2024, Theorem 5.3): from the lowest gap on, :math:`L < 1/2k`, the flow with birth-death reaches a
loss :math:`\epsilon` within a time :math:`O(k^2/\epsilon)`, whatever d. From the middle of the gap, :math:`1/4k`, to
the half of that this allows :math:`O(k^3)`. Here plain gradient flow of neurons, from random starts.
"""

from dataclasses import dataclass

import numpy as np

from flbook.domains import Count, Natural, Positive
from flbook.lectures.in_context_learning import attention_landscape as landscape
from flbook.lectures.in_context_learning.shared.mean_field import Particles, Population
from flbook.lectures.in_context_learning.shared.modified_flow import descend
from flbook.runs import Experiment, Grid, axis, single_precision


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    k: tuple[Count, ...] = axis((2, 3), "features k")
    seed: tuple[Natural, ...] = axis(range(4), "seed")
    d: Count = 40  # inputs, the teacher sees half of them
    m: Count = 64  # neurons
    pairs: Count = 150  # pairs of points
    lr: Positive = 0.025  # step size over k: gradients fall like 1/k
    steps: Count = 300  # times k


experiment = Experiment(
    Setting, version=1, loops=("k",), stored="longer", devices=("cpu",),
    gives={"entered": ("time until L is 1/(4k)", "1", ("k", "seed")),
           "halving": ("time from there to 1/(8k)", "1", ("k", "seed"))},
    presets={
        "tiny": ("Two and three features, two seeds, few neurons and points", dict(
            seed=(0, 1), m=32, d=8, pairs=30, steps=150)),
        "longer": ("Two to eight features, 20 seeds", dict(k=(2, 3, 4, 6, 8), seed=tuple(range(20)))),
    },
)
experiment.kept(single_precision)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, np.ndarray]:
    """Both times at one number of features; NaN where the flow is not that far at its end."""
    setting = landscape.experiment.setting(k=s.k, seed=s.seed, d=s.d, m=s.m, pairs=s.pairs, missing=(0,))
    teacher, population = landscape.truth(setting)
    start = landscape.start(setting, "dead", 0, teacher)
    single = (Particles(*(part.float() for part in start)), Population(*(part.float() for part in population)))
    _, loss = descend(*single, s.lr * s.k, s.steps * s.k)
    entered, half = (s.lr * s.k * first_below(loss.double().numpy(), level / s.k) for level in (1 / 4, 1 / 8))
    return {"entered": entered, "halving": half - entered}


run = experiment.run


def first_below(loss: np.ndarray, level: float) -> np.ndarray:
    """The step at which each row falls below a level, between two steps by their logarithms; NaN if it does not."""
    found = np.full(len(loss), np.nan)
    for i, row in enumerate(np.log(loss) - np.log(level)):
        if row.min() < 0:
            j = int((row < 0).argmax())
            found[i] = j and j - 1 + row[j - 1] / (row[j - 1] - row[j])
    return found
