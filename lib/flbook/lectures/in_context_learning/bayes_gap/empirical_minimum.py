r"""Uniform attention at its empirical minimum: features say in which of m cells a label lies, the decoder is fitted.

The mean of such features is the histogram of a prompt's labels, :math:`h_{P^k}`, and the predictor is

.. math:: M(P^k) = \tanh(k\,\omega^\top h_{P^k}) = \tanh(\omega^\top c_{P^k}), \qquad c = k h \text{ counts}.

The weights :math:`\omega` minimise the squared error of the next label over N prompts. One choice of them is Bayes'
rule for who sees cells only, so the gap to Bayes' rule has two parts, one for the cells and one for the N prompts.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook import devices
from flbook.domains import Count, Natural
from flbook.lectures.in_context_learning.bayes_gap import posterior as theory
from flbook.lectures.in_context_learning.bayes_gap.task_mixture import SignPrompts
from flbook.runs import Experiment, Grid, axis

NOISE = 2.0  # variance of a label given f


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are axes."""

    m: tuple[Count, ...] = axis([4, 6, 10, 18], "cells m")
    N: tuple[Count, ...] = axis([64, 256, 1024, 4096], "pretraining prompts N")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    p: Count = 8  # longest context, and every shorter one
    points: Count = 4000  # test prompts
    steps: Count = 60  # of the solver, at most

    def data(self) -> SignPrompts:
        """The prompts."""
        return SignPrompts(self.p)


EVERY = ("m", "N", "seed", "k")
experiment = Experiment(
    Setting, version=1, loops=("m", "N"), chunk={"m": 1, "N": 1, "seed": 5},
    gives={
        "risk": ("risk R", "1", EVERY),
        "variance": ("posterior variance", "1", EVERY),
        "features": ("gap of the best on m cells", "1", EVERY),
        "estimation": ("gap to the best on m cells", "1", EVERY),
        "by_likelihood": ("gap to the best on m cells, by likelihood", "1", EVERY),
        "expected": ("expected gap to the best on m cells", "1", EVERY),
    },
    beside={"k": (lambda s: np.arange(1, s.p + 1), "examples k", "1")},
    presets={
        "tiny": ("Four and six cells, few prompts of up to four labels", dict(
            m=(4, 6), N=(64, 256), seed=(0, 1), p=4, points=400)),
        "many": ("Ten cells, many seeds, and up to 32768 prompts", dict(
            m=(10,), N=(2048, 8192, 32768), seed=tuple(range(70)), points=500)),
        "lengths": ("Six cells, 2048 prompts; p is changed", dict(
            m=(6,), N=(2048,), seed=tuple(range(60)), points=500)),
    },
)


