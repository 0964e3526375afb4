r"""Many steps on the same facts, every rule at the step size that stores most after so many steps.

Every rule has a grid of seven step sizes of its own; each seed has, at each number of steps, the one that stores most.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from flbook import devices
from flbook.domains import Count, Natural, Positive
from flbook.lectures.training_strategies.spectral_steps.stored_facts import Facts, FactTraining
from flbook.runs import Experiment, Grid, axis
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.optimizers import Adam, GradientDescent, NormalisedDescent, SignDescent, SpectralDescent

RULES = {  # how it is made from a step size, and the step sizes
    "gradient descent": (GradientDescent, (30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0, 30000.0)),
    "normalised": (NormalisedDescent, (2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0)),
    "sign descent": (SignDescent, (0.07, 0.15, 0.3, 0.6, 1.2, 2.5, 5.0)),
    "Adam": (Adam, (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)),
    "spectral": (SpectralDescent, (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)),
}
WATCHED = (1, 3, 10, 30, 100, 300)


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on."""

    rule: tuple[Literal[tuple(RULES)], ...] = axis(RULES, "rule")
    seed: tuple[Natural, ...] = axis(range(2), "seed")
    count: Count = 400  # facts
    d: Count = 32
    alpha: Positive = 1.5
    steps: Count = 10

    @property
    def watched(self) -> list[int]:
        """After how many steps the facts are counted."""
        return [step for step in WATCHED if step <= self.steps]


experiment = Experiment(
    Setting, version=1, loops=("rule",), chunk={"rule": 1}, stored="longer",
    beside={"step": (lambda s: s.watched, "step t", "count")},
    gives={
        "stored": ("stored facts, at the best step size", "count", ("rule", "seed", "step")),
        "best": ("place of the best step size on its grid", "1", ("rule", "seed", "step")),
    },
    presets={
        "tiny": ("A blink", dict(rule=("normalised", "spectral"), count=40, d=8, steps=3)),
        "longer": ("Ten seeds, 30 steps; minutes", dict(seed=tuple(range(10)), steps=30)),
    },
)  # fmt: skip


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Facts stored at the best step size, (seed, step), and its place on the grid, alike."""
    training = FactTraining.of(Facts(s.count, s.d, s.alpha), s.seed).to(devices.device(device), torch.float32)
    make, sizes = RULES[s.rule]
    many = training.copies(len(sizes))
    lr = torch.tensor(sizes).to(training.p)[:, None].expand(len(sizes), len(s.seed))
    count = Quantity("stored", lambda params: many.stored(params).double().sum(-1), (), "stored facts", "count")
    history = fit(many, make(lr), s.steps, [count], ("lr", "seed"), at=s.watched).history
    found = torch.from_numpy(history.stored.transpose("step", "lr", "seed").sel(step=s.watched).values)
    return {"stored": found.amax(1).T, "best": found.argmax(1).T.double()}


run = experiment.run
