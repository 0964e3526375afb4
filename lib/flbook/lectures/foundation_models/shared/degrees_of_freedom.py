r"""How many random features an attention kernel needs: its spectrum, degrees of freedom, a budget over layers.

The kernel is :math:`K(x, y) = e^{x^\top y/\sqrt d}`, tokens have the law :math:`\rho`, and :math:`\Sigma` is the
integral operator :math:`(\Sigma f)(x) = \int K(x, y) f(y)\,d\rho(y)`. On J tokens it is the Gram matrix over J.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from flbook import rng
from flbook.domains import Count, Natural, Positive, Range, checked_arguments, require


class Spectrum(NamedTuple):
    """Eigenvalues, from the largest, and how often each stands; all arrays of one shape."""

    values: np.ndarray
    counts: np.ndarray


@checked_arguments
def gaussian_spectrum(d: Count, variance: Positive, levels: Count) -> Spectrum:
    r"""The first eigenvalues of :math:`\Sigma` for tokens :math:`x \sim N(0, s^2 I_d)`, one a level k = 0, 1, ...

    .. math:: l_k = (1 - u)^{-d/2}\Big(\frac\theta{1 - u}\Big)^k \text{ with multiplicity } \binom{k + d - 1}{d - 1},
              \quad \theta = \frac{s^2}{\sqrt d}, \quad u = \frac{1 - \sqrt{1 - 4\theta^2}}2

    Parameters
    ----------
    d
        Dimension of queries and keys.
    variance
        :math:`s^2` of each coordinate.
    levels
        How many levels; level k has the polynomials of degree k (times a Gaussian) as eigenfunctions.

    Raises
    ------
    ValueError
        If :math:`\theta \ge 1/2`, where the trace is infinite.

    Examples
    --------
    >>> values, counts = gaussian_spectrum(d=4, variance=0.5, levels=60)
    >>> round(float(values @ counts) * (1 - 2 * 0.25) ** 2, 10)  # the trace is (1 - 2 theta)^(-d/2)
    1.0
    """
    theta = kernel_scale(d, variance)
    u = (1 - math.sqrt(1 - 4 * theta**2)) / 2
    k = np.arange(levels)
    values = (1 - u) ** (-d / 2) * (theta / (1 - u)) ** k
    return Spectrum(values, np.array([math.comb(level + d - 1, d - 1) for level in range(levels)], float))


@checked_arguments
def kernel_scale(d: Count, variance: Positive) -> float:
    r""":math:`\theta = s^2/\sqrt d`, the one number of Gaussian tokens beside d. Raises ValueError from 1/2 on."""
    theta = variance / math.sqrt(d)
    if theta >= 0.5:
        raise ValueError(f"variance must be below sqrt(d)/2 = {math.sqrt(d) / 2:.4g}, where the trace of the kernel "
                         f"is finite; got {variance}")
    return theta


def gram_spectrum(gram) -> np.ndarray:
    """Eigenvalues of a Gram matrix [K(x_i, x_j)] over its number of points J, from the largest.

    Parameters
    ----------
    gram
        The kernel between J tokens, shape (..., J, J), not yet divided by J.

    Raises
    ------
    ValueError
        If it is not square, symmetric, finite and positive semi-definite.

    Examples
    --------
    >>> gram_spectrum([[3.0, 1.0], [1.0, 3.0]])
    array([2., 1.])
    """
    gram = np.asarray(gram, float)
    if gram.ndim < 2 or gram.shape[-1] != gram.shape[-2]:
        raise ValueError(f"gram must be square, the kernel between J points; its shape is {gram.shape}")
    if not np.isfinite(gram).all() or not np.allclose(gram, gram.swapaxes(-1, -2)):
        raise ValueError("gram must be finite and symmetric, the kernel between J points and themselves")
    values = np.linalg.eigvalsh(gram / gram.shape[-1])[..., ::-1]
    if (values[..., -1] < -1e-5 * values[..., 0]).any():
        raise ValueError(f"gram must be positive semi-definite; its smallest eigenvalue over J is {values.min():.3g}")
    return values.clip(0)


def attention_gram(tokens) -> np.ndarray:
    r""":math:`[e^{x_i^\top x_j/\sqrt d}]` of tokens (queries and keys) of shape (..., J, d); not divided by J."""
    tokens = np.asarray(tokens, float)
    return np.exp(tokens @ tokens.swapaxes(-1, -2) / math.sqrt(tokens.shape[-1]))


@checked_arguments
def drawn_tokens(tokens: np.ndarray, points: Count, seed: Natural = 0) -> np.ndarray:
    """Some of the tokens, shape (n, d) to (points, d), without replacement. Raises ValueError if there are too few."""
    if points > len(tokens):
        raise ValueError(f"points must be at most the number of tokens, {len(tokens)}; got {points}")
    return tokens[rng.numpy_generator(seed, "tokens of a Gram matrix").permutation(len(tokens))[:points]]


def degrees_of_freedom(eigenvalues, lam, counts=1.0) -> np.ndarray | float:
    r""":math:`N_\lambda = \mathrm{tr}\,\Sigma(\Sigma + \lambda)^{-1} = \sum_k \frac{l_k}{l_k + \lambda}`.

    From a Gram matrix of J tokens it is below J: too low where :math:`N_\lambda` is not far below J.

    Parameters
    ----------
    eigenvalues
        Of :math:`\Sigma`, shape (..., K), as `gram_spectrum` and `gaussian_spectrum` give them.
    lam
        :math:`\lambda`: a number, or several, shape (L,).
    counts
        How often each eigenvalue stands.

    Returns
    -------
    ndarray or float
        Shape (...), or (L, ...) for several lambda.

    Raises
    ------
    ValueError
        If lambda is not positive, or an eigenvalue negative.

    Source: Nishikawa, Higuchi and Suzuki (2025), section 3.

    Examples
    --------
    >>> float(degrees_of_freedom([1.0, 0.25], 0.25))
    1.3
    """
    values = np.asarray(eigenvalues, float)
    for one in np.ravel(lam):
        require("lam", float(one), Positive)
    if values.size == 0 or not (values >= 0).all():
        raise ValueError("eigenvalues must be at least 0, and at least one of them")
    level = np.asarray(lam, float).reshape(np.shape(lam) + (1,) * values.ndim)
    return (np.asarray(counts, float) * values / (values + level)).sum(-1)


@checked_arguments
def features_needed(dof: Positive, delta: Annotated[float, Range(0, 1, "()")] = 0.1) -> float:
    r""":math:`M = 5 N_\lambda\log(16 N_\lambda/\delta)`: so many optimally drawn features are enough.

    With probability :math:`1 - \delta` every function of the kernel's unit ball then has a combination of features
    with a mean squared error of at most :math:`4\lambda`.

    Source: Bach (2017), Proposition 1.

    Examples
    --------
    >>> round(features_needed(10.0, 0.1))
    369
    """
    return 5 * dof * math.log(16 * dof / delta)


@checked_arguments
def allocation(dof, budget: Annotated[float, Range(1)]) -> np.ndarray:
    r"""Features of each layer in proportion to its degrees of freedom, :math:`C\,N_s/\bar N`, rounded, at least 1.

    Parameters
    ----------
    dof
        Degrees of freedom of each layer, the largest of its heads, shape (layers,).
    budget
        C, features per layer (or per head) on average, at least 1.

    Returns
    -------
    ndarray
        Whole numbers, shape (layers,).

    Source: Nishikawa, Higuchi and Suzuki (2025), Algorithm 1. The least of one feature is ours.

    Examples
    --------
    >>> allocation([150.0, 50.0, 25.0, 75.0], budget=16)
    array([32, 11,  5, 16])
    """
    dof = np.asarray(dof, float)
    if dof.ndim != 1 or len(dof) == 0 or not (np.isfinite(dof) & (dof > 0)).all():
        raise ValueError(f"dof must be one positive number a layer; got {dof.tolist()}")
    return np.rint(budget * dof / dof.mean()).clip(1).astype(int)
