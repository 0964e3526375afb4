r"""Prompts on a basis that is hidden: attention finds it in pretraining, and rivals have to do without.

The i-th of a few frequencies lies somewhere in a group that grows with i. Who has seen T other prompts on the same
basis can tell which functions count; who has the prompt alone has to expect all of them.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from flbook import devices
from flbook.domains import Count, Natural, NonNegative, Positive
from flbook.estimators import KernelRidge, Ridge
from flbook.lectures.in_context_learning.nonparametric_rates import power_laws as theory
from flbook.lectures.in_context_learning.nonparametric_rates.bayes_alone import bayes_alone
from flbook.lectures.in_context_learning.nonparametric_rates.function_spaces import (
    FourierBasis,
    FunctionPrompts,
    hidden_line,
)
from flbook.lectures.in_context_learning.nonparametric_rates.least_squares import BLOCK, solved
from flbook.lectures.in_context_learning.shared.attention import LinearAttention
from flbook.runs import Experiment, Grid, axis
from flbook.shapes import Context

Predictor = Literal["pretrained attention", "attention on the basis", "attention on the dictionary", "kernel ridge",
                    "ridge on the basis", "Bayes, prompt alone"]


@dataclass(frozen=True)
class Setting(Grid):
    """Prompts on a hidden basis; tuples are the axes of the sweep. In the book: ten hidden bases."""

    predictor: tuple[Predictor, ...] = axis(
        ["pretrained attention", "attention on the basis", "kernel ridge", "ridge on the basis"], "predictor")
    n: tuple[Count, ...] = axis([64], "examples n")  # of a prompt
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


experiment = Experiment(
    Setting, version=1, loops=("n", "seed"),
    gives={
        "risk": ("risk R", "1", ("predictor", "n", "T", "seed")),
        "known": ("risk R", "1", ("n",)),
        "expected": ("risk R", "1", ("n",)),
    },
    presets={
        "tiny": ("A blink: every predictor on two hidden frequencies", dict(
            predictor=get_args(Predictor), n=(8, 20), T=(4, 60), seed=(0, 1), pairs=2, power=1, spread=2, batch=16,
            queries=4)),
    },
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor | float]:
    """Risk on the test prompts of one hidden basis, and the closed forms of attention.

    ``known`` and ``expected`` are the exact risks of the best attention on the basis, and of the best on the whole
    dictionary for who has to expect every basis.
    """
    place, data = devices.device(device), s.data(s.seed, s.n)
    test = data.draw(s.batch, s.seed, 1, place)
    errors = [predictor(test.context, test.query) - test.target for name in s.predictor
              for predictor in PREDICTORS[name](s, data, s.seed, place)]
    known, expected = (theory.best_attention(variance, s.noise, s.n).risk
                       for variance in (np.array(data.variance), s.dictionary()[1]))
    return {"risk": torch.stack(errors).square().mean((-2, -1)).unflatten(0, (len(s.predictor), len(s.T))),
            "known": known, "expected": expected}


run = experiment.run


def pretrained(setting: Setting, data: FunctionPrompts, seed: int, device="cpu") -> list[LinearAttention]:
    """Attention on the whole dictionary, its diagonal fitted to T prompts: it has to find out which functions count.

    One for every T. Fewer equations than unknowns: the shortest solution.
    """
    dictionary, _ = setting.dictionary()
    columns, labels = [], []
    for step in range(-(-max(setting.T) // BLOCK)):
        prompts = data.draw(BLOCK, seed, 2 + step, device, torch.float32)
        inside = dictionary.features(prompts.context.x)
        means = torch.einsum("bnk,bn->bk", inside, prompts.context.y / data.n)
        columns.append(means[:, None] * dictionary.features(prompts.query))
        labels.append(prompts.observed)
    columns, label = torch.cat(columns).double(), torch.cat(labels).double()
    fitted = (solved(columns[:T].flatten(0, 1), label[:T].flatten()) for T in setting.T)
    return [LinearAttention(torch.diag(gamma), features=dictionary.features).requires_grad_(False) for gamma in fitted]


def expected_kernel(setting: Setting):
    """The covariance of the function to who does not know the basis: the best kernel for the prompt alone."""
    dictionary, expected = setting.dictionary()
    root = torch.tensor(expected).sqrt()
    return lambda x, other: torch.einsum("...nk,...pk->...np", dictionary.features(x) * root.to(x),
                                         dictionary.features(other) * root.to(x))


def alone(setting: Setting, data: FunctionPrompts):
    """The Bayes estimator for who knows all but the hidden frequencies, and has one prompt."""
    ends = setting.spread * np.arange(setting.pairs + 1) ** setting.power
    groups = [range(start, end) for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
    variance = torch.tensor(data.variance, dtype=torch.float64)
    return bayes_alone(setting.dictionary()[0].features, groups, variance, setting.noise)


def ridge_on_basis(setting: Setting, data: FunctionPrompts):
    """Ridge regression on the hidden functions: the Bayes estimator for who knows them."""
    estimator = Ridge(torch.diag(setting.noise**2 / torch.tensor(data.variance)))
    features = data.basis.features
    return lambda context, query: estimator(Context(features(context.x), context.y), features(query))


def attention(basis: FourierBasis, variance: np.ndarray, setting: Setting, n: int, device="cpu") -> LinearAttention:
    r"""Attention with the best :math:`\Gamma` for these variances."""
    gamma = torch.tensor(theory.best_attention(variance, setting.noise, n).gamma, device=device)
    return LinearAttention(torch.diag(gamma), features=basis.features).requires_grad_(False)


# What answers a prompt, as functions of (setting, data, seed, device): one predictor for each T, or the same for all
PREDICTORS = {
    "pretrained attention": pretrained,
    "attention on the basis": lambda setting, data, seed, device: [
        attention(data.basis, np.array(data.variance), setting, data.n, device)] * len(setting.T),
    "attention on the dictionary": lambda setting, data, seed, device: [
        attention(*setting.dictionary(), setting, data.n, device)] * len(setting.T),
    "kernel ridge": lambda setting, data, seed, device: [
        KernelRidge(expected_kernel(setting), setting.noise**2)] * len(setting.T),
    "ridge on the basis": lambda setting, data, seed, device: [ridge_on_basis(setting, data)] * len(setting.T),
    "Bayes, prompt alone": lambda setting, data, seed, device: [alone(setting, data)] * len(setting.T),
}
