r"""Random features of the attention kernel for Gaussian tokens, in the eigenfunctions of the kernel: all of it exact.

For tokens :math:`x \sim N(0, s^2 I_d)` a positive feature has the expansion

.. math:: \phi(\cdot\,; z) = \sum_\alpha \sqrt{l_{|\alpha|}}\,\psi_\alpha(z)\,e_\alpha, \qquad
          \psi_\alpha(z) = \prod_{i=1}^d \sqrt c\,h_{\alpha_i}(c z_i)\,e^{(1 - c^2) z_i^2/4}, \qquad
          c^2 = \frac{1 - w}{1 + w}

over multi-indices :math:`\alpha`, with the ratio w of neighbouring eigenvalues, eigenfunctions :math:`e_\alpha` of
:math:`\Sigma` and normalised Hermite polynomials :math:`h_k`. Derived in the lecture.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Literal

import numpy as np

from flbook import hermite, rng
from flbook.domains import Checked, Count, Natural, Positive, checked_arguments
from flbook.lectures.foundation_models.shared.degrees_of_freedom import Spectrum, gaussian_spectrum, kernel_scale

_GRID = np.linspace(-14, 14, 4001)  # beyond it the squared Hermite functions that are used have no mass

Density = Literal["plain", "orthogonal", "wide", "optimal"]


@dataclass(frozen=True)
class GaussianTokens(Checked):
    r"""Tokens :math:`x \sim N(0, s^2 I_d)`, their kernel cut off behind a number of levels, and features of it.

    Parameters
    ----------
    d
        Dimension of queries and keys.
    variance
        :math:`s^2`, below :math:`\sqrt d/2`.
    levels
        Degrees of the polynomials that are kept.

    Raises
    ------
    ValueError
        If a number is outside its domain.
    """

    d: Count = 4
    variance: Positive = 0.2
    levels: Count = 7

    def __post_init__(self):
        super().__post_init__()
        kernel_scale(self.d, self.variance)

    @property
    def theta(self) -> float:
        r""":math:`\theta = s^2/\sqrt d`."""
        return kernel_scale(self.d, self.variance)

    @property
    def spectrum(self) -> Spectrum:
        """Eigenvalues and multiplicities of the levels that are kept."""
        return gaussian_spectrum(self.d, self.variance, self.levels)

    @property
    def ratio(self) -> float:
        r""":math:`w = \theta/(1 - u)`, the ratio of neighbouring eigenvalues."""
        return (1 - math.sqrt(1 - 4 * self.theta**2)) / (2 * self.theta)

    @property
    def narrowing(self) -> float:
        r""":math:`c = \sqrt{(1 - w)/(1 + w)}`: the squared eigenfunctions are 1/c times as wide as the normal law."""
        return math.sqrt((1 - self.ratio) / (1 + self.ratio))

    @cached_property
    def indices(self) -> np.ndarray:
        """The multi-indices, by level; shape (K, d)."""
        rows = []
        for level in range(self.levels):
            for places in combinations_with_replacement(range(self.d), level):
                rows.append(np.bincount(places, minlength=self.d) if level else np.zeros(self.d, int))
        return np.array(rows)

    @cached_property
    def eigenvalues(self) -> np.ndarray:
        """One for each multi-index, shape (K,)."""
        return self.spectrum.values[self.indices.sum(1)]

    @checked_arguments
    def filling(self, lam: Positive) -> np.ndarray:
        r""":math:`l/(l + \lambda)` of each multi-index, shape (K,)."""
        return self.eigenvalues / (self.eigenvalues + lam)

    @checked_arguments
    def degrees(self, lam: Positive) -> float:
        """Degrees of freedom of the levels that are kept."""
        return float(self.filling(lam).sum())

    def coordinates(self, z: np.ndarray) -> np.ndarray:
        r""":math:`\psi_\alpha(z)` of features of shape (M, d); shape (M, K)."""
        one = self._one_by_one(z)
        return math.prod(one[self.indices[:, i], :, i].T for i in range(self.d))

    def _one_by_one(self, z: np.ndarray) -> np.ndarray:
        r""":math:`\psi_k(z_i)`, shape (levels, M, d)."""
        c = self.narrowing
        grown = np.exp((1 - c**2) * z**2 / 4)
        return np.stack([math.sqrt(c) * hermite.polynomial(k, c * z) * grown for k in range(self.levels)])

    def by_level(self, z: np.ndarray) -> np.ndarray:
        r""":math:`\sum_{|\alpha| = k}\psi_\alpha(z)^2` for each level k, of features (M, d); shape (M, levels)."""
        squares = self._one_by_one(z) ** 2
        total = squares[:, :, 0]
        for i in range(1, self.d):  # a level of i + 1 coordinates shares its degree among them
            total = sum(_shifted(total, k) * squares[k, :, i] for k in range(self.levels))
        return total.T

    @checked_arguments
    def density(self, z: np.ndarray, law: Density, lam: Positive) -> np.ndarray:
        """q(z) over the standard normal density, shape (M,); of mean 1."""
        if law == "optimal":
            values, counts = self.spectrum
            filling = values / (values + lam)
            return self.by_level(z) @ filling / (filling @ counts)
        if law == "wide":
            width = (1 + 2 * self.theta) / (1 - 2 * self.theta)
            return width ** (-self.d / 2) * np.exp((z**2).sum(1) * (1 - 1 / width) / 2)
        return np.ones(len(z))

    @checked_arguments
    def draw_features(self, features: Count, law: Density, lam: Positive, seed: Natural = 0) -> np.ndarray:
        r"""Features z, shape (M, d).

        Plain ones are standard normal; orthogonal ones too, but orthogonal in blocks of d. The wide density is in
        proportion to the squared norm of a feature, again a Gaussian. The optimal density is a mixture of the
        :math:`\psi_\alpha^2` (times the normal density), with weights :math:`l/(l + \lambda)`.
        """
        generator = rng.numpy_generator(seed, "random features")
        if law != "optimal":
            z = generator.standard_normal((features, self.d))
            if law == "wide":
                z *= math.sqrt((1 + 2 * self.theta) / (1 - 2 * self.theta))
            return _orthogonal(z, generator) if law == "orthogonal" else z
        values, counts = self.spectrum
        weight = counts * values / (values + lam)
        level = generator.choice(self.levels, features, p=weight / weight.sum())
        degree = generator.multinomial(level, generator.dirichlet(np.ones(self.d), features))  # each index as likely
        uniform = generator.random((features, self.d))
        z = np.empty_like(uniform)
        for k in range(self.levels):
            z[degree == k] = np.interp(uniform[degree == k], _distribution(k), _GRID) / self.narrowing
        return z

    @checked_arguments
    def whitened(self, z: np.ndarray, law: Density, lam: Positive) -> np.ndarray:
        r"""Rows :math:`(\Sigma + \lambda)^{-1/2}\phi(\cdot\,; z_m)/\sqrt{q(z_m)}`, shape (M, K).

        Their mean outer product is the whitened estimate of :math:`\Sigma`.
        """
        rows = self.coordinates(z) * np.sqrt(self.filling(lam))
        return rows / np.sqrt(self.density(z, law, lam))[:, None]


def _distribution(k: int) -> np.ndarray:
    """Distribution function of the density h_k^2 times the standard normal one, on the grid."""
    density = hermite.polynomial(k, _GRID) ** 2 * np.exp(-(_GRID**2) / 2)
    total = np.cumsum((density[1:] + density[:-1]) / 2)
    return np.concatenate([[0.0], total]) / total[-1]


def _shifted(by_level: np.ndarray, k: int) -> np.ndarray:
    """The same a degree k higher; what leaves the levels is dropped."""
    return np.concatenate([np.zeros_like(by_level[:k]), by_level[: len(by_level) - k]])


def _orthogonal(z: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Features of the same lengths, orthogonal in blocks of d."""
    count, d = z.shape
    blocks = np.linalg.qr(generator.standard_normal((-(-count // d), d, d)))[0].reshape(-1, d)[:count]
    signs = generator.choice([-1.0, 1.0], (count, 1))
    return blocks * signs * np.linalg.norm(z, axis=1, keepdims=True)
