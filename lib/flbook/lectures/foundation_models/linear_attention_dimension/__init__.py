r"""How many random features linear attention needs: as many as the kernel has degrees of freedom, times a logarithm.

Claim (Bach 2017, Proposition 1; Nishikawa et al. 2025, section 3): :math:`5 N_\lambda\log(16 N_\lambda/\delta)`
features from the optimal density hold every function of the kernel's unit ball to a mean squared error of
:math:`4\lambda`. Here tokens are Gaussian, the spectrum is known in closed form, and features from other densities are
the rivals.
"""

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from flbook.domains import Count, Natural, Positive, Range
from flbook.lectures.foundation_models.linear_attention_dimension.gaussian_tokens import Density, GaussianTokens
from flbook.runs import Experiment, Grid, axis


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    law: tuple[Density, ...] = axis(["plain", "wide", "optimal"], "density of the features")
    d: tuple[Count, ...] = axis([1, 2, 3], "dimension d of queries and keys")
    lam: tuple[Positive, ...] = axis([2.0**-4, 2.0**-6, 2.0**-8], "error level λ")
    seed: tuple[Natural, ...] = axis(range(16), "seed")
    theta: Annotated[float, Range(0, 0.5, "()")] = 0.3  # s²/√d
    levels: Count = 10  # degrees of the eigenfunctions that are kept
    most: Count = 2048  # features that are tried at most

    def tokens(self, d: int) -> GaussianTokens:
        """The tokens of dimension d."""
        return GaussianTokens(d, self.theta * math.sqrt(d), self.levels)


experiment = Experiment(
    Setting, version=1, loops=("law", "d", "lam", "seed"), chunk={"d": 1}, devices=("cpu",),
    gives={"needed": ("features needed M", "1"), "degrees": ("degrees of freedom N", "1", ("d", "lam"))},
    presets={
        "tiny": ("Small dimensions in a blink", dict(
            d=(1, 2), lam=(2.0**-2, 2.0**-4), seed=(0, 1, 2), levels=6, most=128)),
        "longer": ("Lower levels, more dimensions and draws", dict(
            law=("plain", "orthogonal", "wide", "optimal"), d=(1, 2, 3, 4), seed=tuple(range(40)), most=8192,
            lam=tuple(2.0**-k for k in range(4, 10)))),
    },
)


class Known(NamedTuple):
    """What is known of tokens in closed form at one level."""

    tokens: GaussianTokens
    filling: np.ndarray  # l/(l + λ) of each eigenvalue l
    degrees: float


def worst(rows: np.ndarray, filling: np.ndarray) -> float:
    r"""The worst squared error of a function of the unit ball, over :math:`\lambda`, from whitened features (M, K).

    .. math:: \big\|\Sigma^{1/2}(\hat\Sigma + \lambda)^{-1}\Sigma^{1/2}\big\|,

    with the penalty :math:`\lambda M\|\beta\|^2` on the combination of features.
    """
    middle = rows.T @ rows / len(rows) + np.diag(1 - filling)
    root = np.sqrt(filling)
    return 1 / np.linalg.eigvalsh(middle / root / root[:, None])[0]


def spread(rows: np.ndarray, filling: np.ndarray) -> float:
    r"""Size of the whitened error of the operator, :math:`\|\Delta\|`, from whitened features (M, K)."""
    return float(np.abs(np.linalg.eigvalsh(rows.T @ rows / len(rows) - np.diag(filling))).max())


def features_found(rows: np.ndarray, filling: np.ndarray, level: float = 4.0) -> float:
    """The least number of features, of a lattice of ratio 2^(1/8), from which on `worst` is at most `level`."""
    tried = np.unique(np.rint(2 ** np.arange(0, math.log2(len(rows)) + 1e-9, 1 / 8)).astype(int))
    low, high = 0, len(tried)
    while low < high:
        middle = (low + high) // 2
        if worst(rows[: tried[middle]], filling) <= level:
            high = middle
        else:
            low = middle + 1
    return float(tried[low]) if low < len(tried) else math.inf


@experiment.shared("d", "lam")
def known(s: Setting, device: str) -> Known:
    """The tokens and their spectrum, which every density and draw shares."""
    tokens = s.tokens(s.d)
    return Known(tokens, tokens.filling(s.lam), tokens.degrees(s.lam))


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, float]:
    """Features that are needed with one draw, infinite where too few were tried."""
    tokens, filling, degrees = known(s, device)
    rows = tokens.whitened(tokens.draw_features(s.most, s.law, s.lam, s.seed), s.law, s.lam)
    return {"needed": features_found(rows, filling), "degrees": degrees}


run = experiment.run
