r"""How far a kernel of random features, and attention with it, are from the exact ones, for Gaussian tokens.

Features of density q (over the standard normal one) form :math:`\hat K(x, y) = \frac1M\sum_m\phi(x; z_m)\phi(y;
z_m)/q(z_m)`. Derived in the lecture.
"""

import math
from typing import Annotated

import numpy as np

from flbook import rng
from flbook.domains import Count, Natural, Positive, Range, checked_arguments
from flbook.lectures.foundation_models.linear_attention_dimension.gaussian_tokens import Density, GaussianTokens

Theta = Annotated[float, Range(0, 0.5, "()")]


@checked_arguments
def plain_rate(theta: Theta) -> float:
    r"""Exponent in M of the typical error of plain features: -1/2 up to :math:`\theta = 1/6`, then
    :math:`-\frac{1 - 2\theta}{1 + 2\theta}`.

    Examples
    --------
    >>> plain_rate(0.1), round(plain_rate(0.3), 6)
    (-0.5, -0.25)
    """
    return -min(0.5, (1 - 2 * theta) / (1 + 2 * theta))


@checked_arguments
def wide_square(d: Count, theta: Theta) -> float:
    r"""M times the mean of :math:`\|\hat K - K\|^2` for wide features, :math:`(\mathrm{tr}\Sigma)^2 -
    \mathrm{tr}\Sigma^2`: the least of all densities."""
    return (1 - 2 * theta) ** -d - (1 - 4 * theta**2) ** (-d / 2)


@checked_arguments
def plain_square(d: Count, theta: Theta) -> float:
    r"""The same for plain features, :math:`E\|\phi\|^4 - \mathrm{tr}\Sigma^2`; infinite from theta = 1/6 on."""
    if theta >= 1 / 6:
        return math.inf
    return ((1 + 2 * theta) * (1 - 6 * theta)) ** (-d / 2) - (1 - 4 * theta**2) ** (-d / 2)


@checked_arguments
def optimal_square(tokens: GaussianTokens, lam: Positive) -> float:
    r"""The same for optimal features at level lambda, by the integral over the length of a feature, which is all that
    its density depends on; the kernel's levels are those that `tokens` keeps.

    Examples
    --------
    >>> tokens = GaussianTokens(2, 0.2 * 2**0.5, 16)
    >>> optimal_square(tokens, 2.0**-8) > optimal_square(tokens, 1.0) > wide_square(2, 0.2)
    True
    """
    theta, d = tokens.theta, tokens.d
    length = np.linspace(1e-4, 30, 6001)
    z = np.zeros((len(length), d))
    z[:, 0] = length
    log_norm = 2 * theta / (1 + 2 * theta) * length**2 - d / 2 * math.log1p(2 * theta)  # of a squared feature
    log_law = (d - 1) * np.log(length) - length**2 / 2 - (d / 2 - 1) * math.log(2) - math.lgamma(d / 2)
    grown = np.exp(2 * log_norm + log_law - np.log(tokens.density(z, "optimal", lam)))
    return float(grown.sum() * (length[1] - length[0])) - (1 - 4 * theta**2) ** (-d / 2)


def positive_squares(tokens: GaussianTokens, z: np.ndarray) -> np.ndarray:
    r""":math:`\|\phi(\cdot\,; z)\|^2 = (1 + 2\theta)^{-d/2}e^{2\theta\|z\|^2/(1 + 2\theta)}` of features (M, d)."""
    theta = tokens.theta
    return np.exp(2 * theta / (1 + 2 * theta) * (z**2).sum(1)) / (1 + 2 * theta) ** (tokens.d / 2)


def kernel_error(tokens: GaussianTokens, z: np.ndarray, density: np.ndarray) -> float:
    r""":math:`\|\hat K - K\|` in :math:`L^2(\rho\otimes\rho)`, exactly, for features z, (M, d), of densities (M,)."""
    theta, d, w = tokens.theta, tokens.d, tokens.ratio
    square = (z**2).sum(1)
    inner = np.exp(theta / (1 + 2 * theta) * (square[:, None] / 2 + square / 2 + z @ z.T)) / (1 + 2 * theta) ** (d / 2)
    pairs = (inner**2 / density / density[:, None]).mean()
    # <phi, Sigma phi> = sum of l^2 psi^2: Mehler's formula with w^2
    first, c2 = tokens.spectrum.values[0], tokens.narrowing**2
    grown = c2 * w**2 / (1 + w**2) + (1 - c2) / 2
    crossed = first**2 * (c2 / (1 - w**4)) ** (d / 2) * np.exp(grown * square)
    return math.sqrt(pairs - 2 * (crossed / density).mean() + (1 - 4 * theta**2) ** (-d / 2))


