r"""Sharpness-aware minimisation keeps a ReLU network from memorising noise, where gradient descent memorises.

Claim (Chen et al. 2023): trained by SAM first and then by SGD, a two-layer ReLU CNN reaches a small test error as soon
as :math:`\|\mu\| = \tilde\Omega(1)`, in any dimension; SGD alone needs :math:`n\|\mu\|^4 \ge C\sigma_\xi^4 d` (Kou et
al. 2023, Theorem 4.2).

The radius of SAM is :math:`m\sqrt n/(2\sigma_\xi\sqrt d)`, that of Chen et al. for full batches and two patches, times
an axis of the sweep.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
import xarray as xr

from flbook import devices, measures
from flbook.data.signal_noise import alternating_labels, noise_preactivations
from flbook.domains import Count, Natural, NonNegative, Positive
from flbook.dynamics.gram import GramTraining
from flbook.dynamics.wishart import check_room, draw_gram
from flbook.lectures.training_strategies.sharpness_aware.switching import memorised, perturbed
from flbook.rivals import Rival, rival
from flbook.runs import Experiment, Grid, axis, lattice
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent, SharpnessAware, Then
from flbook.training.problem import Problem, Rule

RuleName = Literal["GD", "SAM", "SAM then GD", "GD then SAM"]


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: both rules around the border of gradient descent. The step size stays below that of a step so long that
    one of them memorises more than the perturbation can hide.
    """

    model: tuple[Rival, ...] = axis(["network"], "model")
    rule: tuple[RuleName, ...] = axis(["GD", "SAM then GD"], "rule")
    radius: tuple[NonNegative, ...] = axis([1.0], "SAM's radius τ", "m√n/(2σ_ξ√d)")
    d: tuple[Count, ...] = axis([500, 4000, 32000], "patch dimension d")
    mu: tuple[NonNegative, ...] = axis(lattice(1.4, 6.5, 5), "signal strength |μ|", "σ_ξ")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    n: Count = 20  # samples
    m: Count = 10  # filters a sign
    sigma_xi: Positive = 1.0  # noise level
    sigma_0: NonNegative = 1e-5  # initial weights, far below sqrt(n)/(sigma_xi d)
    orthogonal: bool = False  # is the noise orthogonal to the signal?
    lr: Positive = 0.01  # step size
    switch: Natural = 1000  # steps of the first rule, if there are two
    steps: Natural = 2000
    points: Count = 512  # fresh noise patches to measure the test error on, each under both labels

    def check(self) -> None:
        """Refuse dimensions that are too small, and signals of length 0 that noise cannot be orthogonal to."""
        check_room(self.n, 2 * self.m, min(self.d))
        if self.orthogonal and min(self.mu) == 0:
            raise ValueError("mu must be above 0 if the noise is orthogonal to the signal; got 0")


experiment = Experiment(
    Setting, version=1, loops=("model", "rule", "radius"), left=("d", "seed", "mu"), chunk={"d": 1}, stored="longer",
    gives={
        "test_error": ("test error", "fraction"),
        "train_loss": ("training loss", "nats"),
        "memorised": ("noise memorised by own-label filters", "1"),
    },
    presets={
        "tiny": ("Every rule and the rivals in a blink", dict(
            model=("network", "linear", "lazy"), rule=("GD", "SAM", "SAM then GD", "GD then SAM"), radius=(0.5, 1.0),
            d=(100, 400), mu=(1.0, 4.0), seed=(0, 1), switch=5, steps=15, points=64)),
        "low": ("Around the border of sharpness-aware minimisation", dict(
            rule=("SAM then GD",), mu=lattice(0.7, 1.7, 5))),
        "radii": ("Sharpness-aware minimisation at many radii, for a few small steps", dict(
            rule=("SAM",), radius=lattice(0.004, 4.0, 22), d=(4000, 16000, 64000), mu=(2.0,), seed=tuple(range(24)),
            lr=0.005, steps=50)),
        "watched": ("One cell that gradient descent gets wrong, until the loss is below 0.1 under either rule", dict(
            rule=("GD", "SAM"), d=(16000,), mu=(3.0,), seed=tuple(range(16)), lr=0.02, steps=1300)),
        "longer": ("The pair of heat maps", dict(
            d=(500, 1000, 2000, 4000, 8000, 16000, 32000), mu=lattice(0.5, 8.0, 13))),
    },
)


