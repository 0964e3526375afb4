r"""How many random features linear attention needs: as many as the kernel has degrees of freedom, times a logarithm.

Claim (Bach 2017, Proposition 1; Nishikawa et al. 2025, section 3): :math:`5 N_\lambda\log(16 N_\lambda/\delta)`
features from the optimal density hold every function of the kernel's unit ball to a mean squared error of
:math:`4\lambda`. Here tokens are Gaussian, the spectrum is known in closed form, and features from other densities are
the rivals.
"""

import math
from dataclasses import dataclass
from itertools import product
from typing import Annotated

import numpy as np
import xarray as xr

from flbook.domains import Count, Natural, Positive, Range
from flbook.lectures.foundation_models.linear_attention_dimension.gaussian_tokens import Density, GaussianTokens
from flbook.runs import Grid, axis, labelled, sweeps

VERSION = 1


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

    @classmethod
    def tiny(cls) -> "Setting":
        """Small dimensions in a blink."""
        return cls(d=(1, 2), lam=(2.0**-2, 2.0**-4), seed=(0, 1, 2), levels=6, most=128)

    @classmethod
    def paper(cls) -> "Setting":
        """Lower levels, more dimensions and draws."""
        return cls(law=("plain", "orthogonal", "wide", "optimal"), d=(1, 2, 3, 4), seed=tuple(range(40)), most=8192,
                   lam=tuple(2.0**-k for k in range(4, 10)))

    def tokens(self, d: int) -> GaussianTokens:
        """The tokens of dimension d."""
        return GaussianTokens(d, self.theta * math.sqrt(d), self.levels)


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


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Features that are needed in every cell, infinite where too few were tried; dimensions (law, d, lam, seed)."""
    needed = np.empty([len(setting.law), len(setting.d), len(setting.lam), len(setting.seed)])
    degrees = np.empty(needed.shape[1:3])
    for (j, d), (k, lam) in product(enumerate(setting.d), enumerate(setting.lam)):
        tokens = setting.tokens(d)
        filling, degrees[j, k] = tokens.filling(lam), tokens.degrees(lam)
        for (i, law), (s, seed) in product(enumerate(setting.law), enumerate(setting.seed)):
            rows = tokens.whitened(tokens.draw_features(setting.most, law, lam, seed), law, lam)
            needed[i, j, k, s] = features_found(rows, filling)
    return labelled({"needed": (("law", "d", "lam", "seed"), needed, "features needed M"),
                     "degrees": (("d", "lam"), degrees, "degrees of freedom N")}, setting.coordinates())


run = sweeps(measure, chunk={"d": 1})
