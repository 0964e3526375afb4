"""One client alone: its test error with more and more samples of its own signal.

The yardstick of the lecture: what a federation of clients is worth is said in samples of this client.
"""

from dataclasses import dataclass

import torch
import xarray as xr

from flbook.domains import Count, Natural, Positive
from flbook.lectures.training_strategies.federated_learning.federation import Federation, own_errors, pooled, strengths
from flbook.runs import axis, labelled, sweeps
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

VERSION = 1


@dataclass(frozen=True)
class Setting(Federation):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    n: tuple[Count, ...] = axis([10, 20, 30, 40, 50, 65, 80, 100], "samples n of its own")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    step: Positive = 0.03  # step size over the number of samples
    steps: Count = 500

    @classmethod
    def tiny(cls) -> "Setting":
        """A blink."""
        return cls(n=(4, 8), seed=(0, 1), d=100, m=3, mu=3.0, steps=60, points=32)

    @classmethod
    def paper(cls) -> "Setting":
        """The same samples on the seeds of the federations."""
        return cls(seed=tuple(range(160)))

    def check(self) -> None:
        """Refuse more vectors than fit into d."""
        if self.d <= max(self.n) + 2:
            raise ValueError(f"d must be above samples and features together, {max(self.n) + 2}; got {self.d}")


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Train every cell to the end; dimensions (n, seed)."""
    signals, errors = strengths(1, 1.0), []
    for n in setting.n:
        training = pooled(setting, signals, n, setting.seed, device)
        params = fit(training, GradientDescent(setting.step * n), setting.steps).params
        errors.append(own_errors(training, params, signals.to(training.observed), setting.points)[..., 0])
    error = {"test_error": (("n", "seed"), torch.stack(errors), "test error", "fraction")}
    return labelled(error, setting.coordinates())


run = sweeps(measure, chunk={"n": 1, "seed": 40})
