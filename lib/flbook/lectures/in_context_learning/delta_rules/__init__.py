r"""Delta rules: six recurrent layers as online learners of a linear task, each with its scalars trained.

Claims: a memory that is written with labels (linear attention, gated, Mamba) has a risk of order d^2/n; one that is
written with residuals (delta rules) has without noise a risk that falls exponentially; chunks of b examples lie between
them, at :math:`d\,(1 + b/(d + 1))^{-n/b}`; a trained gate forgets as fast as the task where residuals are written, and
several times as fast where labels are. All of it derived in the lecture.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import xarray as xr

from flbook import devices, rng
from flbook.data.prompts import Prompts, map_tensors
from flbook.domains import Count, Natural
from flbook.estimators import LeastSquares
from flbook.lectures.in_context_learning.delta_rules.chunked_descent import ChunkedDescent
from flbook.lectures.in_context_learning.delta_rules.kalman_filter import KalmanFilter
from flbook.lectures.in_context_learning.delta_rules.update_rules import RULES, UpdateRules
from flbook.lectures.in_context_learning.shared.drifting_prompts import DriftingPrompts
from flbook.runs import Experiment, Grid, axis, labelled, single_precision
from flbook.shapes import Context

TASKS = {"exact": (0.0, 1.0), "noisy": (1.0, 1.0), "drifting": (0.5, 0.98)}  # label noise, memory of the task
READERS = (*RULES, "bayes")


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    task: tuple[Literal[tuple(TASKS)], ...] = axis(tuple(TASKS), "task")
    n: tuple[Count, ...] = axis([40], "examples n")  # of a prompt
    rule: tuple[Literal[READERS], ...] = axis(READERS, "rule")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    d: Count = 4  # dimension
    prompts: Count = 32  # on which each seed trains
    fresh: Count = 1000  # on which the risk is measured
    steps: Natural = 60  # of training


experiment = Experiment(
    Setting, version=1, loops=("task", "n"), chunk={"task": 1, "n": 1}, stored="longer",
    gives={"risk": ("risk R", "1"), "step": ("step s", "1"), "keep": ("gate α at label 0", "1")},
    presets={
        "tiny": ("A blink: what the tests run", dict(n=(3, 6), seed=(0, 1), prompts=8, fresh=8, steps=3)),
        "gates": ("The rules with a gate, on more prompts of a task that drifts", dict(
            task=("drifting",), rule=("gated_attention", "gated_delta"), prompts=128)),
        "longer": ("Prompts of five lengths, minutes", dict(n=(5, 10, 20, 40, 80))),
    },
)
experiment.kept(single_precision)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train every rule at one length of the prompt, and measure its risk on fresh prompts.

    A rule without a gate keeps 1; Bayes' rule has no step, which is written as 0.
    """
    names = [name for name in s.rule if name in RULES]
    fresh, found, step, keep = drawn(s, s.fresh, 1, device), {}, {}, {}
    if names:
        rules, seen = UpdateRules(names, device), drawn(s, s.prompts, 0, device)
        theta = trained(rules, start(s, names, device), seen.context, seen.task, s.steps)
        with torch.no_grad():
            found = dict(zip(names, risk(rules.memory(theta, fresh.context), fresh.task), strict=True))
        step = dict(zip(names, theta[..., 0].exp(), strict=True))
        gates = dict(zip(names, torch.sigmoid(-theta[..., 1]), strict=True))
        keep = {name: gate for name, gate in gates.items() if RULES[name].gated}
    if "bayes" in s.rule:
        found["bayes"] = risk(estimate(bayes(*TASKS[s.task]), fresh.context), fresh.task)
    one = torch.ones(len(s.seed), dtype=torch.float64, device=fresh.task.device)
    return {"risk": torch.stack([found[name] for name in s.rule]),
            "step": torch.stack([step.get(name, 0 * one) for name in s.rule]),
            "keep": torch.stack([keep.get(name, one) for name in s.rule])}


run = experiment.run


def drawn(s: Setting, size: int, part: int, device: str = "cpu") -> Prompts:
    """Prompts of every seed: part 0 is for training, part 1 for the risk."""
    noise, memory = TASKS[s.task]
    prompts = DriftingPrompts(n=s.n, d=s.d, memory=memory, noise=noise).draw(size, s.seed, step=part)
    return map_tensors(prompts, lambda tensor: tensor.to(devices.device(device)))


def bayes(noise: float, memory: float) -> KalmanFilter | LeastSquares:
    """The best of all rules, at one kind of task."""
    return KalmanFilter(memory, noise) if noise else LeastSquares()


def start(s: Setting, names: list[str], device: str = "cpu") -> torch.Tensor:
    """Scalars before training, for each rule and seed: log step, bias and slope of the gate; shape (rule, seed, 3)."""
    middle = torch.tensor([[0.0 if rule.timed else -3.0, -3.0, 0.0] for rule in RULES.values()], dtype=torch.float64)
    draws = rng.normal((len(RULES), 3), s.seed, "scalars of the rules").transpose(0, 1)  # of all, whoever is asked for
    places = [list(RULES).index(name) for name in names]
    return (middle[:, None] + 0.5 * draws)[places].to(devices.device(device))


def trained(rules: UpdateRules, theta: torch.Tensor, context: Context, task: torch.Tensor, steps: int,
            lr: float = 0.3) -> torch.Tensor:
    """Scalars after so many steps of Adam on the logarithm of the mean risk over the prompts; the step size falls to 0.

    The logarithm, as risks differ by ten powers of ten: it has the same minimum.
    """
    theta = theta.clone().requires_grad_()
    adam = torch.optim.Adam([theta], lr, betas=(0.8, 0.95))
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(adam, max(steps, 1))
    for _ in range(steps):
        adam.zero_grad()
        risk(rules.memory(theta, context), task).log().sum().backward()
        adam.step()
        falling.step()
    return theta.detach()


def estimate(predictor: Callable[[Context, torch.Tensor], torch.Tensor], context: Context) -> torch.Tensor:
    """The task that a linear predictor believes in: its predictions at the unit vectors; shape (*E, d)."""
    x = context.x
    axes = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    return predictor(context, axes.expand(*x.shape[:-2], *axes.shape))


@torch.no_grad()
def in_chunks(seeds: tuple[int, ...], lengths: tuple[int, ...], chunks: tuple[int, ...], d: int = 4,
              prompts: int = 1000) -> xr.DataArray:
    """Risk of one gradient step a chunk, at its best step, on exact labels; dimensions (n, chunk, seed).

    Not a number where a chunk does not divide the prompt.
    """
    found = torch.full((len(lengths), len(chunks), len(seeds)), torch.nan, dtype=torch.float64)
    for row, n in enumerate(lengths):
        data = DriftingPrompts(n=n, d=d, memory=1.0).draw(prompts, seeds)
        for column, chunk in enumerate(chunks):
            if n % chunk == 0:
                rule = ChunkedDescent(chunk / (chunk + d + 1), chunk)
                found[row, column] = risk(estimate(rule, data.context), data.task)
    axes = {"n": ("n", list(lengths), "examples n"), "chunk": ("chunk", list(chunks), "examples per chunk b")}
    return labelled({"risk": (("n", "chunk", "seed"), found.numpy(), "risk R")}, axes | {"seed": list(seeds)}).risk


def risk(memory: torch.Tensor, task: torch.Tensor) -> torch.Tensor:
    """Mean squared error at a fresh query, whose law is known; the mean over the prompts, the axis before the last."""
    return (memory - task).square().sum(-1).mean(-1)
