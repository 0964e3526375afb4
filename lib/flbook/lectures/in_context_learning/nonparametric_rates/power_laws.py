r"""In-context learning of functions: exact risks of linear attention on an orthonormal basis, and their rates.

A function has independent coefficients of variance :math:`\lambda_j`. Attention averages
:math:`\hat b_j = \frac1n\sum_i y_i f_j(x_i)` and predicts :math:`\sum_j \gamma_j \hat b_j f_j(x_q)`. Risks are mean
squared errors against the noiseless function, without a factor 1/2.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

Numbers = Float[np.ndarray, "*E"] | float  # one or many
Counts = Int[np.ndarray, "*E"] | int
TERMS = 2**20  # of an infinite sum, before an integral takes over


def power_law(size: int, s: float) -> Float[np.ndarray, " J"]:
    r"""Variances :math:`\lambda_j = \bar\jmath^{-2s-1}`, cosine and sine of one frequency sharing their mean index.

    :math:`\bar 1 = 1,\ \bar 2 = \bar 3 = 2.5,\ \bar 4 = \bar 5 = 4.5, \dots`; so random functions are stationary.
    """
    j = np.arange(1, size + 1)
    return np.where(j == 1, 1.0, 2 * (j // 2) + 0.5) ** (-2.0 * s - 1)


def label_energy(variance: Float[np.ndarray, " J"], noise: float) -> Float[np.ndarray, " J"]:
    r"""What one example's label adds to the variance of :math:`\hat b_j`: :math:`v_j = \sum_l \lambda_l + \sigma_y^2 - \lambda_j`.

    Exact for an orthonormal basis with :math:`\sum_l \lambda_l f_l^2` constant, such as `power_law` on the Fourier basis.
    """  # noqa: E501
    return variance.sum() + noise**2 - variance


class Attention(NamedTuple):
    """The best diagonal attention on some of the functions: its matrix and the three parts of its risk."""

    gamma: Float[np.ndarray, " N"]
    risk: float
    bias: float  # of the functions left out
    shrinkage: float  # what shrinking leaves of those kept
    spread: float  # variance of what was averaged


def best_attention(variance: Float[np.ndarray, " J"], noise: float, n: float, keep: int | None = None) -> Attention:
    r"""The best :math:`\Gamma` for prompts of n examples on the first `keep` functions; it is diagonal.

    .. math:: \gamma_j = \frac{\lambda_j}{\lambda_j + v_j/n}, \qquad
              R = \sum_{j > N} \lambda_j + \sum_{j \le N} \frac{\lambda_j\, v_j/n}{\lambda_j + v_j/n}

    Source: derived in the lecture.
    """
    check_length(n)
    lam, v = variance[:keep], label_energy(variance, noise)[:keep] / n
    gamma = lam / np.maximum(lam + v, np.finfo(float).tiny)
    shrinkage, spread = float(((1 - gamma) ** 2 * lam).sum()), float((gamma**2 * v).sum())
    bias = float(variance[len(lam) :].sum())
    return Attention(gamma, bias + shrinkage + spread, bias, shrinkage, spread)


def projection_risk(variance: Float[np.ndarray, " J"], noise: float, n: float) -> Float[np.ndarray, " J+1"]:
    r"""Risk of :math:`\Gamma = I` on the first N = 0 ... J functions: :math:`\sum_{j>N}\lambda_j + \frac1n\sum_{j\le N} v_j`."""  # noqa: E501
    check_length(n)
    spread = np.cumsum(label_energy(variance, noise)) / n
    return variance.sum() - np.append(0, np.cumsum(variance)) + np.append(0, spread)


def series_risk(n: Numbers, s: float, v: float) -> Numbers:
    r"""The infinite sum :math:`\sum_j \frac{\lambda_j v/n}{\lambda_j + v/n}` for `power_law` variances."""
    lam = power_law(TERMS, s)[1::2]  # each of them twice
    shrunk = [2 * (lam * (v / one) / (lam + v / one)).sum() + (v / one) / (1 + v / one) for one in np.ravel(n)]
    last = TERMS + 0.5 if TERMS % 2 else TERMS + 1.5
    return np.reshape(shrunk, np.shape(n)) + last ** (-2 * s) / (2 * s)


def asymptote(n: Numbers, s: float, v: float) -> Numbers:
    r"""What `series_risk` tends to: the integral, and the first correction to it.

    .. math:: R \approx \Big(\frac vn\Big)^{\frac{2s}{2s+1}} \frac{\pi/(2s+1)}{\sin(\pi/(2s+1))} - \frac{v}{2n}

    Source: derived in the lecture (Euler-Maclaurin).
    """
    p = 2 * s + 1
    return (v / np.asarray(n, float)) ** (2 * s / p) * (math.pi / p) / math.sin(math.pi / p) - v / (2 * np.asarray(n))


def truncation(keep: Counts, s: float) -> Numbers:
    r"""The bias :math:`\sum_{j > N} \lambda_j` of `power_law` variances, which falls like :math:`N^{-2s}/(2s)`."""
    sums = np.cumsum(power_law(TERMS, s)[::-1])[::-1]
    return sums[np.asarray(keep)] + (TERMS + 0.5) ** (-2 * s) / (2 * s)


def local_slope(x: Float[np.ndarray, " K"], y: Float[np.ndarray, " K"]) -> Float[np.ndarray, " K-1"]:
    """Slopes of log y against log x between neighbours."""
    return np.diff(np.log(y)) / np.diff(np.log(x))


def fitted_slope(x: Float[np.ndarray, " K"], y: Float[np.ndarray, " K"]) -> float:
    """The least-squares slope of log y against log x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def upper_bound(keep: int, n: int, T: float, s: float) -> float:
    r"""The theorem's three terms for splines without its constant: :math:`N^{-2s} + \frac{N\log N}{n} + \frac{N^2\log N}{T}`.

    Source: Kim, Nakamaki and Suzuki (2024), as in the talk's example.
    """  # noqa: E501
    return keep ** (-2.0 * s) + keep * math.log(keep) / n + keep**2 * math.log(keep) / T


