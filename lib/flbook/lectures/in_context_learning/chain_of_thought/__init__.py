r"""How many samples does one gradient step need to find the parents of all steps of a parity's chain?

Claim (derived here): about :math:`4 M \ln M` at a node with M tokens before it, the count of a signal of third moments;
Kim and Suzuki (2025) prove that :math:`d^{2+\epsilon}` are enough for any oracle of the gradient up to small errors.

The sample size of a draw is the one at which the step finds all parents, on a grid of multiples of the leading law.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook import devices
from flbook.domains import Count, FlipProbability, Natural, Positive
from flbook.lectures.in_context_learning.chain_of_thought import parent_law
from flbook.lectures.in_context_learning.chain_of_thought.parity_trees import ParityTree, found
from flbook.runs import Experiment, Grid, axis, lattice


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    flip: tuple[FlipProbability, ...] = axis([0.0], "chance of a flipped step")
    k: tuple[Count, ...] = axis([8], "hidden bits k")
    d: tuple[Count, ...] = axis([16, 32, 64, 128], "bits d")
    ratio: tuple[Positive, ...] = axis(lattice(0.25, 2.5, 12), "samples over the leading law")
    seed: tuple[Natural, ...] = axis(range(40), "seed")

    def check(self) -> None:
        """Refuse a tree that does not fit."""
        for k in self.k:
            ParityTree(d=min(self.d), k=k)

    def sizes(self) -> np.ndarray:
        """The sample sizes of a cell."""
        law = parent_law.needed(self.d, self.k, self.flip, parent_law.leading)
        return np.round(law * np.array(self.ratio)).astype(int)


experiment = Experiment(
    Setting, version=1, loops=("flip", "k", "d"), chunk={"d": 1}, stored="longer",
    gives={
        "found": ("are the parents of all nodes found", "1"),
        "needed": ("samples needed n*", "count", ("flip", "k", "d", "seed")),
    },
    presets={
        "tiny": ("A blink: what the tests run", dict(d=(8, 12), k=(4,), ratio=(0.1, 0.5, 1.0, 3.0), seed=(0, 1))),
        "depths": ("Products of two to 32 bits of 64", dict(d=(64,), k=(2, 4, 8, 16, 32), seed=tuple(range(100)))),
        "longer": ("Clean and noisy steps, three hundred draws; minutes", dict(
            flip=(0.0, 0.05), seed=tuple(range(300)))),
    },
)  # fmt: skip


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Found at each sample size, (ratio, seed), and the size of each draw, (seed,); the samples of one grow."""
    tree, sizes, solved = ParityTree(s.d, s.k, s.flip), s.sizes(), []
    for seed in s.seed:  # one at a time, which bounds the memory
        tokens, parents, _ = (part.to(devices.device(device)) for part in tree.draw(int(sizes.max()), seed))
        solved.append(found(growing(tokens, s.d, sizes), parents, s.d).all(-1))
    solved = torch.stack(solved, 1)
    return {"found": solved.double(), "needed": threshold(solved, sizes)}


run = experiment.run


def growing(tokens: Float[Tensor, "n T"], d: int, sizes: np.ndarray) -> Float[Tensor, "sizes nodes T"]:
    """The first gradient, up to a factor at each node, from the first samples of each size."""
    seen = torch.arange(d, tokens.shape[-1], device=tokens.device)
    z = tokens.cumsum(-1)[:, d - 1 : -1] / seen
    pulled = (1 + tokens[:, d:] - 2 * z.square()) * z
    parts = []
    for first, last in zip([0, *sizes[:-1]], sizes, strict=True):
        p = pulled[first:last]
        parts.append(p.mT @ tokens[first:last] - (p * z[first:last]).sum(0)[:, None])
    return torch.stack(parts).cumsum(0)


def threshold(solved: Tensor, sizes: Int[np.ndarray, " sizes"]) -> Float[Tensor, " seed"]:
    """The size up to which a draw fails: the integral of failure over n by trapezoids, from n = 0 on."""
    n = torch.tensor(np.concatenate([[0], sizes]), dtype=torch.float64)
    fails = torch.cat([torch.ones_like(solved[:1]), ~solved]).double()
    return torch.trapezoid(fails, n.to(fails), dim=0)
