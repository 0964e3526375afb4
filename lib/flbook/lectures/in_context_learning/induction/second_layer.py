r"""The second layer's temperature once the parents are copied, and what other predictors lose.

Claim (derived here, a heuristic): with :math:`\beta` the head predicts the query's transitions plus the context's
frequencies as about :math:`e^{-\beta}T` observations; Bayes has :math:`S\alpha` uniform ones; so the best is about
:math:`\ln(T/(S\alpha))`.
"""

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from flbook.domains import Count, Natural, Positive
from flbook.lectures.in_context_learning.induction.causal_chains import CausalContexts
from flbook.runs import Experiment, Grid, axis

FLOOR = 1e-4  # added to every probability, since a context may lack the next token
BETAS = np.linspace(0, 7, 141)


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    tokens: tuple[Count, ...] = axis([3, 10], "tokens S")
    length: tuple[Count, ...] = axis([20, 80, 320], "length T")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    count: Count = 1000  # contexts of a seed
    alpha: Positive = 1.0


AXES = ("tokens", "length", "seed")
experiment = Experiment(
    Setting, version=1, loops=("tokens", "length"), chunk={"tokens": 1, "length": 1},
    devices=("cpu",),
    gives={
        "head": ("loss above the entropy", "nats", (*AXES, "beta")),
        "bayes": ("loss above the entropy, Bayes", "nats"),
        "counts": ("loss above the entropy, the query's own counts", "nats"),
        "unigram": ("loss above the entropy, frequencies of the context", "nats"),
    },
    beside={"beta": (lambda s: BETAS, "inverse temperature β of the second layer")},
    presets={"tiny": ("A blink", dict(tokens=(3,), length=(8, 16), seed=(0, 1), count=40)),
             "longer": ("More alphabets and lengths; minutes", dict(
                 tokens=(2, 3, 5, 10, 20), length=(20, 40, 80, 160, 320, 640, 1280), count=5000))},
)  # fmt: skip


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Excess losses, (seed, beta) and (seed,)."""
    found: dict[str, list[Tensor]] = {}
    for seed in s.seed:
        drawn = CausalContexts(s.tokens, s.length, s.alpha).draw(s.count, seed)
        hot = torch.nn.functional.one_hot(drawn.tokens, s.tokens).double()
        often, after = hot.sum(1), (hot[:, 1:] * (drawn.tokens[:, :-1] == drawn.query[:, None])[..., None]).sum(1)
        weight = torch.from_numpy(BETAS).exp()[:, None, None] - 1
        laws = {"head": often + weight * after, "bayes": after + s.alpha, "counts": after, "unigram": often}
        for name, law in laws.items():
            found.setdefault(name, []).append(excess(law, drawn.rows))
    return {name: torch.stack(values) for name, values in found.items()}


run = experiment.run


def excess(law: Float[Tensor, "*E n S"], rows: Float[Tensor, "n S"]) -> Float[Tensor, "*E"]:
    """Cross-entropy above the entropy, in nats, of a law up to its sum; one without counts is uniform."""
    total = law.sum(-1, keepdim=True)
    law = torch.where(total > 0, law / total.clamp(min=1e-300), 1 / law.shape[-1])
    return (torch.special.xlogy(rows, rows) - rows * (law + FLOOR).log()).sum(-1).mean(-1)


def best(found: xr.Dataset) -> xr.DataArray:
    """The beta of the least loss, by a parabola through the lowest three, of each seed."""
    head, step = found["head"].transpose(..., "beta").values, BETAS[1] - BETAS[0]
    k = head.argmin(-1).clip(1, len(BETAS) - 2)[..., None]
    a, b, c = (np.take_along_axis(head, k + j, -1)[..., 0] for j in (-1, 0, 1))
    return found.bayes.copy(data=BETAS[k[..., 0]] + step * (a - c) / (2 * (a - 2 * b + c)))
