r"""Federated averaging over clients whose signals agree more or less, with one local step between two averages.

Claim (Huang et al. 2024): federated averaging raises the signal-to-noise ratio and ends at a test error near zero,
where local training without communication has a large constant one. This page's law: M clients with n
samples each, whose signals agree to chi on average, are worth M n chi^(3/2) samples of a client that trains alone.
"""

from dataclasses import dataclass

import torch
import xarray as xr

from flbook.domains import Count, Natural, Positive, Probability
from flbook.dynamics.patches import PatchTraining
from flbook.lectures.training_strategies.federated_learning.federation import Federation, own_errors, pooled, strengths
from flbook.runs import Experiment, axis
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent


@dataclass(frozen=True)
class Setting(Federation):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    clients: tuple[Count, ...] = axis([10], "clients M")
    agreement: tuple[Probability, ...] = axis([0.0, 0.5, 1.0], "agreement χ of the signals")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    samples: Count = 100  # of all clients together
    step: Positive = 0.03  # step size over the number of samples, so that each sample pulls equally at any N
    steps: Count = 500

    def check(self) -> None:
        """Refuse clients that cannot share the samples evenly, and features and noise that do not fit into d."""
        for k in self.clients:
            if self.samples % k:
                raise ValueError(f"clients must divide the {self.samples} samples evenly; got {k}")
        if self.d <= self.samples + max(self.clients) + 1:
            raise ValueError(f"d must be above samples and features together, {self.samples + max(self.clients) + 1}; "
                             f"got {self.d}")


experiment = Experiment(
    Setting, version=1, loops=("clients", "agreement"), chunk={"clients": 1, "agreement": 1, "seed": 40},
    stored="longer",
    gives={"test_error": ("test error", "fraction"), "train_loss": ("training loss", "nats")},
    presets={
        "tiny": ("A blink", dict(
            clients=(2, 4), agreement=(0.0, 1.0), seed=(0, 1), samples=8, d=100, m=3, mu=3.0, steps=60, points=32)),
        "longer": ("Three federations of one hundred samples, on many seeds: an error is 0 or 1/2 in most of them",
                   dict(clients=(5, 10, 20), agreement=(0.0, 0.2, 0.35, 0.5, 0.65, 0.8, 1.0), seed=tuple(range(160)))),
    },
)


def problem(setting: Setting, clients: int, agreement: float, device: str = "cpu") -> PatchTraining:
    """The pooled problems of all seeds."""
    signals = strengths(clients, agreement)
    return pooled(setting, signals, setting.samples // clients, setting.seed, device)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train the federations of one size and agreement to the end."""
    training = problem(s, s.clients, s.agreement, device)
    params = fit(training, GradientDescent(s.step * s.samples), s.steps).params
    errors = own_errors(training, params, strengths(s.clients, s.agreement).to(training.observed), s.points)
    return {"test_error": errors.mean(-1), "train_loss": training.train_loss(params)}


run = experiment.run


@experiment.also
def race(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Signal, noise, loss and test error step by step, of the first cell; dimensions (step, seed)."""
    k, rho = setting.clients[0], setting.agreement[0]
    training, signals = problem(setting, k, rho, device), strengths(k, rho)
    common = (signals.mean(0) / signals.mean(0).norm()).to(training.observed)

    def gamma(params):
        return (training.overlaps(params) @ common * training.a.sign()).amax(-1)

    def noise(params):
        seen = training.preactivations(params)[..., training.features :]
        own = (training.a[:, None] * training.observed > 0).to(seen.dtype)
        return (seen * own).amax(-2).mean(-1)

    def test_error(params):
        return own_errors(training, params, signals.to(training.observed), setting.points).mean(-1)

    quantities = [
        Quantity("gamma", gamma, (), "largest response to the signal"),
        Quantity("rho", noise, (), "largest response to a noise patch, mean over samples"),
        Quantity("train_loss", training.train_loss, (), "training loss", "nats"),
        Quantity("test_error", test_error, (), "test error", "fraction"),
    ]
    rule = GradientDescent(setting.step * setting.samples)
    return fit(training, rule, setting.steps, quantities, ("seed",)).history.assign_coords(setting.coordinates("seed"))
