r"""How many contexts does the first gradient of attention need to find every place's parent?

Claim (derived here): minus the gradient at uniform attention is in long contexts a chi-square inner product,
:math:`S g_{ij} = E\langle u_{ij}, v\rangle`, of the densities of (token j, token i) and of (parent, token i) less one;
among the places before i it is largest at the parent. Nichani, Damian and Lee (2024) prove that training arrives there.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from flbook import devices
from flbook.domains import Count, Natural, Positive
from flbook.lectures.in_context_learning.induction.causal_chains import CausalContexts, Contexts
from flbook.lectures.in_context_learning.induction.parent_gradient import gradient, pooled, right
from flbook.runs import Experiment, Grid, axis

METHODS = ("sampled", "soft", "pooled")  # the gradient with a sampled next token, with its law; pooled pair counts
GRAPHS = ("chain", "tree")


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    graph: tuple[Literal[GRAPHS], ...] = axis(GRAPHS, "causal graph")
    tokens: tuple[Count, ...] = axis([3, 10], "tokens S")
    method: tuple[Literal[METHODS], ...] = axis(METHODS, "statistic")
    contexts: tuple[Count, ...] = axis([30, 100, 300, 1000, 3000], "contexts N")
    seed: tuple[Natural, ...] = axis(range(20), "seed")  # of the contexts, and of the tree
    length: Count = 20
    drawn: Count = 3000  # contexts of a seed, of which the first are used
    alpha: Positive = 1.0

    def check(self) -> None:
        """Refuse contexts without a pair."""
        if self.length < 3:
            raise ValueError(f"length must be at least 3, so that there is a choice; got {self.length}")
        if max(self.contexts) > self.drawn:
            raise ValueError(f"contexts must be at most drawn = {self.drawn}; got {max(self.contexts)}")

    def problem(self, graph: str, tokens: int, seed: int) -> CausalContexts:
        """The contexts of a cell."""
        return CausalContexts(tokens, self.length, self.alpha, tree=seed if graph == "tree" else None)


experiment = Experiment(
    Setting, version=1, loops=("graph", "tokens"), chunk={"graph": 1, "tokens": 1},
    gives={"right": ("share of places whose parent is found", "1")},
    presets={
        "tiny": ("A blink", dict(tokens=(3,), contexts=(10, 30), seed=(0, 1), length=6, drawn=30)),
        "longer": ("Four alphabets, longer contexts, more seeds; minutes", dict(
            tokens=(3, 5, 10, 20), contexts=(30, 100, 300, 1000, 3000, 10_000), seed=tuple(range(40)), length=40,
            drawn=10_000)),
    },
)  # fmt: skip


def statistic(method: str, drawn: Contexts) -> Tensor:
    """What each method compares, (T, T)."""
    return pooled(drawn) if method == "pooled" else gradient(drawn, method)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Shares, (method, contexts, seed): the first contexts of one draw."""
    found = []
    for seed in s.seed:
        problem = s.problem(s.graph, s.tokens, seed)
        drawn = Contexts(*(part.to(devices.device(device)) for part in problem.draw(s.drawn, seed)))
        for method in s.method:
            for count in s.contexts:
                table = statistic(method, Contexts(*(part[:count] for part in drawn)))
                found.append(right(table, problem.parents, itself=method != "pooled"))
    return {"right": torch.stack(found).view(len(s.seed), len(s.method), -1).permute(1, 2, 0)}


run = experiment.run
