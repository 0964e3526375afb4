r"""Functions in context on a basis that is known: what n examples, N features and T pretraining prompts each cost.

Claims (Kim, Nakamaki and Suzuki 2024): linear attention on N features, its matrix :math:`\Gamma` fitted to T prompts of
n examples, has the risk :math:`N^{-2s} + N/n + N^2/T` up to logarithms and constants; with :math:`N \sim n^{1/(2s+1)}`
and many prompts that is :math:`n^{-2s/(2s+1)}`, which no method beats. Without pretraining the rate is that of the
rougher class in which the basis itself lies.

Inputs are uniform on [0, 1], bases orthonormal, so the risk of any :math:`\Gamma` is known exactly: no test prompts.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from flbook import devices
from flbook.domains import Count, Natural, NonNegative, Positive
from flbook.estimators import KernelRidge, Ridge
from flbook.lectures.in_context_learning.nonparametric_rates import power_laws as theory
from flbook.lectures.in_context_learning.nonparametric_rates.bayes_alone import bayes_alone
from flbook.lectures.in_context_learning.nonparametric_rates.function_spaces import (
    FourierBasis,
    FunctionPrompts,
    fourier_line,
    hidden_line,
)
from flbook.lectures.in_context_learning.shared.attention import LinearAttention
from flbook.runs import Grid, axis, cached, labelled, single_precision, sweeps
from flbook.shapes import Context

VERSION = 1
BLOCK = 64  # prompts of one step: more prompts are more steps, so that fewer are the first of many


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

    @classmethod
    def tiny(cls) -> "Setting":
        """Three of five features, fewer prompts than entries and more."""
        return cls(T=(3, 8, 40), seed=(0, 1, 2), keep=3, size=5, n=8)

    @classmethod
    def paper(cls) -> "Setting":
        """Seventeen features, 289 entries, and prompts up to 32 times as many."""
        T = (8, 17, 34, 72, 144, 217, 289, 434, 578, 1156, 2312, 4624, 9248)
        return cls(keep=17, size=65, n=64, T=T, seed=tuple(range(20)))

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


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    r"""Exact risk of the fitted :math:`\Gamma`, dimensions (kind, T, seed)."""
    risks = [[[exact_risk(setting, fitted(kind, setting, *(part[:T] for part in design)))
               for T in setting.T] for kind in setting.kind]
             for design in (designs(setting, seed, max(setting.T), device) for seed in setting.seed)]
    return labelled({"risk": (("kind", "T", "seed"), np.moveaxis(risks, 0, -1), "risk R")}, setting.coordinates())


run = sweeps(measure, chunk={"seed": 5})
stored = single_precision


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


def solved(columns: Tensor, label: Tensor) -> Tensor:
    """Least squares; with more columns than prompts the shortest of the exact fits."""
    rows, size = columns.shape
    if rows >= 4 * size:  # far from square, where the normal equations are safe and cheap
        return torch.cholesky_solve((columns.mT @ label)[:, None], torch.linalg.cholesky(columns.mT @ columns))[:, 0]
    if rows >= size:
        q, r = torch.linalg.qr(columns)
        return torch.linalg.solve_triangular(r, (q.mT @ label)[:, None], upper=True)[:, 0]
    q, r = torch.linalg.qr(columns.mT)
    return q @ torch.linalg.solve_triangular(r.mT, label[:, None], upper=False)[:, 0]


def exact_risk(setting: Setting, gamma: Tensor) -> float:
    r""":math:`\sum_{j>N}\lambda_j + \sum_j \lambda_j - 2\Gamma_{jj}\lambda_j + \sum_{jk}\Gamma_{jk}^2(\lambda_j + v_j/n)`."""  # noqa: E501
    variance = theory.power_law(setting.size, setting.s)
    second = torch.tensor(variance + theory.label_energy(variance, setting.noise) / setting.n)[: setting.keep]
    lam = torch.tensor(variance)
    square = torch.einsum("jk,j->", gamma.cpu().square(), second)
    return float(lam.sum() - 2 * (gamma.cpu().diagonal() * lam[: setting.keep]).sum() + square)


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


@dataclass(frozen=True)
class Contexts(Grid):
    """Prompts on a hidden basis; tuples are axes."""

    predictor: tuple[Literal["pretrained attention", "attention on the basis", "attention on the dictionary",
                             "kernel ridge", "ridge on the basis", "Bayes, prompt alone"], ...] = axis(
        ["pretrained attention", "attention on the basis", "kernel ridge", "ridge on the basis"], "predictor")
    n: tuple[Count, ...] = axis([16, 64, 128], "examples n")  # of a prompt
    T: tuple[Count, ...] = axis([16, 64, 256, 1024], "pretraining prompts T")
    seed: tuple[Natural, ...] = axis(range(10), "seed")  # each has a hidden basis of its own
    pairs: Count = 4  # hidden frequencies
    power: Count = 2  # the i-th lies in (spread (i-1)^power, spread i^power]
    spread: Count = 4
    s: Positive = 1.0
    noise: NonNegative = 1.0  # sigma_y
    batch: Count = 64  # test prompts of a seed
    queries: Count = 16  # labelled queries on each context

    def data(self, seed: int, n: int) -> FunctionPrompts:
        """Prompts on the basis of this seed."""
        variance = tuple(np.repeat(theory.pair_variance(self.pairs, self.s), 2).tolist())
        basis = hidden_line(self.pairs, self.power, self.spread, seed)
        return FunctionPrompts(basis, variance, n, self.noise, self.queries)

    def dictionary(self) -> tuple[FourierBasis, np.ndarray]:
        """All functions that may be among the hidden ones, with the variance to be expected of each."""
        expected = theory.expected_variance(theory.pair_variance(self.pairs, self.s), self.power, self.spread)
        rows = tuple((sign * r,) for r in range(1, len(expected) + 1) for sign in (1, -1))
        return FourierBasis(rows), np.repeat(expected, 2)


@cached
def contexts(setting: Contexts, device: str = "cpu") -> xr.Dataset:
    """Risk on test prompts, dimensions (predictor, n, T, seed), and the closed forms of attention over n.

    ``known`` and ``expected`` are the exact risks of the best attention on the basis, and of the best on the whole
    dictionary for who has to expect every basis.
    """
    rows = []
    for n in setting.n:
        for seed in setting.seed:
            data = setting.data(seed, n)
            test = data.draw(setting.batch, seed, 1, devices.device(device))
            errors = [predictor(test.context, test.query) - test.target for name in setting.predictor
                      for predictor in PREDICTORS[name](setting, data, seed)]
            rows.append(torch.stack(errors).square().mean((-2, -1)).reshape(len(setting.predictor), -1))
    risk = torch.stack(rows).unflatten(0, (len(setting.n), len(setting.seed))).permute(2, 0, 3, 1)
    known = [theory.best_attention(np.array(setting.data(0, n).variance), setting.noise, n).risk for n in setting.n]
    expected = [theory.best_attention(setting.dictionary()[1], setting.noise, n).risk for n in setting.n]
    return labelled({"risk": (("predictor", "n", "T", "seed"), risk, "risk R"), "known": ("n", known, "risk R"),
                     "expected": ("n", expected, "risk R")}, setting.coordinates())


def pretrained(setting: Contexts, data: FunctionPrompts, seed: int) -> list[LinearAttention]:
    """Attention on the whole dictionary, its diagonal fitted to T prompts: it has to find out which functions count.

    One for every T. Fewer equations than unknowns: the shortest solution.
    """
    dictionary, _ = setting.dictionary()
    columns, labels = [], []
    for step in range(-(-max(setting.T) // BLOCK)):
        prompts = data.draw(BLOCK, seed, 2 + step, dtype=torch.float32)
        inside = dictionary.features(prompts.context.x)
        means = torch.einsum("bnk,bn->bk", inside, prompts.context.y / data.n)
        columns.append(means[:, None] * dictionary.features(prompts.query))
        labels.append(prompts.observed)
    columns, label = torch.cat(columns).double(), torch.cat(labels).double()
    fitted = (solved(columns[:T].flatten(0, 1), label[:T].flatten()) for T in setting.T)
    return [LinearAttention(torch.diag(gamma), features=dictionary.features).requires_grad_(False) for gamma in fitted]


def expected_kernel(setting: Contexts):
    """The covariance of the function to who does not know the basis: the best kernel for the prompt alone."""
    dictionary, expected = setting.dictionary()
    root = torch.tensor(expected).sqrt()
    return lambda x, other: torch.einsum("...nk,...pk->...np", dictionary.features(x) * root,
                                         dictionary.features(other) * root)


def alone(setting: Contexts, data: FunctionPrompts):
    """The Bayes estimator for who knows all but the hidden frequencies, and has one prompt."""
    ends = setting.spread * np.arange(setting.pairs + 1) ** setting.power
    groups = [range(start, end) for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
    variance = torch.tensor(data.variance, dtype=torch.float64)
    return bayes_alone(setting.dictionary()[0].features, groups, variance, setting.noise)


def ridge_on_basis(setting: Contexts, data: FunctionPrompts):
    """Ridge regression on the hidden functions: the Bayes estimator for who knows them."""
    estimator = Ridge(torch.diag(setting.noise**2 / torch.tensor(data.variance)))
    features = data.basis.features
    return lambda context, query: estimator(Context(features(context.x), context.y), features(query))


def attention(basis: FourierBasis, variance: np.ndarray, setting: Contexts, n: int) -> LinearAttention:
    r"""Attention with the best :math:`\Gamma` for these variances."""
    gamma = torch.tensor(theory.best_attention(variance, setting.noise, n).gamma)
    return LinearAttention(torch.diag(gamma), features=basis.features).requires_grad_(False)


# What answers a prompt, as functions of (setting, data, seed): one predictor for each T, or the same for all
PREDICTORS = {
    "pretrained attention": pretrained,
    "attention on the basis": lambda setting, data, seed: [
        attention(data.basis, np.array(data.variance), setting, data.n)] * len(setting.T),
    "attention on the dictionary": lambda setting, data, seed: [
        attention(*setting.dictionary(), setting, data.n)] * len(setting.T),
    "kernel ridge": lambda setting, data, seed: [
        KernelRidge(expected_kernel(setting), setting.noise**2)] * len(setting.T),
    "ridge on the basis": lambda setting, data, seed: [ridge_on_basis(setting, data)] * len(setting.T),
    "Bayes, prompt alone": lambda setting, data, seed: [alone(setting, data)] * len(setting.T),
}
