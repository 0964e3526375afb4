"""Prompts of linear regression that training never showed: other inputs, other labels, another query."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from flbook import rng
from flbook.data.prompts import LinearPrompts, Prompts
from flbook.domains import Checked, Count
from flbook.shapes import Context


def _scaled(inputs: float, labels: float = 1.0) -> Callable:
    return lambda x, query, task, extra: (inputs * x, inputs * query, labels * task, 0.0)


def _coloured(spread: Callable[[int], list[float]]) -> Callable:
    """Standard deviations along random directions, one rotation a prompt, their mean square 1."""

    def shift(x, query, task, extra):
        d = x.shape[-1]
        size = torch.tensor(spread(d), dtype=x.dtype, device=x.device)
        turn = torch.linalg.qr(extra(d, d)).Q * (size * math.sqrt(d) / size.norm())
        x, query = (torch.einsum("...nd,...cd->...nc", points, turn) for points in (x, query))
        return x, query, task, 0.0

    return shift


def _one_orthant(x, query, task, extra):
    """All examples in one orthant, a random one a prompt; the query anywhere."""
    return x.abs() * extra(1, x.shape[-1]).sign(), query, task, 0.0


def _orthogonal(x, query, task, extra):
    """The query turned away from all examples, its length kept."""
    basis = torch.linalg.qr(x.mT).Q
    rest = query - torch.einsum("...dk,...ck,...qc->...qd", basis, basis, query)
    return x, rest * query.norm(dim=-1, keepdim=True) / rest.norm(dim=-1, keepdim=True), task, 0.0


def _seen(x, query, task, extra):
    """The query is one of the examples."""
    place = extra(x.shape[-2]).argmax(-1)[..., None, None].expand_as(query)
    return x, x.gather(-2, place), task, 0.0


SHIFTS: dict[str, Callable] = {
    "as in training": _scaled(1.0),
    "inputs × 3": _scaled(3.0),
    "inputs × ⅓": _scaled(1 / 3),
    "labels × 3": _scaled(1.0, 3.0),
    "skewed inputs": _coloured(lambda d: [1 / (i + 1) for i in range(d)]),
    "half the directions": _coloured(lambda d: [1.0 if 2 * i < d else 0.0 for i in range(d)]),
    "one orthant": _one_orthant,
    "orthogonal query": _orthogonal,
    "query seen before": _seen,
    "noisy labels": lambda x, query, task, extra: (x, query, task, extra(x.shape[-2])),
}
Shift = Literal[tuple(SHIFTS)]


@dataclass(frozen=True)
class ShiftedPrompts(Checked):
    r"""Noiseless linear regression in a prompt, with one change that `shift` names; ``SHIFTS`` lists them.

    Every change keeps :math:`E\langle\beta, x_q\rangle^2`, the variance of the answer, computable: `variance`.

    Raises ValueError if the shift is unknown, or asks for a query orthogonal to d examples or more.
    Source: Garg et al. (2022), Section 4.
    """

    n: Count = 10
    d: Count = 5
    shift: Shift = "as in training"

    def __post_init__(self):
        super().__post_init__()
        if self.shift == "orthogonal query" and self.n >= self.d:
            raise ValueError(f"n must be below d for a query orthogonal to all examples; got n={self.n}, d={self.d}")

    @property
    def variance(self) -> float:
        """Mean square of the answer."""
        return self.d * {"inputs × 3": 9.0, "inputs × ⅓": 1 / 9, "labels × 3": 9.0}.get(self.shift, 1.0)

    def draw(self, batch: int, seed: int | tuple[int, ...], step: int = 0, device="cpu",
             dtype: torch.dtype = torch.float64) -> Prompts:
        """One batch, a pure function of (seed, step); the task is that of the labels, scaled as they are."""
        plain = LinearPrompts(self.n, self.d).draw(batch, seed, step, device, dtype)

        def extra(*shape: int) -> Tensor:
            return rng.normal((batch, *shape), seed, f"shift, step {step}", device, dtype)

        x, query, task, noise = SHIFTS[self.shift](plain.context.x, plain.query, plain.task, extra)
        y = torch.einsum("...d,...nd->...n", task, x) + noise
        target = torch.einsum("...d,...qd->...q", task, query)
        return Prompts(Context(x, y), query, target, task, target)