def lower_bound(n: float, T: float, s: float, alpha: float, d: int = 1) -> float:
    r"""The talk's lower bound without its constant: :math:`n^{-2s/(2s+1)} + (nT)^{-2\alpha'/(2\alpha'+d)}`."""
    return n ** (-2 * s / (2 * s + 1)) + (n * T) ** (-2 * alpha / (2 * alpha + d))


def lower_bound_alone(n: float, s: float, alpha: float, d: int = 1) -> float:
    r"""The same without pretraining: :math:`\max\{n^{-2s/(2s+1)}, n^{-2\alpha'/(2\alpha'+d)}\}`."""
    return max(n ** (-2 * s / (2 * s + 1)), n ** (-2 * alpha / (2 * alpha + d)))


def pair_variance(pairs: int, s: float) -> Float[np.ndarray, " P"]:
    r"""Variances :math:`\propto i^{-2s-1}` of the two coefficients of each pair; all 2P of them add up to 1."""
    variance = np.arange(1.0, pairs + 1) ** (-2 * s - 1)
    return variance / (2 * variance.sum())


def expected_variance(variance: Float[np.ndarray, " P"], power: int, spread: int) -> Float[np.ndarray, " D"]:
    r"""Variances of the frequencies :math:`1 \dots M P^p` for who does not know which one of a group is used.

    The i-th group, :math:`M(i-1)^p < k \le M i^p`, shares :math:`\lambda_i` evenly: the variances decay like
    :math:`k^{-2s/p - 1}`, so the smoothness is s/p.
    """
    ends = spread * np.arange(len(variance) + 1) ** power
    return np.repeat(variance / np.diff(ends), np.diff(ends))


def diagonal_floor(gram: Float[np.ndarray, "J J"], variance: Float[np.ndarray, " J"]) -> float:
    r"""Risk of the best diagonal :math:`\Gamma` for n = infinity on functions with Gram matrix G.

    Averages then are :math:`\hat b = G\beta`, and :math:`E\,|\phi^\top(\Gamma G - I)\beta|^2` is quadratic in the
    diagonal: a J x J system. It is 0 for an orthonormal basis; the full :math:`\Gamma = G^{-1}` always reaches 0.
    """
    inner = gram @ np.diag(variance) @ gram  # E b b^T
    matrix, pull = gram * inner, np.einsum("jk,k,kj->j", gram, variance, gram)
    return float(np.einsum("jj,j->", gram, variance) - pull @ np.linalg.solve(matrix, pull))


def check_length(n: float) -> None:
    """Refuse a prompt without examples."""
    if not n >= 1:
        raise ValueError(f"n must be at least 1, the examples of a prompt; got {n}")
