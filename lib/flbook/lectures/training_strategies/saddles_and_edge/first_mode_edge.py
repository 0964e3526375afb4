r"""Where balanced layers stop settling: the first mode alone sets the edge.

At a balanced minimum the sharpness of L layers is :math:`\lambda = L s_1^{2-2/L}`. Networks start small at random, so
nearly balanced, and learn two modes with the step size :math:`2\varrho/\lambda`, for ratios on both sides of 1.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from flbook.domains import Count, Natural, Positive, Range
from flbook.lectures.training_strategies.saddles_and_edge.linear_network import LinearNetworkTraining, random_layers
from flbook.runs import Experiment, Grid, axis
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

SIGMA = {2: 0.003, 3: 0.02, 4: 0.06}  # standard deviation of the start
STRENGTHS = (2.0, 1.0)


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on."""

    depth: tuple[Annotated[int, Range(2, 4)], ...] = axis([2, 3, 4], "layers L")
    ratio: tuple[Positive, ...] = axis([0.94, 0.97, 0.99, 1.01, 1.03, 1.06], "step size over that of the edge")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    m: Count = 8
    steps: Count = 1000


experiment = Experiment(
    Setting, version=1, loops=("depth",), chunk={"depth": 1},
    gives={"swing": ("largest change of a mode in the last step, over its strength", "1")},
    presets={"tiny": ("A blink", dict(depth=(2,), ratio=(0.94, 1.06), seed=(0, 1), m=4, steps=300))},
)


def edge(depth: int, strength: float = STRENGTHS[0]) -> float:
    """The step size 2/lambda of the balanced minimum."""
    return 2 / (depth * strength ** (2 - 2 / depth))


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """How far the modes still swing at the end, (ratio, seed)."""
    layers = random_layers(2, s.m, SIGMA[s.depth], s.seed, s.depth)
    many = tuple(w.expand(len(s.ratio), *w.shape) for w in layers)
    strength = torch.tensor(STRENGTHS, dtype=torch.float64)
    training = LinearNetworkTraining(torch.diag(strength), many).to(device)
    lr = edge(s.depth) * torch.tensor(s.ratio, dtype=torch.float64, device=device)[:, None].expand(-1, len(s.seed))
    before, _ = fit(training, GradientDescent(lr), s.steps - 1)
    after, _ = fit(training, GradientDescent(lr), 1, start=before)
    swing = (training.modes(after) - training.modes(before)).abs() / strength.to(lr)
    return {"swing": swing.amax(-1)}


run = experiment.run
