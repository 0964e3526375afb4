r"""Solvers that know the link of a prompt and look for its direction: damped Gauss-Newton steps from many starts.

The link is :math:`\sigma_*(z) = c_1 h_1(z) + c_2 h_2(z)`. Without label noise every unit vector beta that gives all
labels is possible; the answer is the mean over those found, with equal weights. Bayes' weights differ by the slopes of
the labels, which matters only while several vectors remain. A solver that knows d coordinates only looks in all of
them; told the subspace, it looks for r numbers, which is the same problem with d = r.

Source: Levenberg (1944) and Marquardt (1963), for the steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.domains import Count, Fraction, Natural
from flbook.estimators.in_context import KernelRidge
from flbook.hermite import Series
from flbook.lectures.in_context_learning.shared.single_index_prompts import SingleIndexPrompts
from flbook.models import kernels
from flbook.runs import Experiment, Grid, axis, single_precision
from flbook.shapes import Context

EXACT = 1e-4  # a direction that misses the labels by less in the mean square explains the prompt
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # of the best direction's answer, where none explains the prompt
QUADRATIC = kernels.inner_product(lambda t: (1 + t) ** 2)
RIDGES = (1e-6, 1e-3, 0.03, 0.3, 3.0, 30.0)


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: a few unknowns."""

    unknowns: tuple[Count, ...] = axis([2, 4], "unknown numbers of a prompt")  # d, or r if the subspace is told
    rule: tuple[Literal["told the link", "kernel ridge"], ...] = axis(["told the link"], "rule")
    context: tuple[Count, ...] = axis([1, 2, 4, 8, 16, 32], "examples in the prompt n*")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    points: Count = 8  # prompts of a seed
    starts: Count = 16
    steps: Count = 40
    line: Fraction = 0.5**0.5  # c_1; the squares of c_1 and c_2 sum to 1


experiment = Experiment(
    Setting, version=1, loops=("unknowns", "seed", "context"), left=("rule",), chunk={"unknowns": 1}, stored="longer",
    gives={"risk": ("risk R, for each choice made in hindsight", "1",
                    ("unknowns", "seed", "context", "rule", "choice"))},
    beside={"choice": (lambda s: range(len(SHARES)), "share kept, or ridge", "1")},
    presets={
        "tiny": ("Two unknowns, few starts", dict(
            unknowns=(2,), rule=("told the link", "kernel ridge"), context=(1, 4), seed=(0, 1), points=4, starts=3,
            steps=5)),
        "longer": ("Up to 64 unknowns, beside kernel ridge regression, which is told nothing", dict(
            unknowns=(2, 4, 8, 16, 64), rule=("told the link", "kernel ridge"),
            context=(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128))),
    },
)  # fmt: skip
experiment.kept(single_precision)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, np.ndarray]:
    """Risk of both rules on the same prompts."""
    link = (0.0, s.line, (1 - s.line**2) ** 0.5)
    data = SingleIndexPrompts(n=s.context, d=s.unknowns, r=s.unknowns, link=link, queries=50)
    context, query, target = data.draw(s.points, s.seed, device=device)[:3]
    rules = {"told the link": lambda: told(context, query, link, s.starts, s.steps, s.seed),
             "kernel ridge": lambda: kernel(context, query)}  # fmt: skip
    return {"risk": np.array([[(answer - target).square().mean().item() for answer in rules[rule]()]
                              for rule in s.rule])}  # fmt: skip


run = experiment.run


def told(
    context: Context,
    query: Float[Tensor, "t q d"],
    link: Sequence[float],
    starts: int = 24,
    steps: int = 60,
    seed: int = 0,
) -> list[Float[Tensor, "t q"]]:
    """Predictions: the mean over the directions that explain a prompt; where none does, a share of the best one's."""
    beta, miss = directions(context, link, starts, steps, seed)
    least = miss.min(-1, keepdim=True).values
    good = (miss <= least.clamp(min=EXACT)).to(query)  # (t, k)
    value = (Series(tuple(link))(query @ beta.mT) * good[:, None]).sum(-1) / good.sum(-1)[:, None]
    return [torch.where(least < EXACT, value, share * value) for share in SHARES]


def directions(
    context: Context, link: Sequence[float], starts: int, steps: int, seed: int
) -> tuple[Float[Tensor, "t k d"], Float[Tensor, "t k"]]:
    r"""Unit vectors that the steps end at, and by how much each misses the labels, in the mean square.

    .. math:: \sum_i\big(y_i - \sigma_*(\langle x_i, \beta\rangle)\big)^2 + \frac n4\big(\|\beta\|^2 - 1\big)^2 \to \min

    One start is the direction of :math:`\sum_i y_i x_i`, in which the linear part of the link shows.
    """
    x, y = context.x, context.y[:, None]  # (t, n, d) and (t, 1, n)
    tasks, n, d = x.shape
    random = rng.normal((tasks, starts - 1, d), seed, f"starts of Gauss-Newton, n = {n}", x.device, x.dtype)
    beta = torch.nn.functional.normalize(torch.cat([y @ x, random], 1), dim=-1)  # (t, k, d)
    sigma, slope = Series(tuple(link)), Series(tuple(link)).derivative()
    eye = torch.eye(d, dtype=x.dtype, device=x.device)

    def misses(beta: Tensor) -> Tensor:  # (t, k, n + 1): those of the labels, and of the length
        length = n**0.5 / 2 * (beta.square().sum(-1, keepdim=True) - 1)
        return torch.cat([sigma(beta @ x.mT) - y, length], -1)

    residual = misses(beta)
    loss, damping = residual.square().sum(-1), torch.ones_like(beta[..., 0])
    for _ in range(steps):
        rows = slope(beta @ x.mT)[..., None] * x[:, None]  # (t, k, n, d)
        jacobian = torch.cat([rows, n**0.5 * beta[..., None, :]], -2)  # (t, k, n + 1, d)
        curvature = jacobian.mT @ jacobian + (n * damping)[..., None, None] * eye
        moved = beta - torch.linalg.solve(curvature, (residual[..., None, :] @ jacobian)[..., 0, :])
        other = misses(moved)
        lower = other.square().sum(-1)
        better = lower < loss
        beta, residual = (torch.where(better[..., None], new, old) for new, old in ((moved, beta), (other, residual)))
        loss, damping = torch.minimum(lower, loss), (damping * torch.where(better, 0.3, 4.0)).clamp(1e-9, 1e6)
    beta = torch.nn.functional.normalize(beta, dim=-1)
    return beta, (sigma(beta @ x.mT) - y).square().mean(-1)


def kernel(context: Context, query: Float[Tensor, "t q d"]) -> list[Float[Tensor, "t q"]]:
    """Predictions by ridge regression in the quadratic kernel, one for each ridge."""
    return [KernelRidge(QUADRATIC, ridge)(context, query) for ridge in RIDGES]
