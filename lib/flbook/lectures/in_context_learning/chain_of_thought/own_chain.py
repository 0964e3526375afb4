r"""Training on the chain that the layer writes itself: intermediate labels are targets, and never tokens.

Claim (Kim and Suzuki 2025): with a filter and rounded scores, log2 k steps learn all levels, for large d. The *filter*
is as follows: a level writes nothing, 0, as long as the level below says -1 on nearly all inputs. Nodes look at lower
levels only.

At finite d, rounding may give the two parents different scores; the node then answers with a magnitude below one, and
the next step, of a size that is meant for attention of 1/M, throws it off. Two mends: each node takes only the first
step that moves it ("frozen"), and tokens are rounded to signs.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from scipy import stats
from torch import Tensor

from flbook.domains import Count, Natural, Positive
from flbook.lectures.in_context_learning.chain_of_thought import parent_law
from flbook.lectures.in_context_learning.chain_of_thought.parity_trees import ParityTree, activation
from flbook.runs import Experiment, Grid, axis

WAYS = {  # filter, frozen, signs
    "no filter": (False, False, False),
    "filter": (True, False, False),
    "filter, frozen": (True, True, False),
    "filter, signs": (True, False, True),
    "filter, frozen, signs": (True, True, True),
}


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    n: tuple[Count, ...] = axis([4000], "samples n")
    way: tuple[Literal[tuple(WAYS)], ...] = axis(["filter", "filter, frozen, signs"], "way of training")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    d: Count = 32
    k: Count = 8
    gap: Positive = 9.0
    more: Natural = 1  # steps beyond log2 k
    points: Count = 1000

    def check(self) -> None:
        """Refuse a tree that does not fit."""
        ParityTree(self.d, self.k)

    @property
    def lr(self) -> float:
        """The step size."""
        return self.gap * (self.d + self.k - 1) ** 2 / 4

    @property
    def steps(self) -> int:
        """Of training: one for each level, and some more."""
        return self.k.bit_length() - 1 + self.more


experiment = Experiment(
    Setting, version=1, loops=("n", "way"), chunk={"n": 1, "way": 1}, stored="longer", devices=("cpu",),
    beside={"step": (lambda s: range(1, s.steps + 1), "training step", "count")},
    gives={"accuracy": ("test accuracy of the label", "fraction", ("n", "way", "seed", "step"))},
    presets={
        "tiny": ("A blink", dict(n=(300,), way=tuple(WAYS), seed=(0, 1), d=8, k=4, points=50)),
        "longer": ("All ways, 120 draws, two sample sizes; two minutes", dict(
            n=(4000, 12000), way=tuple(WAYS), seed=tuple(range(120)))),
    },
)  # fmt: skip


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Accuracy after each step, (seed, step)."""
    return {"accuracy": torch.tensor([train(s, seed) for seed in s.seed], dtype=torch.float64)}


run = experiment.run


def train(s: Setting, seed: int) -> list[float]:
    """The accuracies of one draw after each step."""
    tree, (filtered, frozen, signs) = ParityTree(s.d, s.k), WAYS[s.way]
    tokens, fresh = tree.draw(s.n, seed).tokens, tree.draw(s.points, seed, "test")
    w, moved, found = torch.zeros(s.k - 1, tree.length), torch.zeros(s.k - 1, dtype=torch.bool), []
    for _ in range(s.steps):
        g = slope(w, tokens, tree, filtered, signs)
        g = g.masked_fill(moved[:, None], 0) if frozen else g
        moved |= (g != 0).any(-1)
        w = (w - s.lr * g).round()
        chain = written(w, fresh.tokens[:, : s.d], tree, False, signs)
        found.append(float((chain[:, -1] * fresh.y > 0).double().mean()))
    return found


def written(w: Float[Tensor, "nodes T"], bits: Float[Tensor, "n d"], tree: ParityTree, filtered: bool,
            signs: bool) -> Float[Tensor, "n T"]:  # fmt: skip
    """Bits and the chain that the layer writes, level by level; 0 where the filter stops it."""
    tokens, is_open = torch.nn.functional.pad(bits, (0, tree.k - 1)), True
    for level in range(1, int(tree.levels.max()) + 1):
        mine = tree.levels == level
        if is_open:
            said = activation(tokens @ attention(w, tree)[mine].mT)
            tokens[:, tree.d :][:, mine] = torch.where(said > 0, 1.0, -1.0) if signs else said
            is_open = not filtered or bool((said + 1).mean() > 0.5)
    return tokens


def attention(w: Float[Tensor, "nodes T"], tree: ParityTree) -> Float[Tensor, "nodes T"]:
    """Softmax over the tokens of lower levels."""
    below = torch.cat([torch.zeros(tree.d, dtype=torch.long), tree.levels]) < tree.levels[:, None]
    return w.masked_fill(~below, -torch.inf).softmax(-1)


def slope(w: Float[Tensor, "nodes T"], tokens: Float[Tensor, "n T"], tree: ParityTree, filtered: bool,
          signs: bool) -> Float[Tensor, "nodes T"]:  # fmt: skip
    """Gradient of each node's own loss in its own scores, at the tokens that it writes; 0 where it is stopped."""
    a, own = attention(w, tree), written(w, tokens[:, : tree.d], tree, filtered, signs)
    z = own @ a.mT
    writes = (own[:, tree.d :] != 0).any(0)
    pulled = torch.where(writes, (activation(z) - tokens[:, tree.d :]) * 4 * z, 0) / len(tokens)
    return a * (pulled.mT @ own - (pulled * z).sum(0)[:, None])


def unsplit(s: Setting, n: int) -> float:
    """Theory: the chance that rounding gives the two parents of every node the same score.

    They differ by a normal number whose standard deviation follows from the z^3 term alone; where in the unit interval
    they fall is taken as uniform.
    """
    chance, m = 1.0, s.d
    for level in range(1, s.k.bit_length()):
        sd = s.lr * 4 / m * 2 * parent_law.exact(m, 1.0).apart / np.sqrt(n)
        same = 2 * stats.norm.cdf(1 / sd) - 1 - 2 * sd * (stats.norm.pdf(0) - stats.norm.pdf(1 / sd))
        chance *= same ** (s.k >> level)
        m += s.k >> level
    return float(chance)
