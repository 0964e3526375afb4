r"""A committee of two taught by a committee of two: the plateau, the equations, and SGD at finite dimension.

Claims: the order parameters follow the equations of Saad and Solla (1995) up to :math:`d^{-1/2}` (Goldt et al. 2019);
students that start alike stay on a plateau whose length grows with the logarithm of how alike they are; with label
noise the final risk is proportional to :math:`\eta\sigma^2`.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import xarray as xr

from flbook.domains import Natural, NonNegative, Positive, Range
from flbook.lectures.representation.online_sgd.order_parameters import Committee, State, integrate, symmetric
from flbook.rng import numpy_generator
from flbook.runs import Grid, axis, cached, labelled, sweeps

VERSION = 1
_BLOCK = 1024


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: up to the plateau, where the equations have to hold."""

    d: tuple[Annotated[int, Range(5)], ...] = axis([50, 100, 200, 400], "dimension d")
    seed: tuple[Natural, ...] = axis(range(16), "seed")
    alpha: tuple[NonNegative, ...] = axis(map(float, range(21)), "steps over dimension α")
    lr: Positive = 0.5  # eta
    noise: NonNegative = 0.0  # sigma of the label noise

    @classmethod
    def tiny(cls) -> "Setting":
        """Three runs at two small dimensions."""
        return cls(d=(20, 40), seed=(0, 1, 2), alpha=(0.0, 1.0, 4.0))

    @classmethod
    def long(cls) -> "Setting":
        """Over the plateau and beyond, at one dimension."""
        return cls(d=(100,), seed=tuple(range(10)), alpha=tuple(float(a) for a in range(0, 141, 2)))


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Q, R and the risk of SGD; dimensions (d, seed, alpha, i, k)."""
    runs = [simulate(setting, d) for d in setting.d]
    return _dataset({name: np.stack([one[name] for one in runs]) for name in "QR"}, ("d", "seed", "alpha"), setting)


run = sweeps(measure, chunk={"d": 1})


def beginning() -> State:
    """The start of every run: two students that differ."""
    return {"Q": np.array([[0.25, 0.02], [0.02, 0.20]]), "R": np.diag([0.05, 0.04])}


def committee(setting: Setting) -> Committee:
    """Student and teacher of two units each."""
    return Committee(2, 2, setting.lr, setting.noise)


@cached
def equation(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """The solution of the equations: Q, R and the risk over alpha, which starts at 0."""
    path = integrate(committee(setting).rate, beginning(), np.asarray(setting.alpha), dt=0.2)
    return _dataset({name: np.moveaxis(value, -1, 0) for name, value in path.items()}, ("alpha",), setting)


ALIKE = (0.2, 0.02, 0.05)  # squared length, mutual overlap and overlap with the teachers of students that are alike


def plateau_length(lr: float, asymmetry: float, level: float = 0.005, longest: float = 700.0, dt: float = 1.0) -> float:
    """alpha at which the risk of nearly alike students falls below `level`, by the equations."""
    rule, alpha = Committee(2, 2, lr), np.arange(0.0, longest + 1, 2.0)
    path = integrate(rule.rate, symmetric(*ALIKE, asymmetry), alpha, dt)
    risk = rule.risk({name: np.moveaxis(value, -1, 0) for name, value in path.items()})
    below = np.flatnonzero((risk[:-1] >= level) & (risk[1:] < level))
    if not below.size:
        raise ValueError(f"the risk is not below level = {level} by longest = {longest}; it ends at {risk[-1]:.4g}")
    k = below[0]
    return float(alpha[k] + (alpha[k + 1] - alpha[k]) * np.log(risk[k] / level) / np.log(risk[k] / risk[k + 1]))


def saddle(lr: float, alpha: float = 300.0, dt: float = 1.0) -> State:
    """Where students that are alike end: the plateau itself."""
    path = integrate(Committee(2, 2, lr).rate, symmetric(*ALIKE), np.array([0.0, alpha]), dt)
    return {name: value[..., -1] for name, value in path.items()}


def growth(lr: float, at: State, small: float = 1e-6) -> float:
    """The rate at which an asymmetry grows there: the equations' derivative along R_in = +-1."""
    mode = np.array([[1.0, -1.0], [-1.0, 1.0]])
    ends = [Committee(2, 2, lr).rate({**at, "R": at["R"] + sign * small * mode})["R"] for sign in (1, -1)]
    return float(((ends[0] - ends[1]) * mode).sum() / (8 * small))


def final_risk(lr: float, noise: float) -> float:
    """The risk that label noise leaves, by the equations, from students that are right."""
    rule, end = Committee(2, 2, lr, noise), 100 / lr
    path = integrate(rule.rate, {"Q": np.eye(2), "R": np.eye(2)}, np.array([0.0, end]), dt=end / 400)
    return float(rule.risk({name: value[..., -1] for name, value in path.items()}))


def simulate(setting: Setting, d: int) -> State:
    """SGD at dimension d, drawn in its order parameters; shapes (seed, alpha, 2, 2)."""
    rule, seeds = committee(setting), setting.seed
    state = {name: np.repeat(value[None], len(seeds), 0) for name, value in beginning().items()}
    sources = [numpy_generator(seed, f"samples {d}") for seed in seeds]
    steps = np.round(np.asarray(setting.alpha) * d).astype(int)
    found = {step: state for step in steps if step == 0}
    for now in range(max(steps)):
        if now % _BLOCK == 0:
            unit = np.stack([source.standard_normal((_BLOCK, 5)) for source in sources], 1)
            rest = np.stack([source.chisquare(d - 4, _BLOCK) for source in sources], 1)
        j = now % _BLOCK
        state = rule.step(state, d, unit[j, :, :4], rest[j], unit[j, :, 4])
        if now + 1 in steps:
            found[now + 1] = state
    return {name: np.stack([found[step][name] for step in steps], 1) for name in state}


def _dataset(state: State, axes: tuple[str, ...], setting: Setting) -> xr.Dataset:
    return labelled({"Q": ((*axes, "i", "k"), state["Q"], "overlaps of students Q"),
                     "R": ((*axes, "i", "k"), state["R"], "overlaps with teachers R"),
                     "risk": (axes, committee(setting).risk(state), "risk")}, setting.coordinates(*axes))
