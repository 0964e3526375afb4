r"""Adam in batches: the fewer samples a step takes, the less sparse noise it memorises.

Claim (Tang et al. 2025, reported): Adam in small batches learns the feature, in large ones it does not.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import xarray as xr

from flbook import measures
from flbook.domains import Count, Fraction, Natural, NonNegative, Positive
from flbook.lectures.training_strategies import adam_and_gradient_descent as lecture
from flbook.runs import Grid, axis, labelled, sweeps
from flbook.training.batches import Batches
from flbook.training.fit import fit

VERSION = 1


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    rule: tuple[Literal["Adam", "sign descent"], ...] = axis(["Adam"], "rule")
    batch: tuple[Count, ...] = axis([2, 20], "samples of a step B")
    seed: tuple[Natural, ...] = axis(range(3), "seed")
    n: Count = 200
    d: Count = 1000
    s: Count = 100
    sigma_xi: Positive = 0.1
    alpha: Fraction = 0.2
    m: Count = 20
    rate: Positive = 5e-4  # step size
    decay: NonNegative = 1e-5  # of Adam's weights, coupled
    steps: Natural = 1500
    points: Count = 500

    @classmethod
    def tiny(cls) -> "Setting":
        """A blink."""
        return cls(rule=("Adam", "sign descent"), batch=(2, 10), seed=(0, 1), n=10, d=60, s=6, m=3, steps=20, points=40)

    @classmethod
    def paper(cls) -> "Setting":
        """From two samples a step to all of them."""
        return cls(rule=("Adam", "sign descent"), batch=(2, 5, 10, 20, 50, 100, 200), seed=tuple(range(10)))

    def check(self) -> None:
        """Refuse batches larger than the data."""
        if max(self.batch) > self.n:
            raise ValueError(f"batch must be at most n = {self.n}; got {max(self.batch)}")

    @property
    def whole(self) -> "lecture.Setting":
        """The same without batches."""
        names = ("seed", "n", "d", "s", "sigma_xi", "m", "rate", "decay", "points")
        same = {name: getattr(self, name) for name in names}
        return lecture.Setting(alpha=(self.alpha,), adam_steps=self.steps, **same)


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Train every cell to the end; dimensions (rule, batch, seed)."""
    whole = setting.whole
    trained = lecture.problem(whole, setting.alpha, device)
    fresh = lecture.Fresh(whole.data(setting.alpha), setting.points, setting.seed, device)
    cells = []
    for name in setting.rule:
        for batch in setting.batch:
            params = fit(Batches(trained, batch, seed=0), *lecture.rule(whole, name)).params
            cells.append([fresh.error(trained, params), measures.train_error(trained, params),
                          trained.feature(params).amin(-1), trained.noise(params).mean(-1)])
    error, missed, feature, noise = (torch.stack(column).unflatten(0, setting.shape[:2])
                                     for column in zip(*cells, strict=True))
    dims = ("rule", "batch", "seed")
    return labelled({"test_error": (dims, error, "test error", "fraction"),
                     "train_error": (dims, missed, "training error", "fraction"),
                     "feature": (dims, feature, "response to the feature, its weaker class"),
                     "noise": (dims, noise, "response to own noise, mean over samples")}, setting.coordinates())


run = sweeps(measure, chunk={"rule": 1})