def problem(setting: Setting, device: str = "cpu") -> GramTraining:
    """The training problems of all (d, seed, mu), in that order of ensemble axes; no d-dimensional array is kept."""
    gram = draw_gram(setting.n, 2 * setting.m, setting.d, sigma_0=setting.sigma_0, sigma_xi=setting.sigma_xi,
                     orthogonal=setting.orthogonal, seed=setting.seed)
    law = partial(noise_preactivations, sigma_xi=setting.sigma_xi, orthogonal=setting.orthogonal)
    signals, y = torch.tensor(setting.mu, dtype=torch.float64), alternating_labels(setting.n)
    training = GramTraining(gram.with_signals(signals), y, y, scale=1 / setting.m, law=law)
    return training.to(devices.device(device), torch.float32)


def theorem_radius(setting: Setting) -> torch.Tensor:
    """The radius of Chen et al. for full batches and two patches, one a dimension, shape (d, 1, 1)."""
    d = torch.tensor(setting.d, dtype=torch.float64)[:, None, None]
    return setting.m * math.sqrt(setting.n) / (2 * setting.sigma_xi * d.sqrt())


def rule(setting: Setting, name: RuleName, radius: float, like: torch.Tensor) -> Rule:
    """A rule by its name; `radius` in units of the theorem's."""
    plain = GradientDescent(setting.lr)
    aware = SharpnessAware(setting.lr, radius * theorem_radius(setting).to(like))
    return {"GD": plain, "SAM": aware, "SAM then GD": Then(aware, setting.switch, plain),
            "GD then SAM": Then(plain, setting.switch, aware)}[name]


@experiment.shared()
def drawn(s: Setting, device: str) -> GramTraining:
    """The problems of the network, which every rule and every rival trains on."""
    return problem(s, device)


@experiment.shared("model")
def chosen(s: Setting, device: str) -> Problem:
    """The network, or its rival."""
    return rival(drawn(s, device), s.model)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train one model by one rule, at one radius."""
    network, training = drawn(s, device), chosen(s, device)
    params = fit(training, rule(s, s.rule, s.radius, network.gram.w_w), s.steps).params
    return {"test_error": measures.test_error(training, params, s.points), "train_loss": training.train_loss(params),
            "memorised": memorised(network, params)}


run = experiment.run


@experiment.also
def paths(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Test error, sharpness, signal and noise over training, at the first radius; dimensions (rule, step, ...)."""
    training = problem(setting, device).to(torch.float64)
    radius = setting.radius[0] * theorem_radius(setting).to(training.gram.w_w)

    def test_error(params):
        return measures.test_error(training, params, setting.points)

    def sharpness(params):
        return measures.gauss_newton_sharpness(training, params)

    def rise(params):
        return training.train_loss(perturbed(training, params, radius)) - training.train_loss(params)

    def gamma(params):
        return training.signal_learned(params).mean((-2, -1))

    quantities = [
        Quantity("test_error", test_error, (), "test error", "fraction"),
        Quantity("train_loss", training.train_loss, (), "training loss", "nats"),
        Quantity("sharpness", sharpness, (), "sharpness: largest Hessian eigenvalue"),
        Quantity("rise", rise, (), "rise of the training loss at SAM's perturbed weights", "nats"),
        Quantity("gamma", gamma, (), "signal learned γ"),
        Quantity("rho", partial(memorised, training), (), "noise memorised ρ"),
    ]
    axes = ("d", "seed", "mu")
    runs = [fit(training, rule(setting, name, setting.radius[0], training.gram.w_w), setting.steps, quantities, axes,
                at=recorded(setting.steps)).history for name in setting.rule]
    return xr.concat(runs, "rule", join="exact").assign_coords(setting.coordinates("rule", *axes))


def recorded(steps: int) -> list[int]:
    """The first twenty steps, then some at equal ratios."""
    later = torch.logspace(math.log10(20), math.log10(max(steps, 20)), 40).round().int().tolist()
    return sorted({step for step in (*range(20), *later, steps) if step <= steps})


def at_loss(path: xr.Dataset, name: str, loss: float) -> xr.DataArray:
    """A quantity of `paths` where the training loss first falls to `loss`, between two records by their logarithms.

    Dimensions (rule, d, seed, mu); NaN where it never falls so far.
    """
    below = (path.train_loss <= loss).transpose("step", ...)
    first = below.argmax("step")
    before = (first - 1).clip(min=0)
    low, high = (path.isel(step=place).drop_vars("step") for place in (before, first))
    share = (math.log(loss) - xr.ufuncs.log(low.train_loss)) / xr.ufuncs.log(high.train_loss / low.train_loss)
    value = low[name] ** (1 - share) * high[name] ** share
    return value.where(below.any("step") & (first > 0)).assign_attrs(path[name].attrs)


@experiment.kept
def kept(dataset: xr.Dataset) -> xr.Dataset:
    """Of the pair of heat maps the test errors."""
    return dataset[["test_error"]].squeeze(("model", "radius"), drop=True)
