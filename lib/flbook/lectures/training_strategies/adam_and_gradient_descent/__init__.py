r"""Adam and gradient descent on sparse noise: the rule decides what a network learns.

Claim (Zou et al. 2023, Theorem 4.1): both rules fit every label; gradient descent errs on at most 1/poly(n) of fresh
samples, Adam on at least one half.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import xarray as xr
from torch import Tensor

from flbook import devices, measures
from flbook.domains import Count, Fraction, Natural, NonNegative, Positive
from flbook.lectures.training_strategies.adam_and_gradient_descent.sparse_training import SparseTraining, network
from flbook.lectures.training_strategies.shared.sparse_noise import SparseNoise
from flbook.rivals import Rival, rival
from flbook.runs import Experiment, Grid, axis
from flbook.shapes import Quantity
from flbook.training.fit import fit, log_steps
from flbook.training.optimizers import Adam, GradientDescent, SignDescent, WeightDecay
from flbook.training.problem import Params, Problem, Rule

RuleName = Literal["gradient descent", "Adam", "sign descent"]
# Step sizes of gradient descent, and of the two others, in units of the network's: what a rival needs to fit in time.
SIZES = {"network": (1.0, 1.0), "linear": (1.0, 1.0), "lazy": (4e5, 2e3), "frozen": (0.2, 20.0)}


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep. In the book: the paper's numbers."""

    model: tuple[Rival, ...] = axis(["network"], "model")
    rule: tuple[RuleName, ...] = axis(["gradient descent", "Adam"], "rule")
    alpha: tuple[Fraction, ...] = axis([0.2], "feature noise α")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    n: Count = 200  # samples
    d: Count = 1000  # dimension of a patch
    s: Count = 100  # coordinates of a sample's noise
    sigma_xi: Positive = 0.1  # standard deviation of one
    m: Count = 20  # filters a sign
    sigma_0: NonNegative = 0.01  # initial weights
    lr: Positive = 1.0  # step size of gradient descent
    rate: Positive = 1e-3  # step size of Adam and of sign descent
    decay: NonNegative = 1e-5  # of Adam's weights, coupled
    steps: Natural = 300  # of gradient descent
    adam_steps: Natural = 600  # of Adam and of sign descent
    points: Count = 400  # fresh samples of a data set

    def check(self) -> None:
        """Refuse noise that does not fit into a patch."""
        self.data(self.alpha[0])

    def data(self, alpha: float) -> SparseNoise:
        """The data model."""
        return SparseNoise(self.n, self.d, self.s, self.sigma_xi, alpha)


ALL = dict(model=("network", "linear", "lazy", "frozen"), rule=("gradient descent", "Adam", "sign descent"))
experiment = Experiment(
    Setting, version=1, loops=("model", "rule", "alpha"), chunk={"model": 1}, stored="longer",
    gives={
        "test_error": ("test error", "fraction"),
        "train_error": ("training error", "fraction"),
        "train_loss": ("training loss", "nats"),
    },
    presets={
        "tiny": ("Every rule and model in a blink", dict(
            **ALL, alpha=(0.0, 0.3), seed=(0, 1), n=10, d=60, s=6, m=3, steps=20, adam_steps=20, points=40)),
        "longer": ("Every rule and model, with feature noise and without, at half the step sizes", dict(
            **ALL, alpha=(0.0, 0.2), lr=0.5, rate=5e-4, steps=600, adam_steps=1500, points=500)),
    },
)


def problem(setting: Setting, alpha: float, device: str = "cpu") -> SparseTraining:
    """The training problems of all seeds."""
    data = setting.data(alpha)
    cnn = network(data, setting.m, setting.sigma_0, setting.seed)
    sample = data.draw(setting.seed)
    return SparseTraining(cnn, sample.x, sample.y).to(devices.device(device))


def rule(setting: Setting, name: RuleName, model: Rival = "network") -> tuple[Rule, int]:
    """A rule by its name, and its steps."""
    plain, adaptive = SIZES[model]
    if name == "gradient descent":
        return GradientDescent(setting.lr * plain), setting.steps
    if name == "sign descent":
        return SignDescent(setting.rate * adaptive), setting.adam_steps
    return WeightDecay(Adam(setting.rate * adaptive), setting.decay, coupled=True), setting.adam_steps


class FreshSamples:
    """Fresh samples of each seed's data, drawn once, in float32."""

    def __init__(self, data: SparseNoise, points: int, seed: tuple[int, ...], device: str = "cpu"):
        drawn = [data.draw_test(points, one) for one in seed]  # one by one: float64 of all is large
        where = devices.device(device)
        self.x, self.y = (torch.stack([getattr(one, name).float() for one in drawn]).to(where) for name in "xy")

    def error(self, trained: Problem, params: Params) -> Tensor:
        """Share of them that a network misses, shape ``*E``."""
        return measures.test_error_on(trained, params, self.x, self.y)


@experiment.shared("alpha")
def drawn(s: Setting, device: str) -> tuple[SparseTraining, FreshSamples]:
    """The problems that every model and rule trains, and what they are tested on."""
    return problem(s, s.alpha, device), FreshSamples(s.data(s.alpha), s.points, s.seed, device)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Train one model by one rule to the end."""
    whole, fresh = drawn(s, device)
    chosen = rival(whole, s.model)
    params = fit(chosen, *rule(s, s.rule, s.model)).params
    return {"test_error": fresh.error(chosen, params), "train_error": measures.train_error(chosen, params),
            "train_loss": chosen.train_loss(params)}


run = experiment.run


@experiment.also
def race(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Errors, loss, feature and noise over training, at the first alpha; dimensions (step, rule, seed).

    A rule that stops earlier keeps its last values.
    """
    alpha, runs = setting.alpha[0], []
    last = max(rule(setting, name)[1] for name in setting.rule)
    trained = problem(setting, alpha, device)
    fresh = FreshSamples(setting.data(alpha), setting.points, setting.seed, device)
    quantities = [
        Quantity("train_loss", trained.train_loss, (), "training loss", "nats"),
        Quantity("train_error", lambda p: measures.train_error(trained, p), (), "training error", "fraction"),
        Quantity("test_error", lambda p: fresh.error(trained, p), (), "test error", "fraction"),
        Quantity("feature", lambda p: trained.feature(p).amin(-1), (), "response to the feature"),
        Quantity("noise", lambda p: trained.noise(p).mean(-1), (), "response to own noise"),
        Quantity("most_noise", lambda p: trained.noise(p).amax(-1), (), "largest response to own noise"),
    ]
    for name in setting.rule:
        moved, steps = rule(setting, name)
        history = fit(trained, moved, steps, quantities, ("seed",), at=[*log_steps(last), steps]).history
        runs.append(history.reindex(step=log_steps(last), method="ffill"))
    joined = xr.concat(runs, "rule", join="exact").transpose("step", "rule", "seed")
    return joined.assign_coords(setting.coordinates("rule", "seed"))
