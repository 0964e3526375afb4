"""Tuning of every rule on held-out pictures: three choices of step size and strength, by kind of picture.

A fifth of the labels is flipped, and data sets are others than those of the main table. Chosen is the least held-out
error after the last step, among the choices whose training has ended: the training error moves by less than 0.05 in the
last third. Otherwise a small step would win as an early stop in disguise.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import xarray as xr
from torch import Tensor

from flbook.data.crops import KINDS
from flbook.domains import Count, Natural
from flbook.lectures.training_strategies import rules_on_pictures
from flbook.lectures.training_strategies.rules_on_pictures import RECIPES
from flbook.runs import Experiment, Grid, axis, single_precision

PAIRS = [(0.1, 0.1), (0.2, 0.1), (0.2, 0.25)]
CHOICES: dict[str, list[tuple[float, float]]] = {  # step size and strength
    "gradient descent": [(0.1, 1.0), (0.2, 1.0), (0.4, 1.0)],
    "momentum": [(0.005, 1.0), (0.01, 1.0), (0.03, 1.0)],
    "Adam": [(3e-4, 1.0), (1e-3, 1.0), (3e-3, 1.0)],
    "Adam, batch 5": [(1e-4, 1.0), (3e-4, 1.0), (1e-3, 1.0)],
    "Adam, batch 200": [(1e-3, 1.0), (3e-3, 1.0), (1e-2, 1.0)],
    "label noise": PAIRS,
    "label smoothing": PAIRS,
    "SAM": [(0.1, 0.05), (0.2, 0.05), (0.2, 0.15)],
    "mixup": [(0.1, 1.0), (0.2, 1.0), (0.2, 0.3)],
    "CutMix": [(0.1, 1.0), (0.2, 1.0), (0.2, 0.3)],
}


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on."""

    kind: tuple[Literal[KINDS], ...] = axis(["digits"], "pictures")
    rule: tuple[Literal[tuple(RECIPES)], ...] = axis(["gradient descent", "label noise"], "rule")
    choice: tuple[Literal[0, 1, 2], ...] = axis(range(3), "choice")
    seed: tuple[Natural, ...] = axis(range(100, 103), "seed")
    n: Count = 200
    epochs: Count = 80
    width: Count = 8
    held_out: Count = 300


experiment = Experiment(
    Setting, version=1, loops=("kind", "rule", "choice"), chunk={"kind": 1, "rule": 1, "choice": 1}, stored="longer",
    gives={
        "held": ("held-out error after the last step", "fraction"),
        "held_stopped": ("least held-out error", "fraction"),
        "drift": ("training error two thirds through training, less the last", "fraction"),
        "train_error": ("training error after the last step", "fraction"),
    },
    presets={
        "tiny": ("A blink", dict(choice=(0, 1), seed=(0, 1), n=20, epochs=3, width=2, held_out=20)),
        "longer": ("Every rule on three kinds of pictures", dict(kind=KINDS[:3], rule=tuple(RECIPES))),
    },
)
experiment.kept(single_precision)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Train by one rule with one choice of its numbers."""
    lr, strength = CHOICES[s.rule][s.choice]
    own = rules_on_pictures.Setting(
        kind=(s.kind,), flip_prob=(0.2,), rule=(s.rule,), seed=s.seed, n=s.n, epochs=s.epochs, width=s.width, lr=lr,
        strength=strength, held_out=s.held_out, fresh=2)  # fmt: skip
    found = rules_on_pictures.experiment.measure(own, device).squeeze(("kind", "flip_prob", "rule"))
    return {name: torch.from_numpy(found[name].values) for name in ("held", "held_stopped", "drift", "train_error")}


run = experiment.run


def chosen(found: xr.Dataset) -> dict[tuple[str, str], tuple[float, float]]:
    """Step size and strength of every rule, by kind of picture."""
    mean = found.mean("seed")
    ended = mean.drift.clip(0) < 0.05
    score = mean.held.where(ended | ~ended.any("choice"), 1.0)
    best = score.argmin("choice")
    return {(str(kind), str(rule)): CHOICES[str(rule)][int(best.sel(kind=kind, rule=rule))]
            for kind in found.kind.values for rule in found.rule.values}
