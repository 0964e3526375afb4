r"""One step from zero stores facts in a matrix: how many, by the rule that makes the step.

Claim (Kim, Nichani, Wu, Bietti and Lee 2026): one step of Muon stores :math:`d^{1 + 1/(2\alpha)}` facts whose
frequencies follow a power law, and one of gradient descent :math:`d^{1/(2\alpha)}`.

One step has no step size to choose: a factor does not change which logit is largest.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import xarray as xr
from torch import Tensor

from flbook import devices
from flbook.domains import Count, Natural, Positive
from flbook.lectures.training_strategies.spectral_steps.response import gain_of_spectrum
from flbook.lectures.training_strategies.spectral_steps.stored_facts import Facts, first_gradient, stored
from flbook.runs import Experiment, Grid, axis, labelled
from flbook.training.orthogonalised import COEFFICIENTS

SPECTRAL = {  # what is made of the singular values s of minus the gradient: the matrix keeps its two bases
    "gradient": lambda s: s,
    "spectral": torch.ones_like,
    "spectral, 5 steps": lambda s: _newton_schulz(s, 5),
    "spectral, 10 steps": lambda s: _newton_schulz(s, 10),
}
RULES = (*SPECTRAL, "sign")  # Adam's first step is the sign, too


def _newton_schulz(s: Tensor, steps: int) -> Tensor:
    """What `flbook.training.orthogonalised.newton_schulz` makes of singular values."""
    (a, b, c), y = COEFFICIENTS, s / torch.linalg.vector_norm(s)
    for _ in range(steps):
        y = a * y + b * y**3 + c * y**5
    return y


def step(rule: str, u: Tensor, s: Tensor, vt: Tensor) -> Tensor:
    """The step of a rule, (d, d), from the singular value decomposition of minus the gradient."""
    if rule == "sign":
        return ((u * s) @ vt).sign()
    return (u * SPECTRAL[rule](s)) @ vt


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    alpha: tuple[Positive, ...] = axis([1.5], "power of the frequencies α")
    d: tuple[Count, ...] = axis([32, 64, 128, 256], "dimension d")
    rule: tuple[Literal[RULES], ...] = axis(["gradient", "sign", "spectral"], "rule")
    seed: tuple[Natural, ...] = axis(range(16), "seed")
    crowd: Positive = 4.0  # N over d^(1 + 1/(2 alpha))
    reach: Positive = 1.5  # ranks that are asked for, over the same

    def check(self) -> None:
        """Refuse so few facts that there is no crowd."""
        if self.crowd < 1.5:
            raise ValueError(f"crowd must be 1.5 at least, so that most facts are not stored; got {self.crowd}")

    def count(self, alpha: float, d: int) -> int:
        """N, how many facts there are."""
        return round(self.crowd * d ** (1 + 1 / (2 * alpha)))

    def ranks(self, alpha: float, d: int) -> int:
        """How many of them are asked for, the most frequent ones."""
        return min(self.count(alpha, d), round(self.reach * d ** (1 + 1 / (2 * alpha))))


experiment = Experiment(
    Setting, version=1, loops=("alpha", "d"), chunk={"alpha": 1, "d": 1}, stored="longer",
    gives={
        "stored": ("stored facts", "count"),
        "gain": ("gain k, from the singular values", "1", ("alpha", "d", "seed")),
    },
    presets={
        "tiny": ("A blink: what the tests run", dict(d=(16, 24), seed=(0, 1))),
        "steps": ("Newton and Schulz at a steep law", dict(
            alpha=(2.0,), rule=("spectral", "spectral, 5 steps", "spectral, 10 steps"), seed=tuple(range(10)))),
        "longer": ("Three laws, more seeds, minutes", dict(
            alpha=(1.25, 1.5, 2.0), rule=("spectral", "spectral, 5 steps"), seed=tuple(range(20)))),
        "gpu": ("Four times the dimension, for a GPU", dict(
            alpha=(1.25, 1.5, 2.0), d=(512, 1024), rule=("spectral", "spectral, 5 steps"), seed=tuple(range(10)))),
    },
)  # fmt: skip


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Facts that each step stores, (rule, seed), and the gain, (seed,); one seed at a time, which bounds the memory."""
    facts = Facts(s.count(s.alpha, s.d), s.d, s.alpha)
    p, found, gains = facts.frequencies.to(devices.device(device)), [], []
    for seed in s.seed:
        inputs, outputs = (part.to(p) for part in facts.draw(seed))
        parts, ranks = torch.linalg.svd(first_gradient(inputs, outputs, p)), s.ranks(s.alpha, s.d)
        found.append(torch.stack([stored(step(rule, *parts), inputs, outputs, ranks).sum() for rule in s.rule]))
        gains.append(gain_of_spectrum(parts.S))
    return {"stored": torch.stack(found, 1).double(), "gain": torch.stack(gains)}


@experiment.also
def by_rank(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """At the first alpha and d: is each fact stored, what its own output answers, how loud it is to others.

    Dimensions (rule, seed, rank). The noise of an output u is the standard deviation of its logit for an independent
    input, the length of its row in the step over the root of d.
    """
    alpha, d = setting.alpha[0], setting.d[0]
    facts = Facts(setting.count(alpha, d), d, alpha)
    p, found = facts.frequencies.to(devices.device(device)), []
    for seed in setting.seed:
        inputs, outputs = (part.to(p) for part in facts.draw(seed))
        parts = torch.linalg.svd(first_gradient(inputs, outputs, p))
        for rule in setting.rule:
            w = step(rule, *parts)
            noise = torch.linalg.vector_norm(outputs @ w, dim=-1) / d**0.5
            answer = ((inputs @ w.mT) * outputs).sum(-1)
            found.append(torch.stack([stored(w, inputs, outputs, facts.count).double(), answer, noise]))
    table = torch.stack(found).unflatten(0, (len(setting.seed), len(setting.rule))).permute(2, 1, 0, 3)
    names = {"stored": "share of seeds that store it", "answer": "own logit", "noise": "noise to others"}
    dims = ("rule", "seed", "rank")
    ranks = {"rank": ("rank", range(1, facts.count + 1), {"long_name": "rank of the fact i", "units": "1"})}
    values = {name: (dims, part, words, "1") for (name, words), part in zip(names.items(), table, strict=True)}
    return labelled(values, setting.coordinates("rule", "seed") | ranks)


run = experiment.run
