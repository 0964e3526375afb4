"""Local steps between two averages: federated averaging of clients with one common signal, at every H.

H = 1 is gradient descent on the pooled samples; H equal to all steps averages once, at the end.
"""

from dataclasses import dataclass

import torch
import xarray as xr

from flbook.domains import Count, Natural, Positive
from flbook.lectures.training_strategies.federated_learning.clients import FederatedAveraging
from flbook.lectures.training_strategies.federated_learning.federation import (
    Federation,
    apart,
    own_errors,
    pooled,
    strengths,
)
from flbook.runs import axis, labelled, sweeps
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

VERSION = 1


@dataclass(frozen=True)
class Setting(Federation):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    every: tuple[Count, ...] = axis([1], "local steps H between averages")
    seed: tuple[Natural, ...] = axis(range(2), "seed")
    clients: Count = 10
    n: Count = 10  # samples of a client
    lr: Positive = 1.0
    steps: Count = 1000

    @classmethod
    def tiny(cls) -> "Setting":
        """A blink."""
        return cls(every=(1, 20), clients=2, n=4, d=100, m=3, mu=3.0, lr=0.3, steps=40, points=32)

    @classmethod
    def paper(cls) -> "Setting":
        """From every step to once."""
        return cls(every=(1, 2, 5, 10, 20, 50, 100, 1000), seed=tuple(range(10)))

    def check(self) -> None:
        """Refuse a last round that is cut short, and more vectors than fit into d."""
        for every in self.every:
            if self.steps % every:
                raise ValueError(f"every must divide the {self.steps} steps, so that the last ends in an average; got "
                                 f"{every}")
        vectors = self.clients * self.n + self.clients + 1
        if self.d <= vectors:
            raise ValueError(f"d must be above samples and features together, {vectors}; got {self.d}")


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Train every cell to the end; dimensions (every, seed)."""
    signals, errors = strengths(1, 1.0), []
    training = apart(pooled(setting, signals, setting.clients * setting.n, setting.seed, device), setting.clients)
    for every in setting.every:
        params = fit(training, FederatedAveraging(GradientDescent(setting.lr), every), setting.steps).params
        errors.append(own_errors(training, params, signals.to(training.observed), setting.points)[:, 0, 0])
    error = {"test_error": (("every", "seed"), torch.stack(errors), "test error", "fraction")}
    return labelled(error, setting.coordinates())


run = sweeps(measure, chunk={"every": 1})
