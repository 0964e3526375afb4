r"""One gradient step on the chain, and how often the layer then gets fresh labels right.

The step is :math:`\eta = \mathrm{gap}\,T^2/4`, which lifts the scores of a last node's parents above the others by the
gap. The layer writes the chain itself, each node rounded to a sign before the next one reads it, or not.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from flbook import devices
from flbook.domains import Count, FlipProbability, Natural, Positive
from flbook.lectures.in_context_learning.chain_of_thought.parity_trees import ChainTraining, ParityTree
from flbook.runs import Experiment, Grid, axis
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    n: tuple[Count, ...] = axis([250, 500, 1000, 2000, 3000, 4000], "samples n")
    tokens: tuple[Literal["rounded", "as written"], ...] = axis(["rounded", "as written"], "tokens of its own chain")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    d: Count = 32
    k: Count = 8
    flip: FlipProbability = 0.0
    gap: Positive = 12.0
    points: Count = 1000  # fresh inputs

    def check(self) -> None:
        """Refuse a tree that does not fit."""
        ParityTree(self.d, self.k)

    @property
    def lr(self) -> float:
        """The step size."""
        return self.gap * (self.d + self.k - 1) ** 2 / 4


experiment = Experiment(
    Setting, version=1, loops=("n",), chunk={"n": 1},
    gives={"accuracy": ("test accuracy of the label", "fraction")},
    presets={"tiny": ("A blink", dict(n=(50, 200), seed=(0, 1), d=8, k=4, points=50))},
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Accuracy after one step, (tokens, seed)."""
    tree = ParityTree(s.d, s.k, s.flip)
    where = devices.device(device)
    problem = ChainTraining(tree.draw(s.n, s.seed).tokens.to(where), s.d)
    params, _ = fit(problem, GradientDescent(s.lr), 1)
    fresh = tree.draw(s.points, s.seed, "test")
    bits, y = fresh.tokens[..., : s.d].to(where), fresh.y.to(where)
    said = [problem.answers(params, bits, kind == "rounded")[..., -1] for kind in s.tokens]
    return {"accuracy": torch.stack([(part * y > 0).double().mean(-1) for part in said])}


run = experiment.run
