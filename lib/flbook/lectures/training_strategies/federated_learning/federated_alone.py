"""One client alone: its test error with more and more samples of its own signal.

The yardstick of the lecture: what a federation of clients is worth is said in samples of this client.
"""

from dataclasses import dataclass

import torch

from flbook.domains import Count, Natural, Positive
from flbook.lectures.training_strategies.federated_learning.federation import Federation, own_errors, pooled, strengths
from flbook.runs import Experiment, axis
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent


@dataclass(frozen=True)
class Setting(Federation):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    n: tuple[Count, ...] = axis([10, 20, 30, 40, 50, 65, 80, 100], "samples n of its own")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    step: Positive = 0.03  # step size over the number of samples
    steps: Count = 500

    def check(self) -> None:
        """Refuse more vectors than fit into d."""
        if self.d <= max(self.n) + 2:
            raise ValueError(f"d must be above samples and features together, {max(self.n) + 2}; got {self.d}")


experiment = Experiment(
    Setting, version=1, loops=("n",), chunk={"n": 1, "seed": 40}, stored="longer",
    gives={"test_error": ("test error", "fraction")},
    presets={
        "tiny": ("A blink", dict(n=(4, 8), seed=(0, 1), d=100, m=3, mu=3.0, steps=60, points=32)),
        "longer": ("The same samples on the seeds of the federations", dict(seed=tuple(range(160)))),
    },
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train clients with n samples to the end."""
    signals = strengths(1, 1.0)
    training = pooled(s, signals, s.n, s.seed, device)
    params = fit(training, GradientDescent(s.step * s.n), s.steps).params
    return {"test_error": own_errors(training, params, signals.to(training.observed), s.points)[..., 0]}


run = experiment.run
