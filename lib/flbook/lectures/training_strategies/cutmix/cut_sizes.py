r"""Where CutMix comes to rest, for other numbers of patches and other laws of the cut.

Derived here: all patches end at the root z* of :math:`\mathbb E|k|\tanh(|k|z/2) = \mathbb E k^2/P`. The law: with
probability `whole` nothing is pasted, else the cut takes 1 to P - 1 patches, each number as likely.
"""

from dataclasses import dataclass

import torch
import xarray as xr

from flbook.domains import Count, Fraction, Natural, Positive
from flbook.lectures.training_strategies import cutmix
from flbook.lectures.training_strategies.cutmix.pasting import CutMix
from flbook.runs import Grid, axis, labelled, sweeps
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

VERSION = 1


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

    @classmethod
    def tiny(cls) -> "Setting":
        """A blink: what the tests run."""
        return cls(patches=(2, 3), whole=(0.0, 0.5), seed=(0, 1), d=100, steps=20)

    @classmethod
    def paper(cls) -> "Setting":
        """More laws."""
        return cls(patches=(3, 4, 5, 6), whole=(0.0, 0.2, 0.4, 0.6, 0.8), steps=2000)

    def check(self) -> None:
        """Refuse what the data model would, and a single patch."""
        for patches in self.patches:
            if patches < 2:
                raise ValueError(f"patches must be at least 2, to be cut from each other; got {patches}")
            self.one(patches)

    def one(self, patches: int) -> cutmix.Setting:
        """The problem with so many patches."""
        return cutmix.Setting(seed=self.seed, n=self.n, d=self.d, patches=patches)


def law(patches: int, whole: float) -> tuple[float, ...]:
    """Probabilities of cutting 0 to P patches."""
    between = ((1 - whole) / (patches - 1),) * (patches - 1)
    return (whole / 2, *between, whole / 2)


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """What is said to the training patches, averaged over them and the later half of training."""
    found = []
    for patches in setting.patches:
        for whole in setting.whole:
            recipe = CutMix(law(patches, whole), setting.partners)
            training = cutmix.problem(setting.one(patches), recipe, device)
            z = Quantity("z", lambda params, of=training: (of.said(params).mean(-1) * of.observed).mean(-1))
            late = range(setting.steps // 2, setting.steps + 1, 10)
            history = fit(training, GradientDescent(setting.lr), setting.steps, [z], ("seed",), at=late).history
            found.append(torch.from_numpy(history.z.mean("step").values))
    dims = ("patches", "whole", "seed")
    return labelled({"z": (dims, found, "output on a patch z")}, setting.coordinates())


run = sweeps(measure, chunk={"patches": 1})
