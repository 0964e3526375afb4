r"""Functions in context on a basis that is known: what n examples, N features and T pretraining prompts each cost.

Claims (Kim, Nakamaki and Suzuki 2024): linear attention on N features, its matrix :math:`\Gamma` fitted to T prompts of
n examples, has the risk :math:`N^{-2s} + N/n + N^2/T` up to logarithms and constants; with :math:`N \sim n^{1/(2s+1)}`
and many prompts that is :math:`n^{-2s/(2s+1)}`, which no method beats. Without pretraining the rate is that of the
rougher class in which the basis itself lies.

Inputs are uniform on [0, 1], bases orthonormal, so the risk of any :math:`\Gamma` is known exactly: no test prompts.
"""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from flbook import devices
from flbook.domains import Count, Natural, NonNegative, Positive
from flbook.lectures.in_context_learning.nonparametric_rates import power_laws as theory
from flbook.lectures.in_context_learning.nonparametric_rates.function_spaces import FunctionPrompts, fourier_line
from flbook.lectures.in_context_learning.nonparametric_rates.least_squares import BLOCK, solved
from flbook.runs import Experiment, Grid, axis, single_precision


@dataclass(frozen=True)
class Setting(Grid):
    r"""Pretraining of :math:`\Gamma` by least squares; tuples are the axes of the sweep.

    In the book: nine features, so that a full matrix has 81 entries and a diagonal one 9.
    """

    kind: tuple[Literal["full", "full with ridge", "diagonal"], ...] = axis(
        ["full", "full with ridge", "diagonal"], "kind of Γ")  # which matrices least squares may choose from
    T: tuple[Count, ...] = axis([4, 9, 18, 36, 54, 81, 122, 162, 324, 648, 1296], "pretraining prompts T")
    seed: tuple[Natural, ...] = axis(range(30), "seed")
    keep: Count = 9  # N, features
    size: Count = 33  # functions that the truth is made of
    s: Positive = 1.0  # decay of the coefficients, variances j^(-2s-1)
    n: Count = 32  # examples of a prompt
    noise: NonNegative = 0.5  # sigma_y

    def check(self) -> None:
        """Refuse more features than functions."""
        if self.keep > self.size:
            raise ValueError(f"keep must be at most size = {self.size}, features of all functions; got {self.keep}")

    def data(self) -> FunctionPrompts:
        """The prompts, all from one stationary class."""
        variance = tuple(theory.power_law(self.size, self.s).tolist())
        return FunctionPrompts(fourier_line(self.size), variance, self.n, self.noise)

    def best(self) -> theory.Attention:
        r"""The best :math:`\Gamma` and its risk."""
        return theory.best_attention(theory.power_law(self.size, self.s), self.noise, self.n, self.keep)


experiment = Experiment(
    Setting, version=1, loops=("seed", "kind"), chunk={"seed": 5},
    gives={"risk": ("risk R", "1", ("kind", "T", "seed"))},
    presets={
        "tiny": ("Three of five features, fewer prompts than entries and more", dict(
            T=(3, 8, 40), seed=(0, 1, 2), keep=3, size=5, n=8)),
        "longer": ("Seventeen features, 289 entries, and prompts up to 32 times as many", dict(
            T=(8, 17, 34, 72, 144, 217, 289, 434, 578, 1156, 2312, 4624, 9248), seed=tuple(range(20)),
            keep=17, size=65, n=64)),
    },
)
experiment.kept(single_precision)


@experiment.shared("seed")
def drawn(s: Setting, device: str) -> tuple[Tensor, ...]:
    """The pretraining prompts of a seed: as many as the largest T, of which the others are the first."""
    return designs(s, s.seed, max(s.T), device)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    r"""Exact risk of one kind of :math:`\Gamma`, fitted to the first T prompts of one seed."""
    design = drawn(s, device)
    return {"risk": torch.stack([exact_risk(s, fitted(s.kind, s, *(part[:T] for part in design))) for T in s.T])}


run = experiment.run


def designs(setting: Setting, seed: int, batch: int, device: str = "cpu", block: int = BLOCK) -> tuple[Tensor, ...]:
    r"""Of `batch` prompts the averages :math:`\hat b` (batch, N), the features of the query, and its label."""
    data = setting.data()
    basis = replace(data.basis, frequency=data.basis.frequency[: setting.keep])
    parts = []
    for step in range(-(-batch // block)):
        prompts = data.draw(block, seed, step, devices.device(device))
        means = torch.einsum("bnk,bn->bk", basis.features(prompts.context.x), prompts.context.y) / setting.n
        parts.append((means, basis.features(prompts.query)[:, 0], prompts.observed[:, 0]))
    return tuple(torch.cat(column)[:batch] for column in zip(*parts, strict=True))


def fitted(kind: str, setting: Setting, means: Tensor, query: Tensor, label: Tensor) -> Tensor:
    r"""Least squares for :math:`\Gamma` (N, N): of all solutions the shortest, or with the ridge :math:`\sigma_y^2`."""
    if kind == "diagonal":
        return torch.diag(solved(means * query, label))
    columns = (means[:, :, None] * query[:, None, :]).flatten(1)
    if kind == "full":
        return solved(columns, label).reshape(setting.keep, setting.keep)
    ridge = setting.noise**2 * torch.eye(columns.shape[1], dtype=columns.dtype, device=columns.device)
    gamma = torch.linalg.solve(columns.mT @ columns + ridge, columns.mT @ label)
    return gamma.reshape(setting.keep, setting.keep)


def exact_risk(setting: Setting, gamma: Tensor) -> Tensor:
    r""":math:`\sum_{j>N}\lambda_j + \sum_j \lambda_j - 2\Gamma_{jj}\lambda_j + \sum_{jk}\Gamma_{jk}^2(\lambda_j + v_j/n)`."""  # noqa: E501
    variance = theory.power_law(setting.size, setting.s)
    second = torch.tensor(variance + theory.label_energy(variance, setting.noise) / setting.n)[: setting.keep]
    lam = torch.tensor(variance).to(gamma)
    square = torch.einsum("jk,j->", gamma.square(), second.to(gamma))
    return lam.sum() - 2 * (gamma.diagonal() * lam[: setting.keep]).sum() + square


def sandwich(setting: Setting, batch: int = 10000, seed: int = 0) -> Tensor:
    r"""What least squares pays for large T, in units of :math:`(R + \sigma_y^2) N^2/T`; one number a seed-like batch.

    With residuals r of the best :math:`\Gamma` and columns z it is :math:`E[r^2 z^\top H^{-1} z]` over
    :math:`N^2 E[r^2]`, where :math:`H = E[zz^\top]` is known. Gaussian columns and independent residuals give 1.
    """
    best = setting.best()
    means, query, label = designs(setting, seed, batch, block=1000)
    gamma = torch.tensor(best.gamma)
    variance = theory.power_law(setting.size, setting.s)
    second = torch.tensor(variance + theory.label_energy(variance, setting.noise) / setting.n)[: setting.keep]
    residual = (label - torch.einsum("bk,bk->b", means * gamma, query)).square()
    leverage = (means.square() / second).sum(-1) * query.square().sum(-1)
    return (residual * leverage).mean() / (setting.keep**2 * (best.risk + setting.noise**2))
