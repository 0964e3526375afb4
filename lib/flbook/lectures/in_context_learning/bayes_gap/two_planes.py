"""Tasks of two types, with something left to learn once the type is known: linear functions on two planes.

What is left of the risk under Bayes' rule has two parts: the posterior variance of who knows the type, and the cost of
not knowing it.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from flbook import devices
from flbook.domains import Count, Natural, Positive
from flbook.lectures.in_context_learning.bayes_gap.task_mixture import PlanePrompts
from flbook.runs import Experiment, Grid, axis


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are axes."""

    noise: tuple[Positive, ...] = axis([0.7, 1.0, 1.5], "noise σ")  # sigma_y
    seed: tuple[Natural, ...] = axis(range(20), "seed")
    n: Count = 48
    batch: Count = 400  # prompts of a seed


DIMS = ("noise", "seed", "k")
experiment = Experiment(
    Setting, version=1, loops=("noise", "seed"),
    gives={
        "variance": ("posterior variance", "1", DIMS),
        "known": ("posterior variance, type known", "1", DIMS),
        "cost": ("cost of not knowing the type", "1", DIMS),
    },
    beside={"k": (lambda s: np.arange(s.n + 1), "examples k", "1")},
    presets={"tiny": ("Two noise levels, few prompts of up to a dozen examples", dict(
        noise=(0.7, 1.5), seed=(0, 1), n=12, batch=50))},
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Posterior variance and its two parts after k = 0 ... n examples."""
    data = PlanePrompts(s.n, s.noise, angles=96)
    prompts = data.draw(s.batch, s.seed, 0, devices.device(device), torch.float32)
    found = data.posterior(prompts.context)
    return {name: getattr(found, name).double().mean(0) for name in experiment.gives}


run = experiment.run
