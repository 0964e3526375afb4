r"""In-context learning of functions: exact risks of linear attention on an orthonormal basis, and their rates.

A function has independent coefficients of variance :math:`\lambda_j`. Attention averages
:math:`\hat b_j = \frac1n\sum_i y_i f_j(x_i)` and predicts :math:`\sum_j \gamma_j \hat b_j f_j(x_q)`. Risks are mean
squared errors against the noiseless function, without a factor 1/2.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

Numbers = Float[np.ndarray, "*E"] | float  # one or many
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


def risk_terms(variance: Float[np.ndarray, " J"], noise: float, n: float, keep: int, T: float) -> tuple[float, ...]:
    r"""What features left out, a short prompt and few pretraining prompts cost a full :math:`\Gamma`; the risk is their sum.

    .. math:: \sum_{j>N}\lambda_j,\quad \sum_{j\le N}\frac{\lambda_j v_j/n}{\lambda_j + v_j/n},\quad
              (R_* + \sigma_y^2)\frac{N^2}{T - N^2 - 1},\quad R_* \text{ the sum of the first two}

    The third is that of least squares on Gaussian columns, and infinite for :math:`T \le N^2 + 1`. Source: derived in the
    lecture.
    """  # noqa: E501
    best, left = best_attention(variance, noise, n, keep), T - keep**2 - 1
    pretraining = (best.risk + noise**2) * keep**2 / left if left > 0 else math.inf
    return best.bias, best.risk - best.bias, pretraining


def least_risk(variance: Float[np.ndarray, " J"], noise: float, n: float) -> float:
    r"""A lower bound for every method, the basis known: :math:`\sum_j \frac{\lambda_j\sigma_y^2/n}{\lambda_j + \sigma_y^2/n}`.

    Source: Jensen's inequality for the posterior covariance, proved in the lecture.
    """  # noqa: E501
    check_length(n)
    return float((variance * noise**2 / (n * variance + noise**2)).sum())


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


def fitted_slope(x: Float[np.ndarray, " K"], y: Float[np.ndarray, " K"]) -> float:
    """The least-squares slope of log y against log x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


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


def check_length(n: float) -> None:
    """Refuse a prompt without examples."""
    if not n >= 1:
        raise ValueError(f"n must be at least 1, the examples of a prompt; got {n}")
