r"""How long one-pass SGD searches for the direction behind :math:`y = h_k(\langle\beta, x\rangle)`.

Claims: from a random start, :math:`m \approx d^{-1/2}`, it takes of order d samples for k = 1, d log d for k = 2, and
:math:`d^{k-1}` for k >= 3, up to logarithms (Ben Arous et al. 2021); from a macroscopic overlap m follows an ordinary
differential equation up to :math:`d^{-1/2}`; using each sample twice turns k = 3 into k = 1 (Dandi et al. 2024; Lee et
al. 2024).

m is a Markov chain (`sphere`), so nothing of size d is ever drawn.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import xarray as xr

from flbook import hermite
from flbook.domains import Count, Natural, NonNegative, Positive, Range
from flbook.lectures.representation.online_sgd.sphere import Neuron, follow, hermite_neuron, looking_ahead, solve
from flbook.runs import Experiment, Grid, axis, single_precision

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


experiment = Experiment(
    Setting, version=1, loops=("link", "d"), chunk={"link": 1, "d": 1}, stored="longer",
    gives={
        "overlap": ("overlap m with β", "1"),
        "escape": ("samples until |m| = 1/2", "1", ("link", "d", "seed")),
    },
    presets={
        "tiny": ("Two links at two small dimensions", dict(
            link=(1, 2), d=(10, 20), seed=(0, 1, 2, 3), time=(0.0, 1.0, 10.0))),
        "opening": ("Twelve runs, to be looked at", dict(
            d=(1000,), seed=tuple(range(12)), time=tuple(round(0.1 * k, 1) for k in range(91)))),
        "gap": ("From a macroscopic overlap, where the equation should hold", dict(
            d=(100, 200, 400, 800, 1600), start=0.3, lr=0.2, seed=tuple(range(48)),
            time=tuple(round(0.25 * k, 2) for k in range(33)))),
        "longer": ("The third polynomial up to d = 512, eight hundred runs", dict(
            link=(3,), d=(32, 64, 128, 256, 512), seed=tuple(range(800)),
            time=tuple(round(0.12 * j, 2) for j in range(26)))),
    },
    devices=("cpu",),  # a few numbers a run, one small step after the other
)
experiment.kept(single_precision)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, np.ndarray]:
    """m over time, and the samples until \\|m\\| first reached one half."""
    order = np.argsort(s.time)
    steps = np.round(np.asarray(s.time)[order] * float(s.d) ** power(s, s.link)).astype(int)
    path, reached = follow(neuron(s, s.link, s.d), start(s, s.d), s.d, s.seed, steps, LEVEL,
                           role=f"samples for degree {s.link}")
    return {"overlap": path[:, np.argsort(order)], "escape": reached}


run = experiment.run


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
    for s in experiment.cells(setting):
        rule = neuron(s, s.link, s.d)
        grid = np.concatenate([[0.0], rule.lr * np.asarray(s.time) * s.d ** (power(s, s.link) - 1)])
        found.append(solve(rule, start(s, s.d), grid, dt=0.05)[1:])
    coords = setting.coordinates("link", "d", "time")
    shape = [len(values) for _, values, _ in coords.values()]
    about = {"long_name": "overlap m of the equation", "units": "1"}
    return xr.DataArray(np.reshape(found, shape), coords, tuple(coords), name="equation", attrs=about)
