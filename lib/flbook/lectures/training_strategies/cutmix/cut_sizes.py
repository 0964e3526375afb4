r"""Where CutMix comes to rest, for other numbers of patches and other laws of the cut.

Derived here: all patches end at the root z* of :math:`\mathbb E|k|\tanh(|k|z/2) = \mathbb E k^2/P`. The law: with
probability `whole` nothing is pasted, else the cut takes 1 to P - 1 patches, each number as likely.
"""

from dataclasses import dataclass

import numpy as np

from flbook.domains import Count, Fraction, Natural, Positive
from flbook.lectures.training_strategies import cutmix
from flbook.lectures.training_strategies.cutmix.pasting import CutMix
from flbook.runs import Experiment, Grid, axis
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    patches: tuple[Count, ...] = axis([3, 4, 5], "patches P")
    whole: tuple[Fraction, ...] = axis([0.0, 0.3, 0.6], "share of pictures without a paste")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    n: Count = 40
    d: Count = 1000
    lr: Positive = 2.0  # step size
    partners: Count = 2  # pastes of a sample in a step
    steps: Count = 1000

    def check(self) -> None:
        """Refuse what the data model would, and a single patch."""
        for patches in self.patches:
            if patches < 2:
                raise ValueError(f"patches must be at least 2, to be cut from each other; got {patches}")
            self.one(patches)

    def one(self, patches: int) -> cutmix.Setting:
        """The problem with so many patches."""
        return cutmix.Setting(seed=self.seed, n=self.n, d=self.d, patches=patches)


experiment = Experiment(
    Setting, version=1, loops=("patches", "whole"), chunk={"patches": 1},
    gives={"z": ("output on a patch z", "1")},
    presets={
        "tiny": ("A blink", dict(patches=(2, 3), whole=(0.0, 0.5), seed=(0, 1), d=100, steps=20)),
        "longer": ("More laws, twice the steps", dict(
            patches=(3, 4, 5, 6), whole=(0.0, 0.2, 0.4, 0.6, 0.8), steps=2000)),
    },
)


def law(patches: int, whole: float) -> tuple[float, ...]:
    """Probabilities of cutting 0 to P patches."""
    between = ((1 - whole) / (patches - 1),) * (patches - 1)
    return (whole / 2, *between, whole / 2)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, np.ndarray]:
    """What is said to the training patches, averaged over them and the later half of training."""
    training = cutmix.problem(s.one(s.patches), CutMix(law(s.patches, s.whole), s.partners), device)
    z = Quantity("z", lambda params: (training.said(params).mean(-1) * training.observed).mean(-1))
    late = range(s.steps // 2, s.steps + 1, 10)
    history = fit(training, GradientDescent(s.lr), s.steps, [z], ("seed",), at=late).history
    return {"z": history.z.mean("step").values}


run = experiment.run
