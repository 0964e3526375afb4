r"""Momentum where samples share a feature but differ in their margin.

Claim (Jelassi and Li 2022): gradient descent memorises the samples with a small margin, momentum learns the feature in
them too. Here the variable is the memory in flow time, :math:`\tau = \eta/(1 - \gamma)`.
"""

from dataclasses import dataclass

import torch
import xarray as xr

from flbook import devices, measures
from flbook.data.margins import Margins
from flbook.domains import Count, Natural, NonNegative, Positive
from flbook.dynamics.patches import PatchTraining
from flbook.lectures.training_strategies.momentum.margin_training import (
    coasting_to,
    feature_coefficient,
    on_fresh,
    training,
)
from flbook.models.activations import cube
from flbook.models.cnn import TwoLayerCNN
from flbook.runs import Grid, axis, cached, labelled, sweeps
from flbook.shapes import Quantity
from flbook.training.fit import fit, log_steps
from flbook.training.losses import logistic
from flbook.training.optimizers import Momentum

VERSION = 1


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    small: tuple[Positive, ...] = axis([0.1], "small margin β")
    lr: tuple[Positive, ...] = axis([1.0, 2.0, 4.0], "step size η")
    memory: tuple[Positive, ...] = axis([5.0, 10.0, 20.0, 50.0], "memory in flow time τ")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    n: Count = 60  # samples
    d: Count = 200  # dimension of a patch
    share: NonNegative = 0.2  # q, of samples with the small margin
    sigma_xi: Positive = 0.1  # noise level
    m: Count = 5  # filters a sign
    sigma_0: NonNegative = 0.02  # initial weights
    time: Positive = 1000.0  # flow time, steps times step size
    points: Count = 1024  # fresh noise patches

    @classmethod
    def tiny(cls) -> "Setting":
        """A blink: what the tests run."""
        return cls(small=(0.1, 0.2), lr=(1.0, 2.0), memory=(2.0, 20.0), seed=(0, 1), n=10, d=40, time=100.0, points=64)

    @classmethod
    def paper(cls) -> "Setting":
        """Longer memories against smaller margins, more data sets."""
        return cls(small=(0.05, 0.06, 0.08, 0.1, 0.12, 0.15), memory=(5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0),
                   seed=tuple(range(20)), time=4000.0)

    def check(self) -> None:
        """Refuse memories that no rule has."""
        if min(self.memory) < max(self.lr):
            raise ValueError(f"memory must be at least the step size: gradient descent of step {max(self.lr):g} has "
                             f"just that, and no rule has less; got {min(self.memory):g}")

    def data(self, small: float) -> Margins:
        """The data model at one small margin."""
        return Margins(self.n, self.d, small, self.share, self.sigma_xi)


def problem(setting: Setting, small: float, device: str = "cpu") -> PatchTraining:
    """The training problems of all seeds."""
    data, seeds = setting.data(small), setting.seed
    cnn = TwoLayerCNN(setting.d, setting.m, setting.sigma_0, cube, scale=1.0, seed=seeds, dtype=torch.float64)
    return training(data, data.draw(seeds), cnn).to(devices.device(device))


def rule(lr: float, memory: float) -> Momentum:
    """Averaged momentum of this memory in flow time; gradient descent where the memory is the step."""
    return Momentum(lr, 1 - lr / memory, averaged=True)


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Train every cell for the same flow time; dimensions (small, lr, memory, seed)."""
    cells = []
    for small in setting.small:
        network = problem(setting, small, device)
        few = setting.data(small).margins() < 1
        for lr in setting.lr:
            for memory in setting.memory:
                params = fit(network, rule(lr, memory), max(1, round(setting.time / lr))).params
                fresh = on_fresh(network, params, small, setting.points)
                large = on_fresh(network, params, 1.0, setting.points)
                margins = (network.predict(params) * network.observed)[..., few].mean(-1)
                cells.append([fresh.error, large.error, fresh.loss, fresh.feature / margins,
                              measures.train_error(network, params), network.train_loss(params)])
    dims = ("small", "lr", "memory", "seed")
    error, large, loss, part, missed, train = (torch.stack(column) for column in zip(*cells, strict=True))
    return labelled({
        "test_error": (dims, error, "test error, small margins", "fraction"),
        "test_error_large": (dims, large, "test error, large margins", "fraction"),
        "test_loss": (dims, loss, "test loss, small margins", "nats"),
        "feature_part": (dims, part, "part of the small-margin samples' training margin that is the feature"),
        "train_error": (dims, missed, "training error", "fraction"),
        "train_loss": (dims, train, "training loss", "nats"),
    }, setting.coordinates())


run = sweeps(measure, chunk={"small": 1})


@cached
def race(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Feature, memorised noise and test error over flow time, at the first step size; dims (memory, step, seed)."""
    small, lr = setting.small[0], setting.lr[0]
    network, few = problem(setting, small, device), setting.data(small).margins() < 1

    def fitted(params):
        return logistic(network.outputs(params), network.observed)[..., few].mean(-1)

    def learned(part):
        return lambda params: getattr(on_fresh(network, params, small, setting.points), part)

    quantities = [
        Quantity("feature", lambda params: feature_coefficient(network, params), (), "feature coefficient |a|"),
        Quantity("train_loss", fitted, (), "training loss, small margins", "nats"),
        Quantity("test_loss", learned("loss"), (), "test loss, small margins", "nats"),
        Quantity("test_error", learned("error"), (), "test error, small margins", "fraction"),
    ]
    steps = round(setting.time / lr)
    runs = [fit(network, rule(lr, memory), steps, quantities, ("seed",), at=log_steps(steps, 40)).history
            for memory in setting.memory]
    joined = xr.concat(runs, "memory").assign_coords(setting.coordinates("memory", "seed"))
    time = joined.step * lr
    return joined.assign_coords(step=time.assign_attrs(long_name="flow time ηt")).rename(step="flow")


@cached
def coasts(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Where the feature would come to rest when the large margins are fitted, to a loss of 0.001; dims (memory, seed).

    At the first margin and step size; NaN where that does not happen in the time.
    """
    network, lr = problem(setting, setting.small[0], device), setting.lr[0]
    many, found = setting.data(setting.small[0]).margins() == 1, []
    for memory in setting.memory:
        one = rule(lr, memory)
        params = network.start()
        state, end = one.start(params), torch.full_like(network.train_loss(params), torch.nan)
        for _ in range(round(setting.time / lr)):
            params, state = one.step(network, params, state)
            done = logistic(network.outputs(params), network.observed)[..., many].mean(-1) < 1e-3
            end = torch.where(done & end.isnan(), coasting_to(network, params, state, memory), end)
            if not bool(end.isnan().any()):
                break
        found.append(end)
    dims = ("memory", "seed")
    return labelled({"coast": (dims, torch.stack(found), "feature coefficient, at rest")}, setting.coordinates(*dims))
