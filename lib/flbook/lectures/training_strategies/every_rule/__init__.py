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
from flbook.runs import Experiment, Grid, axis, lattice, single_precision
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


experiment = Experiment(
    Setting, version=1, loops=("ground", "rule"), chunk={"ground": 1, "rule": 1}, stored="longer",
    gives={
        "train_loss": ("training loss after all steps", "1"),
        "held_error": ("error on held-out samples", "fraction"),
        "test_error": ("test error", "fraction"),
        "late_error": ("test error after all steps", "fraction"),
        "square": ("mean squared gradient R of the outputs", "1"),
        "share": ("share of the training margin that the feature carries", "1"),
        "stop": ("step at which training stopped", "1"),
    },
    presets={
        "tiny": ("Every rule on two grounds in a blink", dict(
            ground=("margins", "strong and weak"), rule=RULES, lr=(0.01, 0.1), seed=(0, 1), steps=12)),
        "longer": ("Every rule on every ground", dict(ground=tuple(GROUNDS), rule=RULES)),
    },
)
experiment.kept(single_precision)


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
    stopped, waiting = params, torch.ones(problem.ensemble, dtype=torch.bool, device=problem.x.device)
    at = torch.full_like(waiting, steps, dtype=torch.int64)
    for step in range(1, steps + 1):
        params, state = moved.step(batches.at(step - 1), params, state)
        if step % EVERY == 0 or step == steps:
            now = waiting & (problem.train_loss(params) <= level) if step < steps else waiting
            stopped = {name: torch.where(now[(...,) + (None,) * (p.ndim - now.ndim)], p, stopped[name])
                       for name, p in params.items()}
            at, waiting = torch.where(now, step, at), waiting & ~now
    return stopped, params, at


@experiment.shared("ground")
def drawn(s: Setting, device: str) -> tuple[GroundSample, GroundSample, GroundSample]:
    """Samples to train on, samples held out, and fresh ones to test on."""
    ground, place = GROUNDS[s.ground], devices.device(device)
    samples = ground.draw(s.seed), ground.draw(s.seed, role=1), ground.draw_test(s.seed)
    return tuple(GroundSample(x.to(place), y.to(place)) for x, y in samples)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """One rule on one ground; each number over (lr, seed)."""
    ground, (train, held, fresh) = GROUNDS[s.ground], drawn(s, device)
    n = train.y.shape[-1]
    problem = ground.problem(s.seed, train, linear=s.rule == "linear, GD").to(devices.device(device))
    problem = problem.spread(len(s.lr))
    lr = torch.tensor(s.lr).to(problem.x)[:, None].expand(problem.ensemble)
    batches = Batches(problem, max(1, n // 10)) if s.rule == "SGD" else problem
    stopped, params, at = until(problem, rule(s, s.rule, ground, n, lr), batches, s.steps, ground.level)
    error = measures.test_error_on
    return {"train_loss": problem.train_loss(params), "held_error": error(problem, stopped, *held),
            "test_error": error(problem, stopped, *fresh), "late_error": error(problem, params, *fresh),
            "share": share(ground, problem, stopped), "square": squared_gradient(problem, stopped), "stop": at}


run = experiment.run


def chosen(table: xr.Dataset, by: str) -> xr.Dataset:
    """Each rule on each ground at the step size with the least `by`, mean over seeds; dimensions (ground, rule, seed).

    Where step sizes tie, the smaller one; where training diverged, never.
    """
    judged = table[by].mean("seed", skipna=False).fillna(np.inf)
    return table.isel(lr=judged.argmin("lr"))