@checked_arguments
def attention_error(tokens: GaussianTokens, law: Density, lam: Positive, features: Count, seed: Natural,
                    length: Count = 256) -> float:
    """Squared error of attention's outputs over their mean square: `length` queries and keys, values of independent
    standard normal coordinates."""
    query, key, value = _prompt(tokens, seed, length)
    z = tokens.draw_features(features, law, lam, seed)
    weights = positive_features(query, z) / tokens.density(z, law, lam) @ positive_features(key, z).T
    exact = _averages(np.exp(query @ key.T / math.sqrt(tokens.d)), value)
    return float(((_averages(weights, value) - exact) ** 2).sum() / (exact**2).sum())


@checked_arguments
def mean_value_error(tokens: GaussianTokens, seed: Natural, length: Count = 256) -> float:
    """The same error of what knows no context: the mean of all values."""
    query, key, value = _prompt(tokens, seed, length)
    exact = _averages(np.exp(query @ key.T / math.sqrt(tokens.d)), value)
    return float(((value.mean(0) - exact) ** 2).sum() / (exact**2).sum())


def _prompt(tokens: GaussianTokens, seed: int, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = rng.numpy_generator(seed, "queries, keys and values")
    query, key = math.sqrt(tokens.variance) * generator.standard_normal((2, length, tokens.d))
    return query, key, generator.standard_normal((length, 16))


@checked_arguments
def mean_attention_errors(tokens: GaussianTokens, law: Density, lam: Positive, sizes: tuple[Count, ...],
                          seeds: tuple[Natural, ...], draws: Count = 4) -> np.ndarray:
    """Mean over draws of `attention_error`; a row for each seed, a column for each number of features."""
    return np.array([[np.mean([attention_error(tokens, law, lam, size, seed * draws + k) for k in range(draws)])
                      for size in sizes] for seed in seeds])  # fmt: skip


def positive_features(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    r""":math:`\phi(x; z) = \exp(z^\top x/d^{1/4} - \|x\|^2/(2\sqrt d))` of tokens (n, d), features (M, d)."""
    d = x.shape[1]
    return np.exp(x @ z.T / d**0.25 - (x**2).sum(1, keepdims=True) / (2 * math.sqrt(d)))


def running_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Causal linear attention from features (n, M) of queries and keys, one token after the other, in two sums."""
    numbers, total, outputs = 0.0, 0.0, []
    for q, k, v in zip(query, key, value, strict=True):
        numbers, total = numbers + np.outer(k, v), total + k
        outputs.append(q @ numbers / (q @ total))
    return np.array(outputs)


@checked_arguments
def typical_errors(theta: Theta, d: Count, law: Density, counts: tuple[Count, ...], seeds: tuple[Natural, ...],
                   draws: Count = 20) -> np.ndarray:
    """Median over draws of the kernel's error; a row for each seed, a column for each number of features."""
    tokens = GaussianTokens(d, theta * math.sqrt(d), 2)
    columns = [np.median(_errors(tokens, law, count, draws, seeds), -1) for count in counts]
    return np.stack(columns, -1)


@checked_arguments
def mean_squares(tokens: GaussianTokens, law: Density, features: Count, draws: Count,
                 seeds: tuple[Natural, ...]) -> np.ndarray:
    """Mean over draws of the kernel's squared error, one for each seed."""
    return (_errors(tokens, law, features, draws, seeds) ** 2).mean(-1)


def _errors(tokens: GaussianTokens, law: Density, features: int, draws: int, seeds: tuple[int, ...]) -> np.ndarray:
    """The kernel's error, shape (seeds, draws)."""
    found = []
    for seed in seeds:
        z = tokens.draw_features(features * draws, law, 1.0, seed).reshape(draws, features, tokens.d)
        found.append([kernel_error(tokens, one, tokens.density(one, law, 1.0)) for one in z])
    return np.array(found)


def _averages(weights: np.ndarray, value: np.ndarray) -> np.ndarray:
    return weights @ value / weights.sum(1, keepdims=True)
