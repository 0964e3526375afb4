r"""Every rule of the chapter on every data set of the chapter, over step sizes and each rule's own hyperparameter.

Trained for a fixed number of steps; what is measured is the network at the first step with a training loss of at most
0.1, or else the last one. Rules of two phases are looked at in their second phase; rules that flip or smooth labels to
the end keep a loss of about -ln(1-p) and are measured at the last step. Which step size and which hyperparameter count
is chosen afterwards (`chosen`), by the training loss at the end or by the error on held-out samples, as many as there
are training samples.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from flbook import devices, measures
from flbook.domains import Count, Natural, Positive
from flbook.lectures.training_strategies.every_rule.ground import GROUNDS, Ground, GroundSample
from flbook.lectures.training_strategies.every_rule.span import Span
from flbook.lectures.training_strategies.shared.by_hand import ByHand
from flbook.runs import Experiment, Grid, axis, lattice
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

FLIPS = (0.05, 0.1, 0.2, 0.4)
OWN = {  # each rule's own hyperparameter, and the values that it is tried at
    "gradient descent": ("", ()),
    "SGD": ("batch, in n", (0.05, 0.2)),
    "momentum": ("memory β", (0.5, 0.9, 0.98)),
    "SAM, then GD": ("radius, in σ_0 √(nm)", (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)),
    "label noise": ("flips p", FLIPS),
    "label noise, then GD": ("flips p", FLIPS),
    "label smoothing": ("flips p", FLIPS),
    "normalised GD": ("", ()),
    "sign descent": ("", ()),
    "Adam": ("memory β_2", (0.9, 0.99, 0.999)),
    "linear, GD": ("", ()),
}
RULES = tuple(OWN)
COORDINATES = ("sign descent", "Adam")  # look at each coordinate: they leave the span of the data
STEP = dict.fromkeys(COORDINATES, 0.01)  # unit of the step size; 1 for the others
EVERY = 5  # steps from one look at the training loss to the next


def variants(*rules: str) -> tuple[str, ...]:
    """Rules at every value of their own hyperparameter, by name: "momentum: 0.9"."""
    return tuple(f"{rule}: {value:g}" if OWN[rule][1] else rule for rule in rules for value in OWN[rule][1] or (0,))


def parted(variant: str) -> tuple[str, float]:
    """A rule and the value of its own hyperparameter, nan if it has none."""
    rule, _, value = variant.partition(": ")
    return rule, float(value or "nan")


VARIANTS = variants(*RULES)


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: one ground and three rules in seconds. "linear, GD" is no rule, but the linear classifier by gradient
    descent.
    """

    ground: tuple[Literal[tuple(GROUNDS)], ...] = axis(["signal-noise, squared ReLU"], "data and network")
    variant: tuple[Literal[VARIANTS], ...] = axis(
        variants("gradient descent", "SAM, then GD", "label noise"), "rule at a value of its own hyperparameter")
    lr: tuple[Positive, ...] = axis(lattice(1e-3, 100, 11), "step size η, of rules by coordinates in units of 0.01")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    steps: Count = 1000


experiment = Experiment(
    Setting, version=2, loops=("ground", "variant"), chunk={"ground": 1, "variant": 12}, stored="longer",
    gives={
        "train_loss": ("training loss after all steps", "1"),
        "held_error": ("error on held-out samples", "fraction"),
        "test_error": ("test error", "fraction"),
        "share": ("share of the training margin that the feature carries", "1"),
        "stop": ("step at which training stopped", "1"),
    },
    presets={
        "tiny": ("Every rule on two grounds in a blink", dict(
            ground=("margins", "strong and weak"), variant=variants(*RULES), lr=(0.01, 0.1), seed=(0, 1), steps=12)),
        "longer": ("Every rule at every hyperparameter on every ground", dict(
            ground=tuple(GROUNDS), variant=VARIANTS)),
    },
)


@experiment.kept
def packed(run: xr.Dataset) -> xr.Dataset:
    """What is stored: errors and shares in steps of 1e-4, the share within ±3."""
    run = run.astype("float32").assign(share=run["share"].clip(-3, 3).astype("float32"))
    for name in ("held_error", "test_error", "share"):
        run[name].encoding = {"dtype": "int16", "scale_factor": 1e-4, "_FillValue": -32768}
    run["stop"].encoding = {"dtype": "int16"}
    return run


