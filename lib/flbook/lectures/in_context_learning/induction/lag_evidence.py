r"""Which lag has the parent? The evidence of Bayes, the gradient summed over places, and pooled counts, on chains.

The evidence of a lag integrates the transition matrix out: for each context a Dirichlet-multinomial law of the tokens
after each token, at places that all lags can predict.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.domains import Count, Natural, Positive
from flbook.lectures.in_context_learning.induction.causal_chains import CausalContexts, Contexts
from flbook.lectures.in_context_learning.induction.parent_gradient import gains, pooled
from flbook.runs import Experiment, Grid, axis

METHODS = ("Bayes", "sampled", "soft", "pooled")


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    tokens: tuple[Count, ...] = axis([3, 10], "tokens S")
    method: tuple[Literal[METHODS], ...] = axis(METHODS, "statistic")
    contexts: tuple[Count, ...] = axis([2, 5, 10, 30, 100, 300], "contexts N")
    seed: tuple[Natural, ...] = axis(range(100), "seed")
    length: Count = 20
    lags: Count = 5
    drawn: Count = 300  # contexts of a seed, of which the first are used
    alpha: Positive = 1.0

    def check(self) -> None:
        """Refuse more contexts than are drawn."""
        if max(self.contexts) > self.drawn:
            raise ValueError(f"contexts must be at most drawn = {self.drawn}; got {max(self.contexts)}")


experiment = Experiment(
    Setting, version=1, loops=("tokens",), chunk={"tokens": 1}, devices=("cpu",),
    gives={"right": ("is the lag of the parent found", "1")},
    presets={"tiny": ("A blink", dict(tokens=(3,), contexts=(2, 10), seed=(0, 1), length=8, lags=2, drawn=10))},
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Right or wrong, (method, contexts, seed); all contexts of all seeds at once."""
    drawn = CausalContexts(s.tokens, s.length, s.alpha).draw(s.drawn, s.seed)
    found = []
    for method in s.method:
        if method == "pooled":
            prefixes = [pooled(Contexts(*(part[:, :n] for part in drawn))) for n in s.contexts]
            tables = [torch.stack([t.diagonal(-lag, -2, -1).mean(-1) for lag in range(1, s.lags + 1)], -1)
                      for t in prefixes]  # fmt: skip
        else:
            each = evidence(drawn, s.lags, s.alpha) if method == "Bayes" else by_lag(drawn, s.lags, method)
            tables = [each[:, :n].sum(1) for n in s.contexts]
        found.append(torch.stack([(table.argmax(-1) == 0).double() for table in tables]))
    return {"right": torch.stack(found)}


run = experiment.run


def by_lag(drawn: Contexts, lags: int, kind: str) -> Float[Tensor, "*E n lags"]:
    """What each context adds to the gradient at each lag, from 1 on: a mean over places."""
    asked, gain = (drawn.tokens == drawn.query[..., None]).double(), gains(drawn, kind)
    return torch.stack([(asked[..., :-lag] * gain[..., lag:]).mean(-1) for lag in range(1, lags + 1)], -1)


def evidence(drawn: Contexts, lags: int, alpha: float) -> Float[Tensor, "*E n lags"]:
    """Log evidence of each context that the parent is so many places back."""
    size = drawn.rows.shape[-1]
    hot = torch.nn.functional.one_hot(drawn.tokens, size).double()
    found = []
    for lag in range(1, lags + 1):
        pairs = hot[..., lags - lag : -lag, :].mT @ hot[..., lags:, :]  # how often t after s
        row = torch.lgamma(pairs + alpha).sum(-1) - torch.lgamma(pairs.sum(-1) + size * alpha)
        found.append(row.sum(-1))
    return torch.stack(found, -1)
