"""Local steps between two averages: federated averaging of clients with one common signal, at every H.

H = 1 is gradient descent on the pooled samples; H equal to all steps averages once, at the end.
"""

from dataclasses import dataclass

import torch

from flbook.domains import Count, Natural, Positive
from flbook.dynamics.patches import PatchTraining
from flbook.lectures.training_strategies.federated_learning.clients import FederatedAveraging
from flbook.lectures.training_strategies.federated_learning.federation import (
    Federation,
    apart,
    own_errors,
    pooled,
    strengths,
)
from flbook.runs import Experiment, axis
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent


@dataclass(frozen=True)
class Setting(Federation):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    every: tuple[Count, ...] = axis([1], "local steps H between averages")
    seed: tuple[Natural, ...] = axis(range(2), "seed")
    clients: Count = 10
    n: Count = 10  # samples of a client
    lr: Positive = 1.0
    steps: Count = 1000

    def check(self) -> None:
        """Refuse a last round that is cut short, and more vectors than fit into d."""
        for every in self.every:
            if self.steps % every:
                raise ValueError(f"every must divide the {self.steps} steps, so that the last ends in an average; got "
                                 f"{every}")
        vectors = self.clients * self.n + self.clients + 1
        if self.d <= vectors:
            raise ValueError(f"d must be above samples and features together, {vectors}; got {self.d}")


experiment = Experiment(
    Setting, version=1, loops=("every",), chunk={"every": 1}, stored="longer",
    gives={"test_error": ("test error", "fraction")},
    presets={
        "tiny": ("A blink", dict(every=(1, 20), clients=2, n=4, d=100, m=3, mu=3.0, lr=0.3, steps=40, points=32)),
        "longer": ("From an average after every step to a single one", dict(
            every=(1, 2, 5, 10, 20, 50, 100, 1000), seed=tuple(range(10)))),
    },
)


@experiment.shared()
def apart_by_client(s: Setting, device: str) -> PatchTraining:
    """The training problems, whatever the rounds."""
    return apart(pooled(s, strengths(1, 1.0), s.clients * s.n, s.seed, device), s.clients)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train with rounds of one length to the end."""
    training = apart_by_client(s, device)
    params = fit(training, FederatedAveraging(GradientDescent(s.lr), s.every), s.steps).params
    return {"test_error": own_errors(training, params, strengths(1, 1.0).to(training.observed), s.points)[:, 0, 0]}


run = experiment.run