def rule(setting: Setting, variant: str, ground: Ground, n: int, lr: float | Tensor) -> Rule:
    """A rule by its name; seeds are the ensemble's last axis, behind that of step sizes."""
    name, own = parted(variant)
    half, rest = setting.steps // 2, GradientDescent(lr)
    if name == "momentum":
        return Momentum(lr, own, averaged=True)
    if name == "SAM, then GD":
        return Then(SharpnessAware(lr, own * ground.sigma_0 * math.sqrt(n * ground.m)), half, rest)
    if name == "label noise":
        return LabelNoise(lr, own, seed=setting.seed, axis=1)
    if name == "label noise, then GD":
        return Then(LabelNoise(lr, own, seed=setting.seed, axis=1), half, rest)
    if name == "label smoothing":
        return LabelSmoothing(lr, own)
    if name == "Adam":
        return Adam(lr, betas=(0.9, own))
    return {"normalised GD": NormalisedDescent, "sign descent": SignDescent}.get(name, GradientDescent)(lr)


def looked_at_from(name: str, steps: int) -> int:
    """The step after which a low training loss stops a rule."""
    return {"SAM, then GD": steps // 2, "label noise, then GD": steps // 2,
            "label noise": steps, "label smoothing": steps}.get(name, 0)


def share(ground: Ground, problem: ByHand, params: Params) -> Tensor:
    """Which part of the training margin the feature carries, on the samples that the lecture is about."""
    asked = ground.only(ground.data, GroundSample(problem.x, problem.observed))
    alone = ground.feature_alone(asked.x)
    return (problem.predict(params, alone) * asked.y).mean(-1) / (problem.predict(params, asked.x) * asked.y).mean(-1)


def until(
    problem: ByHand, moved: Rule, batches: Problem, steps: int, level: float, after: int = 0
) -> tuple[Params, Params, Tensor]:
    """Train to the end; parameters when the training loss was first seen at the level, those at the end, and when."""
    params = problem.start()
    state = moved.start(params)
    stopped, waiting = params, torch.ones(problem.ensemble, dtype=torch.bool, device=problem.x.device)
    at = torch.full_like(waiting, steps, dtype=torch.int64)
    for step in range(1, steps + 1):
        params, state = moved.step(batches.at(step - 1), params, state)
        if step == steps or (step % EVERY == 0 and step > after and bool(waiting.any())):
            now = waiting & (problem.train_loss(params) <= level) if step < steps else waiting
            if bool(now.any()):
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
    """One rule on one ground; each number over (lr, seed).

    A rule that commutes with rotations stays in the span of the training patches, and is trained in coordinates there.
    """
    ground, (train, held, fresh) = GROUNDS[s.ground], drawn(s, device)
    name, own = parted(s.variant)
    n = train.y.shape[-1]
    whole = ground.problem(s.seed, train, linear=name == "linear, GD").to(devices.device(device))
    span = None if name in COORDINATES else Span.of(whole)
    problem = (whole if span is None else span.problem).spread(len(s.lr))
    whole = whole.spread(len(s.lr))
    lr = STEP.get(name, 1.0) * torch.tensor(s.lr).to(problem.x)[:, None].expand(problem.ensemble)
    batches = Batches(problem, max(1, round(own * n))) if name == "SGD" else problem
    moved = rule(s, s.variant, ground, n, lr)
    stopped, params, at = until(problem, moved, batches, s.steps, ground.level, looked_at_from(name, s.steps))
    loss = problem.train_loss(params)
    if span is not None:
        stopped = span.back(stopped)
    error = measures.test_error_on
    return {"train_loss": loss, "held_error": error(whole, stopped, *held),
            "test_error": error(whole, stopped, *fresh), "share": share(ground, whole, stopped), "stop": at}


run = experiment.run


def chosen(table: xr.Dataset, by: str) -> xr.Dataset:
    """Each rule on each ground at the hyperparameters with the least `by`, mean over seeds.

    Dimensions (ground, rule, seed), with the chosen `lr` and `own` beside them. Where two tie, the smaller own
    hyperparameter, then the smaller step size; where training diverged, never.
    """
    names, owns = zip(*(parted(str(one)) for one in table.variant.values), strict=True)
    table = table.assign_coords(own=("variant", list(owns)))
    best = []
    for name in dict.fromkeys(names):
        one = table.isel(variant=[number for number, other in enumerate(names) if other == name])
        judged = one[by].mean("seed", skipna=False).fillna(np.inf)
        best.append(one.isel(judged.argmin(["variant", "lr"])).drop_vars("variant").expand_dims(rule=[name]))
    return xr.concat(best, "rule", coords=["lr", "own"]).transpose("ground", "rule", ...)
