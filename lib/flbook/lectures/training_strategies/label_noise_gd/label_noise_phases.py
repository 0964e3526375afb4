r"""Step size against the share of flips: where label noise, and where label smoothing, learns the signal.

Smoothing rests at the margin :math:`z^*=\log\frac{1-p}p`. One step takes a small deviation from it times
:math:`1-2cz^*p(1-p)`, so it rests only for :math:`c<1/(z^*p(1-p))`; beyond, the residual does not vanish (derived on
the lecture's page). At p = 0 both rules are gradient descent.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch

from flbook import measures
from flbook.domains import Count, FlipProbability, Natural, Positive, checked_arguments
from flbook.dynamics.gram import GramTraining
from flbook.lectures.training_strategies import label_noise_gd
from flbook.runs import Experiment, Grid, axis, lattice
from flbook.training.fit import fit

RULES = ("label smoothing", "label noise")


@checked_arguments
def stability(flip_prob: FlipProbability) -> float:
    r"""The largest c at which smoothing rests, :math:`1/(z^*p(1-p))`; infinite at p = 0 and p = 1/2.

    Examples
    --------
    >>> round(stability(0.1), 2)
    5.06
    """
    if not 0 < flip_prob < 0.5:
        return math.inf
    return 1 / (math.log(1 / flip_prob - 1) * flip_prob * (1 - flip_prob))


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes. Sizes are those of the lecture's own experiment."""

    rule: tuple[Literal[RULES], ...] = axis(RULES, "rule")
    lr: tuple[Positive, ...] = axis([4.0, 16.0, 24.0], "step size η")
    flip_prob: tuple[FlipProbability, ...] = axis([0.1], "flips p")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    n: Count = 200
    d: Count = 2000
    mu: Positive = 2.0
    m: Count = 20
    steps: Count = 1600
    points: Count = 512

    def one(self, lr: float, flip_prob: float) -> label_noise_gd.Setting:
        """The lecture's setting at one step size and one share of flips."""
        same = {name: getattr(self, name) for name in ("seed", "n", "d", "mu", "m", "steps", "points")}
        return label_noise_gd.Setting(lr=(lr,), flip_prob=flip_prob, **same)


experiment = Experiment(
    Setting, version=1, loops=("rule", "lr", "flip_prob"), chunk={"rule": 1, "lr": 1}, stored="longer",
    missing=("test_error", "train_loss", "residual"),  # label noise diverges at large steps
    gives={
        "test_error": ("test error", "fraction"),
        "train_loss": ("training loss", "nats"),
        "residual": ("mean square of the forces at the last step", "1"),
    },
    presets={
        "tiny": ("A blink", dict(lr=(0.5,), flip_prob=(0.0, 0.2), seed=(0, 1), n=20, d=400, m=12, steps=20, points=64)),
        "longer": ("Twelve step sizes by seven shares of flips", dict(
            lr=lattice(1.0, 45.25, 12), flip_prob=(0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4))),
    },
)


@experiment.shared()
def drawn(s: Setting, device: str) -> GramTraining:
    """The problems that every rule trains."""
    return label_noise_gd.problem(s.one(1.0, 0.1), device)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train by one rule to the end; NaN where training diverged."""
    training, one = drawn(s, device), s.one(s.lr, s.flip_prob)
    params = fit(training, label_noise_gd.rule(one, s.rule, s.lr), s.steps).params
    error, loss = measures.test_error(training, params, s.points), training.train_loss(params)
    force = (1 - s.flip_prob) - torch.sigmoid(training.predict(params) * training.observed)
    spread = s.flip_prob * (1 - s.flip_prob) if s.rule == "label noise" else 0.0  # of the flips of one step
    found = {"test_error": error, "train_loss": loss, "residual": force.square().mean(-1) + spread}
    return {name: torch.where(loss.isfinite(), part, torch.nan) for name, part in found.items()}


run = experiment.run
