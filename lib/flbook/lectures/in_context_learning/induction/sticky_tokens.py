r"""When does a place look at itself? Sticky tokens, :math:`\pi = \rho I + (1 - \rho)\,\pi_0`.

Claim (derived here): in long contexts the slope at the place itself exceeds that at the parent if and only if
:math:`\rho > I_0/(S - 1 + I_0)`, with the chi-square information :math:`I_0` of a transition by :math:`\pi_0`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from flbook.domains import Count, Natural, Positive, Probability
from flbook.lectures.in_context_learning.induction.causal_chains import CausalContexts
from flbook.lectures.in_context_learning.induction.parent_gradient import gains, limits
from flbook.runs import Experiment, Grid, axis


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    tokens: tuple[Count, ...] = axis([3], "tokens S")
    length: tuple[Count, ...] = axis([20, 80, 320], "length T")
    rho: tuple[Probability, ...] = axis([0.0, 0.08, 0.12, 0.16, 0.2, 0.24], "stickiness ρ")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    count: Count = 1000  # contexts of a seed
    alpha: Positive = 1.0


experiment = Experiment(
    Setting, version=1, loops=("tokens", "length", "rho"), chunk={"tokens": 1, "length": 1},
    devices=("cpu",),
    gives={"itself": ("slope at the place itself, times S", "1"), "parent": ("slope at the parent, times S", "1")},
    presets={
        "tiny": ("A blink", dict(length=(8,), rho=(0.0, 0.3), seed=(0, 1), count=30)),
        "longer": ("Larger alphabets and more contexts; minutes", dict(
            tokens=(3, 5, 10), length=(20, 80, 320, 1280), rho=(0.03, 0.06, 0.09, 0.12, 0.15, 0.18, 0.22, 0.26),
            count=8000)),
    },
)  # fmt: skip


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Slopes with the law of the next token, a mean over contexts and places, (seed,)."""
    itself, parent = [], []
    for seed in s.seed:
        drawn = CausalContexts(s.tokens, s.length, s.alpha, s.rho).draw(s.count, seed)
        asked = (drawn.tokens == drawn.query[:, None]).double()
        gain = gains(drawn, "soft")
        itself.append(s.tokens * (asked * gain)[:, 1:].mean())
        parent.append(s.tokens * (asked[:, :-1] * gain[:, 1:]).mean())
    return {"itself": torch.stack(itself), "parent": torch.stack(parent)}


run = experiment.run


def threshold(tokens: int, alpha: float = 1.0, count: int = 40_000, seed: int = 0) -> float:
    """The stickiness from which on a place looks at itself, in long contexts."""
    information = limits(tokens, alpha, 2, count, seed)["information"][1].item()
    return information / (tokens - 1 + information)


def crossing(found):
    """Where the slope at the place itself passes that at the parent, by a line between neighbours; of each seed."""
    lead = (found.itself - found.parent).transpose(..., "rho")
    above = (lead > 0).argmax("rho").clip(min=1)
    left, at_right = lead.isel(rho=above - 1), lead.isel(rho=above)
    rho = found.rho
    low, high = rho.isel(rho=above - 1).drop_vars("rho"), rho.isel(rho=above).drop_vars("rho")
    left, at_right = left.drop_vars("rho"), at_right.drop_vars("rho")
    return low - left * (high - low) / (at_right - left)
