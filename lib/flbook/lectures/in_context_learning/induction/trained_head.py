r"""Both layers trained at once by Adam, from uniform attention: does it arrive where the first gradient points?"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from flbook.domains import Count, Natural, Positive
from flbook.lectures.in_context_learning.induction.causal_chains import CausalContexts
from flbook.lectures.in_context_learning.induction.parent_gradient import LABELS, ParentTraining
from flbook.runs import Experiment, Grid, axis
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.optimizers import Adam


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    rho: tuple[float, ...] = axis([0.0, 0.2], "stickiness ρ")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    tokens: Count = 3
    length: Count = 20
    count: Count = 3000  # contexts, the same at every step
    alpha: Positive = 1.0
    label: Literal[LABELS] = "soft"
    beta: Positive = 0.01  # of the second layer before training
    lr: Positive = 0.05
    steps: Count = 150


AXES = ("rho", "seed", "step")
experiment = Experiment(
    Setting, version=1, loops=("rho",), chunk={"rho": 1},
    gives={
        "parent": ("attention to the parent, a mean over places", "1", AXES),
        "itself": ("attention to the place itself, a mean over places", "1", AXES),
        "beta": ("β of the second layer", "1", AXES),
        "loss": ("training loss", "nats", AXES),
    },
    beside={"step": (lambda s: looked_at(s.steps), "training step")},
    presets={"tiny": ("A blink", dict(seed=(0, 1), length=5, count=20, steps=4)),
             "longer": ("Sampled next tokens, more contexts and steps; minutes", dict(
                 count=20_000, label="sampled", steps=1000))},
)  # fmt: skip


def looked_at(steps: int) -> list[int]:
    """Equally spaced steps."""
    return list(range(0, steps + 1, max(1, steps // 15)))


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, np.ndarray]:
    """Training, (seed, step)."""
    data = CausalContexts(s.tokens, s.length, s.alpha, s.rho)
    problem = ParentTraining.of(data.draw(s.count, s.seed), s.label, first=s.beta).to(device).to(torch.float32)

    of = {
        "parent": lambda p: problem.attention(p).diagonal(-1, -2, -1).mean(-1),
        "itself": lambda p: problem.attention(p).diagonal(0, -2, -1)[..., 1:].mean(-1),
        "beta": lambda p: p["beta"],
        "loss": problem.train_loss,
    }
    record = [Quantity(name, value) for name, value in of.items()]
    _, history = fit(problem, Adam(s.lr), s.steps, record, ("seed",), looked_at(s.steps))
    return {name: history[name].transpose("seed", "step").values for name in of}


run = experiment.run
