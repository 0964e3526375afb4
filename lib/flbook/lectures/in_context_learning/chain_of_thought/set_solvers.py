r"""Finding the hidden bits without a network: linear algebra from final labels, and pair search from intermediate ones.

In bits a parity is linear, so d clean labels of independent inputs give it away by Gaussian elimination over two
elements. With flips a single elimination fails; *pooled* elimination takes random rows, solves, and asks the other
samples, until the answer fits.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from flbook import rng
from flbook.domains import Count, FlipProbability, Natural
from flbook.lectures.in_context_learning.chain_of_thought.parity_trees import Chains, ParityTree
from flbook.runs import Experiment, Grid, axis

SOLVERS = ("elimination", "pooled elimination", "pair search")


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    solver: tuple[Literal[SOLVERS], ...] = axis(SOLVERS, "solver")
    n: tuple[Count, ...] = axis([16, 32, 72, 256], "samples n")
    seed: tuple[Natural, ...] = axis(range(20), "seed")
    d: Count = 64
    k: Count = 8
    flip: FlipProbability = 0.05
    most: Count = 4000  # eliminations at most

    def check(self) -> None:
        """Refuse a tree that does not fit."""
        ParityTree(self.d, self.k)


experiment = Experiment(
    Setting, version=1, loops=("solver", "n"), chunk={"solver": 1, "n": 1}, devices=("cpu",),
    gives={"found": ("are all hidden bits found", "1"), "tries": ("eliminations", "count")},
    presets={"tiny": ("A blink", dict(n=(12, 60), seed=(0, 1), d=8, k=4, most=100))},
    missing=("tries",),
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Is the set right, (seed,), and after how many eliminations, (seed,)."""
    tree, found, tries = ParityTree(s.d, s.k, s.flip), [], []
    for seed in s.seed:
        chains, truth = tree.draw(s.n, seed), tree.hidden(seed)
        if s.solver == "pair search":
            found.append(bool((pairs(chains.tokens, s.d) == chains.parents.sort(-1).values).all()))
            tries.append(0)
            continue
        hidden = torch.zeros(s.d, dtype=torch.bool).scatter(0, truth, True)
        rows = as_bits(chains, s.d)
        if s.solver == "elimination":
            found.append(bool((eliminated(rows[None])[0] == hidden).all()) and s.n >= s.d)
            tries.append(1)
        else:
            answer, count = pooled(rows, s.most, seed)
            found.append(answer is not None and bool((answer == hidden).all()))
            tries.append(count)
    return {"found": torch.tensor(found).double(), "tries": torch.tensor(tries).double()}


run = experiment.run


def as_bits(chains: Chains, d: int) -> Bool[Tensor, "n columns"]:
    """Inputs and final labels, true for -1."""
    return torch.cat([chains.tokens[:, :d], chains.tokens[:, -1:]], -1) < 0


def eliminated(rows: Bool[Tensor, "B r columns"]) -> Bool[Tensor, "B d"]:
    """A solution of each system over two elements, Gauss and Jordan; coordinates that are left free are 0.

    An inconsistent system gives the solution of the rows that were pivots.
    """
    a, members, d = rows.clone(), torch.arange(len(rows)), rows.shape[-1] - 1
    used, places, pivots = torch.zeros_like(a[..., 0]), [], []
    for column in range(d):
        ready = a[..., column] & ~used
        exists, place = ready.any(-1), ready.byte().argmax(-1)
        pivot = a[members, place] & exists[:, None]
        clear = a[..., column].clone()
        clear[members, place] = False
        a ^= clear[..., None] & pivot[:, None]
        used[members, place] |= exists
        places.append(place)
        pivots.append(exists)
    return torch.stack([a[members, place, d] & exists for place, exists in zip(places, pivots, strict=True)], -1)


def pooled(rows: Bool[Tensor, "n columns"], most: int, seed: int, batch: int = 50) -> tuple[Tensor | None, int]:
    """The first solution of d + 3 random rows that four fifths of all rows agree with, and how many were solved."""
    d, generator = rows.shape[-1] - 1, rng.generator(seed, "rows")
    if len(rows) < d + 3:
        return None, 0
    for start in range(0, most, batch):
        chosen = torch.rand(batch, len(rows), generator=generator).argsort(-1)[:, : d + 3]
        answers = eliminated(rows[chosen])
        odd = (answers.float() @ rows[:, :d].float().T) % 2 > 0.5
        fits = (odd == rows[:, d]).float().mean(-1) > 0.8
        if fits.any():
            first = int(fits.byte().argmax())
            return answers[first], start + first + 1
    return None, most


def pairs(tokens: Float[Tensor, "n T"], d: int) -> Int[Tensor, "nodes 2"]:
    """For each node the two earlier tokens whose product agrees with it most often."""
    found = []
    for m in range(d, tokens.shape[-1]):
        agree = ((tokens[:, :m] * tokens[:, m : m + 1]).mT @ tokens[:, :m]).triu(1)
        best = int(agree.argmax())
        found.append((best // m, best % m))
    return torch.tensor(found)
