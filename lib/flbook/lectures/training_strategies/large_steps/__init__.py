r"""Steps too large to settle, on a strong and a weak feature.

Claim (Lu et al. 2024, Theorem 5 and Proposition 6, reported): where the output on strong data oscillates for ever, the
weak feature is learned; at small steps it stays where it starts. The step size is given as c_u = 4 η |u|²/m, for the
loss (f - y)² of the paper, in which the theorem's window 1/4 to 2/5 of η |u|²/m is 1 to 1.6.
"""

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr

from flbook import devices
from flbook.domains import Count, Natural, NonNegative, Positive
from flbook.lectures.training_strategies.large_steps.weak_feature import StrongWeakTraining
from flbook.lectures.training_strategies.shared.strong_weak import StrongWeak
from flbook.runs import Experiment, Grid, axis
from flbook.shapes import Quantity
from flbook.training.batches import Batches
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

POINTS = 80  # of a curve over training


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: the paper's data, all samples with both features and no noise. Its networks have 8 filters a sign; of
    20, some answer to either feature of either label in all but 4 of a million networks.
    """

    c: tuple[Positive, ...] = axis([0.8, 1.2, 1.3, 1.4, 1.5, 1.59], "step size $c_u$")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    steps: Count = 16_000
    n: Count = 16
    d: Count = 64
    weak_only: Natural = 0  # samples without the strong feature
    ratio: Positive = 0.01  # ϱ = |v|²/|u|²
    noise: NonNegative = 0.0  # length of a noise patch
    m: Count = 20  # filters a sign
    sigma_0: Positive = 0.01
    batch: Count = 1  # samples of a step
    order: Natural = 0  # seed of the shuffles

    def check(self) -> None:
        """Refuse data that cannot be, and batches that are larger than the data."""
        StrongWeak(self.n, self.d, self.weak_only, self.ratio, self.noise)
        if self.batch > self.n:
            raise ValueError(f"batch must be at most n = {self.n}; got {self.batch}")

    @property
    def data(self) -> StrongWeak:
        """The data model."""
        return StrongWeak(self.n, self.d, self.weak_only, self.ratio, self.noise)


experiment = Experiment(
    Setting, version=1, chunk={"c": 3},
    presets={
        "tiny": ("A blink", dict(c=(0.4, 1.1, 1.2), seed=(0, 1), steps=200, n=4, d=8, m=6, sigma_0=0.1)),
        "growing": ("The weak feature while it is small, from a start so small that it remains so", dict(
            c=(1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.59), sigma_0=1e-5, steps=3200)),
        "few": ("Networks so narrow that some labels start with no filter for the strong feature", dict(
            c=(0.8,), seed=tuple(range(1000)), n=2, d=8, m=4, steps=4000)),
        "paper": ("The paper's sizes: two of the sixteen samples without the strong feature, and noise", dict(
            weak_only=2, noise=0.2, m=8, steps=20_000)),
    },
)


def problem(setting: Setting, device: str = "cpu") -> StrongWeakTraining:
    """The training problems of all seeds, the axis of step sizes still to come."""
    return StrongWeakTraining.of(setting.data, setting.seed, setting.m, setting.sigma_0).to(devices.device(device))


def lr(setting: Setting, training: StrongWeakTraining) -> torch.Tensor:
    """Step sizes on half the squared error, twice the η of c_u = 4 η |u|²/m; shape (c, seed)."""
    return torch.tensor(setting.c).to(training.x)[:, None].expand(-1, len(setting.seed)) * setting.m / 2


def trained(setting: Setting, at: list[int], device: str = "cpu") -> xr.Dataset:
    """Outputs on either feature alone, training loss, with noise the test error; dimensions (step, c, seed)."""
    training = problem(setting, device).spread(len(setting.c))
    quantities = [Quantity("weak", lambda p: training.alone(p, "weak"), (), "output on the weak feature"),
                  Quantity("strong", lambda p: training.alone(p, "strong"), (), "output on the strong feature"),
                  Quantity("log_weak", lambda p: training.log_right(p, "weak"), (), "log of the weak output"),
                  Quantity("log_strong", lambda p: training.log_right(p, "strong"), (), "log of the strong output"),
                  Quantity("train_loss", training.train_loss, (), "training loss")]
    if setting.noise:
        error = Quantity("test_error", training.test_error, (), "test error on weak samples",
                         "fraction")
        quantities.append(error)
    stepped = training if setting.batch == setting.n else Batches(training, setting.batch, setting.order)
    history = fit(stepped, GradientDescent(lr(setting, training)), setting.steps, quantities, ("c", "seed"),
                  at=at).history
    return history.assign_coords(setting.coordinates("c", "seed"))


@experiment.cell
def cell(s: Setting, device: str) -> xr.Dataset:
    """The end of training, all step sizes side by side."""
    return trained(s, [s.steps], device).isel(step=0, drop=True)


run = experiment.run


@experiment.also
def course(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """What `trained` finds over training, at equal intervals."""
    return trained(setting, [round(k * setting.steps / POINTS) for k in range(POINTS + 1)], device)


def visits(setting: Setting, first: int = 1000, count: int = 30, device: str = "cpu") -> xr.DataArray:
    """Outputs on a strong sample of label +1 before each visit of its label, the first network; (visit, c)."""
    training = problem(setting, device).spread(len(setting.c))
    stepped = Batches(training, 1, setting.order)
    output = Quantity("strong", lambda p: training.predict(p)[..., 0, 0])
    at = [step for step in range(first, first + 3 * count) if stepped.places(step) % 2 == 0][:count]
    outputs = fit(stepped, GradientDescent(lr(setting, training)), at[-1], [output], ("c",), at=at).history.strong
    outputs = outputs.rename(step="visit").assign_coords(setting.coordinates("c"))
    numbered = ("visit", np.arange(count), {"long_name": f"visit, from step {first} on", "units": "1"})
    return outputs.assign_coords(visit=numbered).assign_attrs(long_name="output", units="1")


def growth(setting: Setting, device: str = "cpu") -> xr.DataArray:
    """How much the log of the weak output grows in a visit, a step on a sample of its label; dimensions (c, seed).

    From a quarter of training on, when the oscillation has set in; every second step is a visit.
    """
    logs = course(setting, device).log_weak
    first = POINTS // 4
    rate = (logs[-1] - logs[first]) / float(logs.step[-1] - logs.step[first]) * 2
    return rate.assign_attrs(long_name="growth of log weak output in a visit", units="1")


def without_a_filter(setting: Setting, device: str = "cpu") -> xr.DataArray:
    """Whether a label starts with no filter that answers to the strong feature, but one that does to the weak; (seed).

    The other feature is then the only one that the label can be fitted by, at any step size.
    """
    training = problem(setting, device)
    strong, weak = ((training.log_right_of_each(training.start(), which) > -torch.inf) for which in ("strong", "weak"))
    return xr.DataArray((~strong & weak).any(-1).cpu(), setting.coordinates("seed"), ("seed",))
