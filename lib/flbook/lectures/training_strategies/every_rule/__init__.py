r"""Every rule of the chapter on every data set of the chapter, at every step size of one grid.

Trained for a fixed number of steps; what is measured is the network at the first step with a training loss of at most
0.1, or else the last one. Which step size counts is chosen afterwards (`chosen`), by the training loss at the end or by
the error on held-out samples, as many as there are training samples.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from flbook import devices, measures
from flbook.domains import Count, FlipProbability, Fraction, Natural, Positive
from flbook.lectures.training_strategies.every_rule.active_neurons import squared_gradient
from flbook.lectures.training_strategies.every_rule.ground import GROUNDS, Ground, GroundSample
from flbook.lectures.training_strategies.shared.by_hand import ByHand
from flbook.runs import Grid, axis, labelled, lattice, sweeps
from flbook.runs.labels import single_precision
from flbook.training.batches import Batches
from flbook.training.optimizers import (
    Adam,
    GradientDescent,
    LabelNoise,
    LabelSmoothing,
    Momentum,
    NormalisedDescent,
    SharpnessAware,
    SignDescent,
    Then,
)
from flbook.training.problem import Params, Problem, Rule

VERSION = 1
RULES = ("gradient descent", "SGD", "momentum", "SAM, then GD", "label noise", "label smoothing", "normalised GD",
         "sign descent", "Adam", "linear, GD")
EVERY = 5  # steps from one look at the training loss to the next


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: one ground and three rules in seconds. "linear, GD" is no rule, but the linear classifier by gradient
    descent.
    """

    ground: tuple[Literal[tuple(GROUNDS)], ...] = axis(["signal-noise, squared ReLU"], "data and network")
    rule: tuple[Literal[RULES], ...] = axis(["gradient descent", "SAM, then GD", "label noise"], "rule")
    lr: tuple[Positive, ...] = axis(lattice(1e-3, 100, 11), "step size η")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    steps: Count = 1000
    radius: Positive = 3.0  # of SAM, in units of σ_0 √(nm)
    flip_prob: FlipProbability = 0.2  # of label noise and label smoothing
    beta: Fraction = 0.98  # of momentum

    @classmethod
    def tiny(cls) -> "Setting":
        """Every rule on two grounds in a blink."""
        return cls(ground=("margins", "strong and weak"), rule=RULES, lr=(0.01, 0.1), seed=(0, 1), steps=12)

    @classmethod
    def paper(cls) -> "Setting":
        """Every rule on every ground."""
        return cls(ground=tuple(GROUNDS), rule=RULES)


def rule(setting: Setting, name: str, ground: Ground, n: int, lr: float | Tensor) -> Rule:
    """A rule by its name; seeds are the ensemble's last axis, behind that of step sizes."""
    if name == "momentum":
        return Momentum(lr, setting.beta, averaged=True)
    if name == "SAM, then GD":
        radius = setting.radius * ground.sigma_0 * math.sqrt(n * ground.m)
        return Then(SharpnessAware(lr, radius), setting.steps // 2, GradientDescent(lr))
    if name == "label noise":
        return LabelNoise(lr, setting.flip_prob, seed=setting.seed, axis=1)
    if name == "label smoothing":
        return LabelSmoothing(lr, setting.flip_prob)
    plain = {"normalised GD": NormalisedDescent, "sign descent": SignDescent, "Adam": Adam}
    return plain.get(name, GradientDescent)(lr)


def share(ground: Ground, problem: ByHand, params: Params) -> Tensor:
    """Which part of the training margin the feature carries, on the samples that the lecture is about."""
    asked = ground.only(ground.data, GroundSample(problem.x, problem.observed))
    alone = ground.feature_alone(asked.x)
    return (problem.predict(params, alone) * asked.y).mean(-1) / (problem.predict(params, asked.x) * asked.y).mean(-1)


def until(problem: ByHand, moved: Rule, batches: Problem, steps: int, level: float) -> tuple[Params, Params, Tensor]:
    """Train to the end; parameters when the training loss was first seen at the level, those at the end, and when."""
    params = problem.start()
    state = moved.start(params)
    stopped, at = {name: p.clone() for name, p in params.items()}, torch.full(problem.ensemble, steps)
    waiting = torch.ones(problem.ensemble, dtype=torch.bool)
    for step in range(1, steps + 1):
        params, state = moved.step(batches.at(step - 1), params, state)
        if step % EVERY == 0 or step == steps:
            now = waiting & (problem.train_loss(params) <= level).cpu() if step < steps else waiting
            for name, p in params.items():
                stopped[name][now] = p[now]
            at[now], waiting = step, waiting & ~now
    return stopped, params, at


def cell(setting: Setting, where: str, name: str, device: str = "cpu") -> dict[str, Tensor]:
    """One rule on one ground; each number over (lr, seed)."""
    ground, seed = GROUNDS[where], setting.seed
    drawn = ground.draw(seed)
    n = drawn.y.shape[-1]
    problem = ground.problem(seed, drawn, linear=name == "linear, GD").to(devices.device(device))
    problem = problem.spread(len(setting.lr))
    lr = torch.tensor(setting.lr).to(problem.x)[:, None].expand(problem.ensemble)
    batches = Batches(problem, max(1, n // 10)) if name == "SGD" else problem
    stopped, params, at = until(problem, rule(setting, name, ground, n, lr), batches, setting.steps, ground.level)
    held, fresh = ground.draw(seed, role=1), ground.draw_test(seed)
    error = measures.test_error_on
    return {"train_loss": problem.train_loss(params), "held_error": error(problem, stopped, *held),
            "test_error": error(problem, stopped, *fresh), "late_error": error(problem, params, *fresh),
            "share": share(ground, problem, stopped), "square": squared_gradient(problem, stopped), "stop": at}


NAMES = {"train_loss": ("training loss after all steps", "1"), "held_error": ("error on held-out samples", "fraction"),
         "test_error": ("test error", "fraction"), "late_error": ("test error after all steps", "fraction"),
         "square": ("mean squared gradient R of the outputs", "1"),
         "share": ("share of the training margin that the feature carries", "1"),
         "stop": ("step at which training stopped", "1")}


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Train every cell; dimensions (ground, rule, lr, seed)."""
    cells = [cell(setting, where, name, device) for where in setting.ground for name in setting.rule]
    dims = ("ground", "rule", "lr", "seed")
    values = {name: torch.stack([one[name] for one in cells]).reshape(setting.shape) for name in NAMES}
    return labelled({name: (dims, values[name], *NAMES[name]) for name in NAMES}, setting.coordinates())


run = sweeps(measure, chunk={"ground": 1, "rule": 1})
stored = single_precision


def chosen(table: xr.Dataset, by: str) -> xr.Dataset:
    """Each rule on each ground at the step size with the least `by`, mean over seeds; dimensions (ground, rule, seed).

    Where step sizes tie, the smaller one; where training diverged, never.
    """
    judged = table[by].mean("seed", skipna=False).fillna(np.inf)
    return table.isel(lr=judged.argmin("lr"))
