r"""By how much one round multiplies a small circulant part of the metric: 1 + f, with f the share of the table.

The response of the profile to a small one around M = I: :math:`g = \langle c, \delta c'\rangle/\langle c, c\rangle`
with a random profile c of mean zero, and c' the profile after one round, by a central difference.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from flbook import devices, rng
from flbook.domains import Count, Natural, Positive, Probability
from flbook.lectures.representation.grokking.modular_table import ModularTable, inputs, targets
from flbook.lectures.representation.grokking.recursive_machine import batches, circulant, one_round, profile
from flbook.runs import Experiment, Grid, axis


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    p: tuple[Count, ...] = axis([31], "modulus p")
    share: tuple[Probability, ...] = axis([0.3, 0.45, 0.61, 0.77, 0.9], "share of the table f")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    size: Positive = 1e-4  # R of the small profile


experiment = Experiment(
    Setting, version=1, loops=("p", "share"), chunk={"p": 1, "share": 1}, stored="longer",
    gives={"growth": ("growth of a small circulant part in a round", "1"),
           "exact_share": ("share that is shown, a multiple of 1/p", "1", ("p", "share"))},
    presets={
        "tiny": ("A blink", dict(p=(7,), share=(0.5,), seed=(0, 1))),
        "longer": ("Larger moduli, minutes", dict(p=(19, 31, 47, 61), share=(0.5,))),
    },
)  # fmt: skip


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Growth, (seed,)."""
    table, found = ModularTable(s.p, s.share), []
    for some in batches(s.seed, table.n):
        train = table.draw(some).train.to(devices.device(device))
        x, y = inputs(train, s.p), targets(train, s.p)
        c = rng.normal((s.p,), some, "profile").to(x)
        c = s.size * s.p**-0.5 * (c - c.mean(-1, keepdim=True))
        after = [profile(one_round(x, y, circulant(sign * c))[1]) for sign in (1, -1)]
        found.append((c * (after[0] - after[1])).sum(-1) / (2 * c * c).sum(-1))
    return {"growth": torch.cat(found), "exact_share": torch.tensor(table.n / s.p**2)}


run = experiment.run
