r"""The IRM penalty between two environments, from scratch and after risk minimisation.

Claim (Chen et al. 2023): risk minimisation learns an invariant and a spurious feature, IRMv1 from scratch hardly learns
either. Here: a penalty of weight λ stops training at outputs of size 1/λ, and whatever is larger than a border it
completes, be it the spurious feature alone.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
import xarray as xr

from flbook import devices
from flbook.domains import Count, Natural, NonNegative, Positive, Probability
from flbook.lectures.training_strategies.out_of_distribution.environment_training import accuracy, features, training
from flbook.lectures.training_strategies.out_of_distribution.penalties import InvariantRisk, RiskVariance
from flbook.lectures.training_strategies.out_of_distribution.plane import Plane
from flbook.lectures.training_strategies.shared.environments import Environments
from flbook.runs import Experiment, Grid, axis, labelled
from flbook.shapes import Quantity
from flbook.training.fit import fit, log_steps
from flbook.training.losses import logistic
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent
from flbook.training.problem import Params

ROUTES = ("risk alone", "IRMv1 from scratch", "IRMv1 after risk", "IRMv1 after spurious", "VREx from scratch")
MOMENTS = 40  # recorded on each route


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    Times are those of the plane: steps times step size over 2m.
    """

    weight: tuple[Positive, ...] = axis([1000.0], "weight of the penalty λ")
    head_start: tuple[NonNegative, ...] = axis([2.0, 2.2, 2.3, 2.4, 2.5, 3.0], "head start of the risk, time")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    n: Count = 160  # samples of each environment
    d: Count = 20  # dimension of a patch
    alpha: Probability = 0.25  # how often the invariant feature contradicts the label
    beta_1: Probability = 0.1  # how often the spurious one does in the first environment
    beta_2: Probability = 0.2  # and in the second
    sigma_xi: NonNegative = 0.03  # noise level
    m: Count = 4  # filters a sign
    sigma_0: NonNegative = 0.001  # initial weights
    step: Positive = 0.05  # in time; smaller where the penalty would make it unstable
    time: Positive = 3.0  # under the penalty

    def check(self) -> None:
        """Refuse samples that cannot be counted out."""
        self.data()

    @property
    def betas(self) -> tuple[float, float]:
        """Of both environments."""
        return self.beta_1, self.beta_2

    def data(self) -> Environments:
        """The data model."""
        return Environments(self.n, self.d, self.alpha, self.betas, self.sigma_xi)

    def plane(self, weight: float = 0.0, penalty: str = "IRMv1") -> Plane:
        """The plane of two features."""
        return Plane(self.alpha, self.betas, penalty, weight)

    def pace(self, weight: float = 0.0) -> float:
        """The step in time at a weight of IRMv1's penalty, whose curvature at 0 is λ(A² + mean B²)/2."""
        return min(self.step, 5 / weight) if weight else self.step


experiment = Experiment(
    Setting, version=1, loops=("weight", "head_start"), chunk={"weight": 1}, stored="longer",
    gives={
        "signal": ("invariant feature a", "1"),
        "spurious": ("spurious feature b", "1"),
        "signal_before": ("invariant feature after the head start", "1"),
        "spurious_before": ("spurious feature after the head start", "1"),
        "accuracy": ("accuracy where β = 0.9", "fraction"),
    },
    presets={
        "tiny": ("A blink: what the tests run", dict(
            weight=(10.0, 40.0), head_start=(0.0, 2.0), seed=(0, 1), n=80, d=6, m=2, time=2.0)),
        "longer": ("Weights from doing nothing to stopping training, without and with a long head start", dict(
            weight=(1.0, 10.0, 30.0, 100.0, 300.0, 1000.0), head_start=(0.0, 20.0), time=20.0)),
    },
)


def train(setting: Setting, problem: Training, time: float, weight: float = 0.0, record: tuple[Quantity, ...] = ()):
    """Gradient descent for a time, at the pace of a weight of IRMv1's penalty."""
    pace = setting.pace(weight)
    steps = round(time / pace)
    return fit(problem, GradientDescent(2 * setting.m * pace), steps, record, ("seed",), at=log_steps(steps, MOMENTS))


def problem(setting: Setting, loss=logistic, start: Params | None = None, device: str = "cpu", **options) -> Training:
    """The training problems of all seeds, from the start of the setting or from given weights."""
    network = training(setting.data(), setting.seed, loss, setting.m, setting.sigma_0, **options)
    network = network.to(devices.device(device))
    if start is not None:
        with torch.no_grad():
            network.model.w.copy_(start["w"])
    return network


