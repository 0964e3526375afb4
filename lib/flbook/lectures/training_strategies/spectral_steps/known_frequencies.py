r"""What a step stores that knows how often each fact is asked for.

The spectral step does not know it. Whitening divides the gradient by the inputs' second moment
:math:`C = \sum_i p_i e_i e_i^\top`, which is a Newton step of the squared loss; the Hebbian sum over the M most
frequent facts gives each the weight 1 and the others 0, :math:`W = \sum_{i \le M} u_i e_i^\top`.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from flbook import devices
from flbook.domains import Count, Natural, Positive
from flbook.lectures.training_strategies.spectral_steps.response import log_below, normal_grid
from flbook.lectures.training_strategies.spectral_steps.stored_facts import Facts, first_gradient, stored
from flbook.runs import Experiment, Grid, axis
from flbook.training.orthogonalised import polar_factor

RULES = ("spectral", "whitened", "most frequent")


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    d: tuple[Count, ...] = axis([32, 64, 128], "dimension d")
    rule: tuple[Literal[RULES], ...] = axis(RULES, "rule")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    alpha: Positive = 1.5
    crowd: Positive = 4.0  # N over d^(1 + 1/(2 alpha))

    def count(self, d: int) -> int:
        """N, how many facts there are."""
        return round(self.crowd * d ** (1 + 1 / (2 * self.alpha)))


experiment = Experiment(
    Setting, version=1, loops=("d",), chunk={"d": 1},
    gives={"stored": ("stored facts", "count")},
    presets={"tiny": ("A blink", dict(d=(12, 16), seed=(0, 1)))},
)


def of_most_frequent(m: int, d: int, count: int) -> float:
    r"""How many of the M most frequent facts their plain sum stores.

    Its answer to one of them is a vector of length :math:`\sqrt{1 + M/d}` of which the own output reads
    :math:`1 + z\sqrt M/d`. An output that is not in the sum reads a coordinate of it; one that is in the sum reads its
    own input's share, of variance 1/d, in addition.
    """
    z, weight = normal_grid()
    own = 1 + z * math.sqrt(m) / d
    inside, outside = (log_below(own / math.sqrt(length), d) for length in (2 + m / d, 1 + m / d))
    return float(m * np.exp((m - 1) * inside + (count - m) * outside) @ weight)


def best_sum(d: int, count: int) -> tuple[int, float]:
    r"""The M whose sum stores most, and how many that is; both grow like :math:`d^2/\ln N`."""
    sizes = np.unique(np.geomspace(d / 4, min(count, d * d), 200).round().astype(int))
    found = [of_most_frequent(int(m), d, count) for m in sizes]
    return int(sizes[np.argmax(found)]), max(found)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Facts that each step stores, (rule, seed); one seed at a time, which bounds the memory."""
    count = s.count(s.d)
    facts, m, found = Facts(count, s.d, s.alpha), best_sum(s.d, count)[0], []
    p, ranks = facts.frequencies.to(devices.device(device)), min(count, max(m, round(0.4 * count)))
    for seed in s.seed:
        inputs, outputs = (part.to(p) for part in facts.draw(seed))
        g = first_gradient(inputs, outputs, p)
        steps = {
            "spectral": lambda g=g: polar_factor(g),
            "whitened": lambda g=g, e=inputs: torch.linalg.solve((p[:, None] * e).mT @ e, g, left=False),
            "most frequent": lambda e=inputs, u=outputs: u[:m].mT @ e[:m],
        }
        found.append(torch.stack([stored(steps[rule](), inputs, outputs, ranks).sum() for rule in s.rule]))
    return {"stored": torch.stack(found, 1).double()}


run = experiment.run
