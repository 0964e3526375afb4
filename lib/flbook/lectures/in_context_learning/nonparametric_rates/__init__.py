r"""Functions in context on a basis that is known: what n examples, N features and T pretraining prompts each cost.

Linear attention on N features, its matrix :math:`\Gamma` fitted to T prompts of n examples, has a risk of the order of
:math:`N^{-2s} + N/n + N^2/T`; with :math:`N \sim n^{1/(2s+1)}` and :math:`T \gtrsim n^{(2s+2)/(2s+1)}` that is
:math:`n^{-2s/(2s+1)}`, which no method beats.

Inputs are uniform on [0, 1], bases orthonormal, so the risk of any :math:`\Gamma` is known exactly: no test prompts.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from flbook import devices, rng
from flbook.domains import Count, Natural, NonNegative, Positive
from flbook.lectures.in_context_learning.nonparametric_rates import power_laws as theory
from flbook.lectures.in_context_learning.nonparametric_rates.empirical_gram import averages, empirical_gram
from flbook.lectures.in_context_learning.nonparametric_rates.function_spaces import fourier_line
from flbook.lectures.in_context_learning.nonparametric_rates.least_squares import BLOCK, solved
from flbook.runs import Experiment, Grid, axis, single_precision


@dataclass(frozen=True)
class Setting(Grid):
    r"""Pretraining of :math:`\Gamma` by least squares; tuples are the axes of the sweep.

    In the book: nine features, so that a full matrix has 81 entries. The page runs other sizes as well.
    """

    kind: tuple[Literal["full", "diagonal"], ...] = axis(["full"], "kind of Γ")  # of matrices to choose from
    T: tuple[Count, ...] = axis([32, 128, 512, 2048], "pretraining prompts T")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    keep: Count = 9  # N, features
    size: Count = 33  # functions that the truth is made of
    s: Positive = 1.0  # decay of the coefficients, variances j^(-2s-1)
    n: Count = 64  # examples of a prompt
    noise: NonNegative = 1.0  # sigma_y

    def check(self) -> None:
        """Refuse more features than functions."""
        if self.keep > self.size:
            raise ValueError(f"keep must be at most size = {self.size}, features of all functions; got {self.keep}")

    def best(self) -> theory.Attention:
        r"""The best :math:`\Gamma` and its risk."""
        return theory.best_attention(theory.power_law(self.size, self.s), self.noise, self.n, self.keep)


experiment = Experiment(
    Setting, version=2, loops=("seed", "kind"), chunk={"seed": 5},
    gives={"risk": ("risk R", "1", ("kind", "T", "seed"))},
    presets={
        "tiny": ("Three of five features, fewer prompts than entries and more", dict(
            kind=("full", "diagonal"), T=(3, 8, 40), seed=(0, 1, 2), keep=3, size=5, n=8)),
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
    r"""Of `batch` prompts the averages :math:`\hat b` (batch, N), the features of the query, and its label.

    The averages are drawn from their law given the inputs, see `empirical_gram`.
    """
    place, basis = devices.device(device), fourier_line(setting.size)
    root = torch.tensor(theory.power_law(setting.size, setting.s), device=place).sqrt()
    rows = torch.tensor(basis.frequency, device=place)[:, 0]
    parts = []
    for step in range(-(-batch // block)):

        def normal(what: str, *shape: int, step: int = step) -> Tensor:
            return rng.normal((block, *shape), seed, f"designs {what}, step {step}", place)

        draws = rng.generator(seed, f"designs inputs, step {step}", place)
        x = torch.rand(block, setting.n + 1, generator=draws, device=place, dtype=torch.float64)
        task, f = root * normal("tasks", setting.size), basis.features(x[:, -1:, None])[:, 0]
        gram = empirical_gram(x[:, :-1].float(), rows, setting.keep).double()  # single precision for its many sums
        means = averages(gram, task, normal("averages", setting.keep), setting.noise / setting.n**0.5)
        label = (task * f).sum(-1) + setting.noise * normal("noise", 1)[:, 0]
        parts.append((means, f[:, : setting.keep], label))
    return tuple(torch.cat(column)[:batch] for column in zip(*parts, strict=True))


def fitted(kind: str, setting: Setting, means: Tensor, query: Tensor, label: Tensor) -> Tensor:
    r"""Least squares for :math:`\Gamma` (N, N): of all solutions the shortest."""
    if kind == "diagonal":
        return torch.diag(solved(means * query, label))
    columns = (means[:, :, None] * query[:, None, :]).flatten(1)
    return solved(columns, label).reshape(setting.keep, setting.keep)


def exact_risk(setting: Setting, gamma: Tensor) -> Tensor:
    r""":math:`\sum_{j>N}\lambda_j + \sum_j \lambda_j - 2\Gamma_{jj}\lambda_j + \sum_{jk}\Gamma_{jk}^2(\lambda_j + v_j/n)`."""  # noqa: E501
    variance = theory.power_law(setting.size, setting.s)
    second = torch.tensor(variance + theory.label_energy(variance, setting.noise) / setting.n)[: setting.keep]
    lam = torch.tensor(variance).to(gamma)
    square = torch.einsum("jk,j->", gamma.square(), second.to(gamma))
    return lam.sum() - 2 * (gamma.diagonal() * lam[: setting.keep]).sum() + square