@experiment.shared()
def fresh(s: Setting, device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Labels and signs of the test prompts, and what Bayes answers to 1 to p of the labels."""
    test = s.data().draw(s.points, s.seed, -1, devices.device(device))
    return test.context.y, test.target, s.data().bayes(test.context.y)[..., 1:]


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Parts of the risk on fresh prompts after 1 to p labels, and what the second-order expansion expects."""
    train, (y, sign, bayes) = s.data().draw(s.N, s.seed, 0, devices.device(device)), fresh(s, device)
    seen = counts(y, s.m)
    by_cells = answers(seen, torch.as_tensor(theory.evidence(s.m), device=y.device))

    labels = torch.cat([train.context.y, train.observed], -1)
    found, rival = empirical_minimum(labels, s.m, s.steps), by_likelihood(labels, s.m)
    guess = answers(seen, found)

    def square(difference: Tensor) -> Tensor:
        return difference.square().mean(-2)

    return {
        "risk": square(guess - sign),
        "variance": square(bayes - sign),
        "features": square(by_cells - bayes),
        "estimation": square(guess - by_cells),
        "by_likelihood": square(answers(seen, rival) - by_cells),
        "expected": expected_gap(seen, by_cells) / s.N,
    }


run = experiment.run


def cells(y: Float[Tensor, "*E p"], m: int) -> Int[Tensor, "*E p"]:
    """The cell of each label, of m in all."""
    return torch.bucketize(y.contiguous(), torch.as_tensor(theory.edges(m), dtype=y.dtype, device=y.device))


def counts(y: Float[Tensor, "*E p"], m: int) -> Float[Tensor, "*E p m"]:
    """How many of the first 1, 2, ... p labels lie in each of the m cells."""
    return torch.nn.functional.one_hot(cells(y, m), m).to(y.dtype).cumsum(-2)


def answers(seen: Float[Tensor, "*S b p m"], weights: Float[Tensor, "*W m"]) -> Float[Tensor, "*S b p"]:
    r""":math:`M = \tanh(\omega^\top c)` for the counts of every context."""
    return torch.tanh((seen @ weights[..., None, :, None])[..., 0])


def empirical_minimum(labels: Float[Tensor, "*S b q"], m: int, steps: int = 60) -> Float[Tensor, "*S m"]:
    r"""Weights that minimise the mean of :math:`(y_{k+1} - \tanh\omega^\top c_{P^k})^2` over k = 1 ... p, from 0.

    Levenberg and Marquardt's method: Gauss-Newton steps, damped where one would raise the loss. Seeds go one by one,
    since they need different numbers of steps.
    """
    if labels.ndim > 2:
        return torch.stack([empirical_minimum(one, m, steps) for one in labels])
    rows, mean, share = merged(labels[:, :-1], labels[:, 1:], m)
    weights, damping = rows.new_zeros(m), 1e-3
    loss = float(share @ mean.square())
    for _ in range(steps):
        answer = torch.tanh(rows @ weights)
        slope = rows * (1 - answer.square())[:, None]
        normal = slope.T @ (share[:, None] * slope)
        damped = normal + torch.diag(damping * normal.diagonal() + 1e-9)
        proposed = weights + torch.linalg.solve(damped, slope.T @ (share * (mean - answer)))
        there = float(share @ (mean - torch.tanh(rows @ proposed)).square())
        gained, damping = loss - there, damping * (0.1 if there <= loss else 10)
        if gained >= 0:
            weights, loss = proposed, there
        if abs(gained) < 1e-12:  # of a mean square: rounding
            break
    return weights


def by_likelihood(labels: Float[Tensor, "*S b q"], m: int, rounds: int = 100) -> Float[Tensor, "*S m"]:
    r"""Weights from the chances :math:`P_\pm` of the cells of largest likelihood, by expectation and maximisation.

    A prompt's labels are all of one sign, of which nothing else is known; the start says only that larger labels are
    more likely under f = 1. Half a count is added to every cell.
    """
    if labels.ndim > 2:
        return torch.stack([by_likelihood(one, m, rounds) for one in labels])
    rows, _, share = merged(labels, torch.zeros_like(labels), m, whole=True)
    times, weights = share * len(labels), torch.linspace(-1, 1, m).to(labels)
    for _ in range(rounds):
        plus = torch.sigmoid(2 * rows @ weights)  # posterior chance of f = 1
        first, second = ((times * chance) @ rows + 0.5 for chance in (plus, 1 - plus))
        before, weights = weights, 0.5 * ((first / first.sum()).log() - (second / second.sum()).log())
        if float((weights - before).abs().max()) < 1e-5:
            break
    return weights


def merged(y: Float[Tensor, "b p"], target: Float[Tensor, "b p"], m: int,
           whole: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Contexts of equal counts as one: their counts (c, m), the mean of their targets, and their share of all.

    whole: only the contexts of all p labels.

    Raises ValueError if counts are so many that 64 bits cannot tell them apart.
    """
    base = y.shape[-1] + 1  # a cell is a digit of a number, and its count at most p
    if base**m >= 2**63:
        raise ValueError(f"p and m are too large, {base - 1} and {m}: counts do not fit into one whole number")
    digits = torch.tensor([base**j for j in range(m)], device=y.device)
    last = slice(-1, None) if whole else slice(None)
    numbers = digits[cells(y, m)].cumsum(-1)[:, last].flatten()
    code, place, times = torch.unique(numbers, return_inverse=True, return_counts=True)
    total = target.new_zeros(len(code)).index_add_(0, place, target[:, last].flatten())
    return (code[:, None] // digits % base).to(y), total / times, times.to(y) / len(numbers)


def expected_gap(seen: Float[Tensor, "*S b p m"], best: Float[Tensor, "*S b p"]) -> Float[Tensor, "*S p"]:
    r"""N times the expected gap to the best on cells, to first order in 1/N, for contexts of 1 to p labels.

    .. math:: E\,g_k^\top H^{-1}JH^{-1}g_k, \qquad g_k = (1 - B_m^2)\,c_{P^k}, \qquad H = \frac1p\sum_kE\,g_kg_k^\top,
              \qquad J = \frac1{p^2}\sum_kE\,(\sigma_y^2 + 1 - B_m^2)\,g_kg_k^\top

    Expectations are means over the prompts that are given. Source: derived in the lecture.
    """
    slope = seen * (1 - best.square())[..., None]
    size, p = slope.shape[-3], slope.shape[-2]
    each = torch.einsum("...bka,...bkc->...kac", slope, slope) / size
    noisy = slope * (NOISE + 1 - best.square())[..., None]
    spread = torch.einsum("...bka,...bkc->...ac", noisy, slope) / (size * p**2)
    inverse = torch.linalg.inv(each.mean(-3))
    return torch.einsum("...kac,...ca->...k", each, inverse @ spread @ inverse)