@experiment.shared()
def risk(s: Setting, device: str) -> Training:
    """The problems without a penalty."""
    return problem(s, device=device)


@experiment.shared("head_start")
def started(s: Setting, device: str) -> Params:
    """The weights after risk alone, at every weight of the penalty the same."""
    return train(s, risk(s, device), s.head_start).params


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Risk alone for the head start, then risk and penalty."""
    plain, start = risk(s, device), started(s, device)
    params = train(s, problem(s, InvariantRisk(s.weight), start, device), s.time, s.weight).params
    (a, b), (a_0, b_0) = (features(plain, p).unbind(-1) for p in (params, start))
    return {"signal": a, "spurious": b, "signal_before": a_0, "spurious_before": b_0,
            "accuracy": accuracy(s.data(), plain, params, 0.9)}


run = experiment.run


@experiment.also
def routes(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Both features on the way, by every route, at the first weight; dimensions (route, moment, seed)."""
    data, weight = setting.data(), setting.weight[0]
    penalty, long = InvariantRisk(weight), 20.0
    risk = problem(setting, device=device)
    record = tuple(Quantity(name, lambda p, k=k: features(risk, p)[..., k])
                   for k, name in enumerate(("signal", "spurious")))
    blind = problem(setting, device=device, without_invariant=True)
    learned = train(setting, risk, long, record=record)
    only = train(setting, blind, long).params
    slow = replace(setting, step=2.5 / weight)  # well below stability, so that its first steps can be looked at
    runs = {
        "risk alone": (learned, 0.0),
        "IRMv1 from scratch": (train(slow, problem(setting, penalty, None, device), 3.0, weight, record), weight),
        "IRMv1 after risk": (
            train(setting, problem(setting, penalty, learned.params, device), 5.0, weight, record), weight),
        "IRMv1 after spurious": (train(setting, problem(setting, penalty, only, device), 5.0, weight, record), weight),
        "VREx from scratch": (train(setting, problem(setting, RiskVariance(weight), None, device), long, 0.0, record),
                              0.0),
    }
    found = {name: [] for name in ("signal", "spurious", "time", "accuracy")}
    for name in ROUTES:
        (params, history), used = runs[name]
        place = np.linspace(0, history.sizes["step"] - 1, MOMENTS).round().astype(int)
        thin = history.isel(step=place)
        found["signal"].append(thin.signal.values)
        found["spurious"].append(thin.spurious.values)
        pace = (slow if name == "IRMv1 from scratch" else setting).pace(used)
        found["time"].append(thin.step.values * pace)
        found["accuracy"].append(accuracy(data, risk, params, 0.9).cpu().numpy())
    dims = ("route", "moment", "seed")
    return labelled({
        "signal": (dims, np.array(found["signal"]), "invariant feature a"),
        "spurious": (dims, np.array(found["spurious"]), "spurious feature b"),
        "time": (dims[:2], np.array(found["time"]), "time"),
        "accuracy": (("route", "seed"), np.array(found["accuracy"]), "accuracy at the end where β = 0.9", "fraction"),
    }, {"route": ("route", list(ROUTES), {"long_name": "route", "units": "1"}),
        "moment": ("moment", np.arange(MOMENTS), {"long_name": "moment", "units": "1"}),
        **setting.coordinates("seed")})


def stopped(setting: Setting, weight: float, device: str = "cpu", **options) -> xr.DataArray:
    """The invariant feature where IRMv1 stands still from scratch, in units of 1/(λB₀), B₀ = 1 - 2α; dims (seed)."""
    training = problem(setting, InvariantRisk(weight), None, device, **options)
    params = train(replace(setting, step=setting.pace(weight)), training, 5000 / weight, weight).params
    level = features(training, params)[..., 0] * weight * (1 - 2 * setting.alpha)
    return labelled({"level": (("seed",), level, "λ B₀ a")}, setting.coordinates("seed")).level


def least_head_start(results: xr.Dataset) -> xr.DataArray:
    """How far a was learned in the head start that the penalty just does not undo; dimension (seed), first weight.

    Between the last head start that is undone and the first that is not, the middle.
    """
    one = results.isel(weight=0)
    kept = one.signal > 0.5 * float(Plane().erm()[0])
    first = kept.argmax("head_start")
    before, after = (one.signal_before.isel(head_start=first - k) for k in (1, 0))
    return ((before + after) / 2).assign_attrs(long_name="invariant feature after the least head start", units="1")
