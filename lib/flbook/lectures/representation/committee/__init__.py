r"""A committee of two taught by a committee of two: the plateau, the equations, and SGD at finite dimension.

Claims: the order parameters follow the equations of Saad and Solla (1995) up to :math:`d^{-1/2}` (Goldt et al. 2019);
students that start alike stay on a plateau, a little better than the best linear model, whose length grows with the
logarithm of how alike they are; with label noise the final risk is proportional to :math:`\eta\sigma^2`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import xarray as xr
from jaxtyping import Float
from numpy import ndarray
from scipy.optimize import fsolve

from flbook.domains import Natural, NonNegative, Positive, Range
from flbook.dynamics.equations import State, integrate
from flbook.lectures.representation.committee.order_parameters import Committee, symmetric
from flbook.rng import numpy_generator
from flbook.runs import Experiment, Grid, axis, labelled

LEVEL = 0.005  # below this risk a run has left its plateau
_BLOCK = 1024
_VARIANCE = 0.2  # of a random start's weights


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: up to the plateau, where the equations have to hold."""

    d: tuple[Annotated[int, Range(5)], ...] = axis([50, 100, 200, 400], "dimension d")
    seed: tuple[Natural, ...] = axis(range(16), "seed")
    alpha: tuple[NonNegative, ...] = axis(map(float, range(21)), "samples over dimension α = n/d")
    lr: Positive = 0.5  # eta
    noise: NonNegative = 0.0  # sigma of the label noise
    start: Literal["given", "random"] = "given"  # two students that differ, or weights of variance 0.2


experiment = Experiment(
    Setting, version=1, loops=("d",), left=("seed", "alpha"), chunk={"d": 1},
    presets={
        "tiny": ("Three runs at two small dimensions", dict(d=(20, 40), seed=(0, 1, 2), alpha=(0.0, 1.0, 4.0))),
        "long": ("Over the plateau and beyond, from random starts", dict(
            d=(400,), seed=tuple(range(10)), alpha=tuple(map(float, range(0, 221, 2))), start="random")),
    },
    devices=("cpu",),  # seven numbers a run, one small step after the other
)


@experiment.cell
def cell(s: Setting, device: str) -> xr.Dataset:
    """Q, R and the risk of SGD at one dimension, over (seed, alpha)."""
    return _dataset(simulate(s, s.d), ("seed", "alpha"), s)


run = experiment.run


def beginning() -> State:
    """The start of every run, unless it is random: two students that differ."""
    return {"Q": np.array([[0.25, 0.02], [0.02, 0.20]]), "R": np.diag([0.05, 0.04])}


def rule(setting: Setting) -> Committee:
    """Student and teacher of two units each."""
    return Committee(2, 2, setting.lr, setting.noise)


