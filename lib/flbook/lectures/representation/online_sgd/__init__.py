r"""How long one-pass SGD searches for the direction behind :math:`y = h_k(\langle\beta, x\rangle)`.

Claims: from a random start, :math:`m \approx d^{-1/2}`, it takes of order d samples for k = 1, d log d for k = 2, and
:math:`d^{k-1}` for k >= 3, up to logarithms (Ben Arous et al. 2021); from a macroscopic overlap m follows an ordinary
differential equation up to :math:`d^{-1/2}`; using each sample twice turns k = 3 into k = 1 (Dandi et al. 2024; Lee et
al. 2024).

m is a Markov chain (`sphere`), so nothing of size d is ever drawn.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
import xarray as xr

from flbook import hermite
from flbook.domains import Count, Natural, NonNegative, Positive, Range
from flbook.lectures.representation.online_sgd.sphere import Neuron, follow, hermite_neuron, looking_ahead, solve
from flbook.runs import Grid, axis, labelled, single_precision, sweeps

VERSION = 1
LEVEL = 0.5  # an overlap of this size counts as found


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: the search on the second Hermite polynomial."""

    link: tuple[Count, ...] = axis([2], "degree k of the link")  # the label is h_k of the hidden coordinate
    d: tuple[Annotated[int, Range(3)], ...] = axis([50, 200, 800, 3200], "dimension d")
    seed: tuple[Natural, ...] = axis(range(300), "seed")
    time: tuple[NonNegative, ...] = axis((round(0.25 * k, 2) for k in range(81)), "samples over d^max(k - 1, 1)")
    lr: Positive = 0.5  # eta for k <= 2; for k >= 3 it is this times d^(1 - k/2), as the theorem asks
    start: Annotated[float, Range(-1, 1)] | None = None  # overlap at the start; None is d^(-1/2)
    rule: Literal["own", "erf", "twice"] = "own"  # the student is h_k; or -erf; or -erf with each sample used twice
    rho: NonNegative = 1.0  # length of the first step with "twice"

    @classmethod
    def tiny(cls) -> "Setting":
        """Two links at two small dimensions."""
        return cls(link=(1, 2), d=(10, 20), seed=(0, 1, 2, 3), time=(0.0, 1.0, 10.0))

    @classmethod
    def opening(cls) -> "Setting":
        """Twelve runs, to be looked at."""
        return cls(d=(1000,), seed=tuple(range(12)), time=tuple(round(0.1 * k, 1) for k in range(91)))

    @classmethod
    def gap(cls) -> "Setting":
        """From a macroscopic overlap, where the equation should hold."""
        return cls(d=(100, 200, 400, 800, 1600), start=0.3, lr=0.2, seed=tuple(range(48)),
                   time=tuple(round(0.25 * k, 2) for k in range(33)))

    @classmethod
    def degree(cls, k: int) -> "Setting":
        """The search at three or four dimensions, for one degree."""
        if k == 1:
            return cls(link=(1,), d=(200, 800, 3200, 12800), time=tuple(round(0.05 * j, 2) for j in range(41)))
        if k == 2:
            return cls(link=(2,), d=(50, 100, 200, 400))
        return cls(link=(k,), d=(32, 64, 128), time=tuple(round(0.04 * j, 2) for j in range(76)))

    @classmethod
    def reuse(cls, rule: str) -> "Setting":
        """The third polynomial at twelve samples per dimension, each used once or twice."""
        return cls(link=(3,), d=(100, 400, 1600), lr=0.3, rule=rule, seed=tuple(range(24)),
                   time=tuple(round(0.5 * k, 1) for k in range(25)))

    @classmethod
    def paper(cls) -> "Setting":
        """The third polynomial up to d = 512, two hundred runs."""
        return replace(cls.degree(3), d=(32, 64, 128, 256, 512), seed=tuple(range(200)),
                       time=tuple(round(0.12 * j, 2) for j in range(26)))


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """m over time and the samples until \\|m\\| first reached one half; dimensions (link, d, seed, time).

    The chain is a few numbers per run, so it stays on the CPU.
    """
    overlaps, escapes = [], []
    order = np.argsort(setting.time)
    for k in setting.link:
        for d in setting.d:
            steps = np.round(np.asarray(setting.time)[order] * float(d) ** power(setting, k)).astype(int)
            path, reached = follow(neuron(setting, k, d), start(setting, d), d, setting.seed, steps, LEVEL,
                                   role=f"samples for degree {k}")
            overlaps.append(path[:, np.argsort(order)])
            escapes.append(reached)
    dims = ("link", "d", "seed", "time")
    return labelled({"overlap": (dims, overlaps, "overlap m with β"),
                     "escape": (dims[:-1], escapes, "samples until |m| = 1/2")}, setting.coordinates())


run = sweeps(measure, chunk={"link": 1, "d": 1})
stored = single_precision


def power(setting: Setting, k: int) -> int:
    """Times are in samples over d to this power."""
    return max(k - 1, 1) if setting.rule == "own" else 1


def neuron(setting: Setting, k: int, d: int) -> Neuron:
    """The rule at one dimension."""
    if setting.rule == "own":
        return hermite_neuron(k, setting.lr * d ** min(0.0, 1 - k / 2))
    return looking_ahead(hermite.he(k), setting.rho if setting.rule == "twice" else 0.0, setting.lr)


def start(setting: Setting, d: int) -> float:
    """The overlap at the start."""
    return d**-0.5 if setting.start is None else setting.start


def equation(setting: Setting) -> xr.DataArray:
    """The solution of the ordinary differential equation, dimensions (link, d, time)."""
    found = []
    for k in setting.link:
        for d in setting.d:
            rule = neuron(setting, k, d)
            grid = np.concatenate([[0.0], rule.lr * np.asarray(setting.time) * d ** (power(setting, k) - 1)])
            found.append(solve(rule, start(setting, d), grid, dt=0.05)[1:])
    coords = setting.coordinates("link", "d", "time")
    shape = [len(values) for _, values, _ in coords.values()]
    about = {"long_name": "overlap m of the equation", "units": "1"}
    return xr.DataArray(np.reshape(found, shape), coords, tuple(coords), name="equation", attrs=about)