@experiment.also
def equation(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """The solution of the equations from the given start: Q, R and the risk over alpha, which starts at 0."""
    path = integrate(rule(setting).rate, beginning(), np.asarray(setting.alpha), dt=0.2)
    return _dataset({name: np.moveaxis(value, -1, 0) for name, value in path.items()}, ("alpha",), setting)


ALIKE = (0.2, 0.02, 0.05)  # squared length, mutual overlap and overlap with the teachers of students that are alike


def nearly_alike(lr: float, asymmetry: float, alpha: Float[ndarray, " t"], dt: float = 1.0) -> xr.Dataset:
    """Q, R and the risk of students that are alike but for `asymmetry`, by the equations; alpha starts at 0."""
    path = integrate(Committee(2, 2, lr).rate, symmetric(*ALIKE, asymmetry), alpha, dt)
    setting = Setting(alpha=tuple(float(a) for a in alpha), lr=lr)
    return _dataset({name: np.moveaxis(value, -1, 0) for name, value in path.items()}, ("alpha",), setting)


def plateau_length(lr: float, asymmetry: float, level: float = LEVEL, longest: float = 700.0, dt: float = 1.0) -> float:
    """alpha at which the risk of nearly alike students falls below `level`, by the equations."""
    alpha = np.arange(0.0, longest + 1, 2.0)
    risk = nearly_alike(lr, asymmetry, alpha, dt).risk.to_numpy()
    found = crossing(alpha, risk[None], level)[0]
    if np.isnan(found):
        raise ValueError(f"the risk is not below level = {level} by longest = {longest}; it ends at {risk[-1]:.4g}")
    return float(found)


def crossing(alpha: Float[ndarray, " t"], risk: Float[ndarray, "S t"], level: float) -> Float[ndarray, " S"]:
    """Where each risk first falls below a level, on straight lines of its logarithm; NaN where it does not."""
    below = (risk[:, :-1] >= level) & (risk[:, 1:] < level)
    k, each = below.argmax(1), np.arange(len(risk))
    left, right = np.log(risk[each, k]), np.log(risk[each, k + 1])
    part = (left - np.log(level)) / np.where(below.any(1), left - right, np.nan)
    return alpha[k] + part * (alpha[k + 1] - alpha[k])


def saddle(lr: float) -> State:
    """The plateau itself: where the equations stand still for two students that are alike but for their own noise.

    Solved for, since students approach it slowly, at a rate of 0.004 for lr = 1/2; larger steps from smaller ones.
    Students that are one and the same vector stand still elsewhere, but noise drives them apart.
    """
    start = min(lr, 0.25)  # squared length, mutual overlap and overlap with the teachers, to first order in the step
    at = np.array([1 / 3, 1 / 3, 6**-0.5]) + start * np.array([0.056, -0.013, 0.0095])
    for step in np.linspace(start, lr, int(np.ceil((lr - start) / 0.25)) + 1):
        at, *_ = fsolve(_alike_rates, at, args=(step,), xtol=1e-13, full_output=True)
    if np.abs(_alike_rates(at, lr)).max() > 1e-9:
        raise ValueError(f"no plateau was found at lr = {lr:g}")
    return symmetric(*(float(number) for number in at))


def _alike_rates(numbers: ndarray, lr: float) -> list[float]:
    """How fast the three numbers of students that are alike change, over the step size."""
    rate = Committee(2, 2, lr).rate(symmetric(*(float(number) for number in numbers)))
    return [float(value) / lr for value in (rate["Q"][0, 0], rate["Q"][0, 1], rate["R"][0, 0])]


def growth(lr: float, at: State, small: float = 1e-6) -> float:
    """The rate at which an asymmetry grows there: the equations' derivative along R_in = +-1."""
    mode = np.array([[1.0, -1.0], [-1.0, 1.0]])
    ends = [Committee(2, 2, lr).rate({**at, "R": at["R"] + sign * small * mode})["R"] for sign in (1, -1)]
    return float(((ends[0] - ends[1]) * mode).sum() / (8 * small))


def final_risk(lr: float, noise: float) -> float:
    """The risk that label noise leaves, by the equations, from students that are right."""
    noisy, end = Committee(2, 2, lr, noise), 100 / lr
    path = integrate(noisy.rate, {"Q": np.eye(2), "R": np.eye(2)}, np.array([0.0, end]), dt=end / 400)
    return float(noisy.risk({name: value[..., -1] for name, value in path.items()}))


def apart(found: xr.Dataset) -> xr.DataArray:
    """Squared cosine of the difference of the two students with the difference of their teachers."""
    sign = xr.DataArray([1.0, -1.0], dims="i")
    across = sign.rename(i="k")
    length = (found.Q * sign * across).sum(("i", "k"))
    return (found.R * sign * across).sum(("i", "k")) ** 2 / (2 * length)


def simulate(setting: Setting, d: int) -> State:
    """SGD at dimension d, drawn in its order parameters; shapes (seed, alpha, 2, 2)."""
    seeds = setting.seed
    state = random_start(d, seeds) if setting.start == "random" else alike_for(beginning(), len(seeds))
    steps = [round(alpha * d) for alpha in setting.alpha]
    found = {0: state}
    for now, after in enumerate(trained(rule(setting), state, d, seeds, max(steps)), start=1):
        if now in steps:
            found[now] = after
    return {name: np.stack([found[step][name] for step in steps], 1) for name in state}


def alike_for(state: State, runs: int) -> State:
    """The same state for a number of runs."""
    return {name: np.repeat(value[None], runs, 0) for name, value in state.items()}


def random_start(d: int, seeds: tuple[int, ...]) -> State:
    """Order parameters of Gaussian weights of variance 0.2 in d dimensions; a seed has the same luck in all of them.

    Along the teachers a student has two normal numbers; the rest of both students is a Wishart matrix.
    """
    R, rest = np.empty((2, len(seeds), 2, 2))
    for k, seed in enumerate(seeds):
        R[k] = numpy_generator(seed, "overlaps with teachers").standard_normal((2, 2)) * np.sqrt(_VARIANCE / d)
        source = numpy_generator(seed, f"weights across the teachers {d}")
        half = np.diag(np.sqrt(source.chisquare([d - 2, d - 3])))
        half[1, 0] = source.standard_normal()
        rest[k] = _VARIANCE / d * half @ half.T
    return {"Q": R @ R.swapaxes(-1, -2) + rest, "R": R}


def trained(rule: Committee, state: State, d: int, seeds: tuple[int, ...], steps: int) -> Iterator[State]:
    """The state after every step of SGD at dimension d, with a leading axis of seeds."""
    sources = [numpy_generator(seed, f"samples {d}") for seed in seeds]
    for now in range(steps):
        if now % _BLOCK == 0:
            unit = np.stack([source.standard_normal((_BLOCK, 5)) for source in sources], 1)
            rest = np.stack([source.chisquare(d - 4, _BLOCK) for source in sources], 1)
        j = now % _BLOCK
        state = rule.step(state, d, unit[j, :, :4], rest[j], unit[j, :, 4])
        yield state


def _dataset(state: State, axes: tuple[str, ...], setting: Setting) -> xr.Dataset:
    return labelled(
        {
            "Q": ((*axes, "i", "k"), state["Q"], "overlaps of students Q"),
            "R": ((*axes, "i", "k"), state["R"], "overlaps with teachers R"),
            "risk": (axes, rule(setting).risk(state), "risk"),
        },
        setting.coordinates(*axes),
    )
