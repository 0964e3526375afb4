r"""The risk of an in-context predictor as Bayes gap plus posterior variance: closed forms where there are any.

Two functions, :math:`f = \pm 1` with equal chance, seen k times in Gaussian noise of standard deviation
:math:`\sigma_y`, are the smallest mixture of task types.
"""

import itertools
import math

import numpy as np
from jaxtyping import Float, Int

NODES = 4001  # of an integral over one Gaussian, in units of its standard deviation, out to 12 of them


def sign_posterior_variance(k: Int[np.ndarray, " K"], noise: float) -> Float[np.ndarray, " K"]:
    r"""What k labels leave unknown about :math:`f = \pm1`: :math:`E\,\mathrm{sech}^2(S/\sigma_y^2)`, S their sum.

    Source: derived in the lecture.
    """
    mean = _evidence(k, noise)
    return _gaussian(lambda z: np.cosh(np.clip(z, -350, 350)) ** -2.0, mean, np.sqrt(mean))


def sign_posterior_mean(k: Int[np.ndarray, " K"], noise: float, share: float = 1.0) -> Float[np.ndarray, " K"]:
    r"""Mean of the posterior mean where f = 1: :math:`E\tanh(S/\sigma_y^2)`; `share` of the evidence is believed."""
    mean = _evidence(k, noise)
    return _gaussian(lambda z: np.tanh(share * z), mean, np.sqrt(mean))


def sign_asymptote(k: Int[np.ndarray, " K"], noise: float) -> Float[np.ndarray, " K"]:
    r"""Its limit :math:`\sqrt{\pi/2m}\,e^{-m/2}` with the evidence :math:`m = k/\sigma_y^2`."""
    mean = _evidence(k, noise)
    return np.sqrt(math.pi / (2 * mean)) * np.exp(-mean / 2)


def linear_gap(k: Int[np.ndarray, " K"], noise: float) -> Float[np.ndarray, " K"]:
    r"""Bayes gap of the best predictor that is linear in the labels, :math:`S/(k + \sigma_y^2)`.

    .. math:: E\,(\tanh(S/\sigma_y^2) - S/(k + \sigma_y^2))^2
    """
    mean = _evidence(k, noise)
    shrink = (1 / (1 + mean))[:, None]  # S/(k + sigma^2) = (S/sigma^2) / (1 + m)
    return _gaussian(lambda z: (np.tanh(z) - z * shrink) ** 2, mean, np.sqrt(mean))


def reported_sign(noise: float) -> float:
    r"""The constant of the theorem as reported, :math:`D^2/(8(\nu^2 + bD/2))`, for the two signs: :math:`1/(8\sigma_y^2)`.

    :math:`D = 2/\sigma_y^2` is the divergence of one label, :math:`\nu^2 = 4/\sigma_y^2` the variance of its
    log-likelihood ratio, which is Gaussian: b = 0.
    """  # noqa: E501
    divergence, spread = 2 / noise**2, 4 / noise**2
    return divergence**2 / (8 * spread)


def reported_planes(noise: float) -> float:
    r"""The same for two planes, at most: :math:`D = 1/\sigma_y^2`, and :math:`\nu^2` not below the ratio's variance.

    The ratio's variance is :math:`1/\sigma_y^2 + 2/\sigma_y^4`; with b = 0, the best case, :math:`1/(8(\sigma_y^2 + 2))`.
    """  # noqa: E501
    divergence, spread = 1 / noise**2, 1 / noise**2 + 2 / noise**4
    return divergence**2 / (8 * spread)


def planes_rate(noise: float) -> float:
    r"""Exponential rate for tasks on the unit circles of two orthogonal planes: :math:`\frac12\log(1 + 1/(2\sigma_y^2))`.

    Two tasks of different planes are :math:`\Delta = \sqrt2` apart. One example with a Gaussian input has the
    Bhattacharyya coefficient :math:`E\,e^{-\langle x, \Delta\rangle^2/8\sigma_y^2} = (1 + \|\Delta\|^2/4\sigma_y^2)^{-1/2}`.
    """  # noqa: E501
    return 0.5 * math.log1p(1 / (2 * noise**2))


def pooled_floor(values: tuple[float, ...], chances: tuple[float, ...], p: int) -> float:
    r"""Least Bayes gap of any function of the *mean* of features of k labels that is not told k, averaged over k = 1 ... p.

    Labels are :math:`f + \varepsilon` with :math:`f = \pm1` and noise that takes the `values` with the `chances`. A mean
    over features sees the shares of each label value and nothing else, so contexts with equal shares get one answer.

    Raises ValueError if the chances are not positive or do not add up to 1, or p is below 1.
    Source: an independent audit of Wakayama and Suzuki (2025), which has p = 2 and the value 1/255; derived here.
    """  # noqa: E501
    if p < 1:
        raise ValueError(f"p must be at least 1, the longest context; got {p}")
    if len(values) != len(chances) or min(chances) <= 0 or abs(sum(chances) - 1) > 1e-12:
        raise ValueError(f"chances must be positive, one for each value, and add up to 1; got {chances}")
    law = {sign: {sign + e: c for e, c in zip(values, chances, strict=True)} for sign in (1, -1)}
    labels = sorted(law[1].keys() | law[-1].keys())
    cells: dict[tuple, list[tuple[float, float]]] = {}
    for k in range(1, p + 1):
        for counts in _compositions(k, len(labels)):
            ways = math.factorial(k) / math.prod(math.factorial(c) for c in counts)
            weight = {sign: ways * math.prod(law[sign].get(y, 0.0) ** c for y, c in zip(labels, counts, strict=True))
                      for sign in (1, -1)}
            total = weight[1] + weight[-1]
            if total:
                common = math.gcd(*counts)
                place = tuple(c // common for c in counts)
                cells.setdefault(place, []).append((total / (2 * p), (weight[1] - weight[-1]) / total))
    floor = 0.0
    for members in cells.values():
        mass = sum(m for m, _ in members)
        mean = sum(m * bayes for m, bayes in members) / mass
        floor += sum(m * (bayes - mean) ** 2 for m, bayes in members)
    return floor


def _compositions(total: int, parts: int) -> list[tuple[int, ...]]:
    """All ways to write `total` as an ordered sum of `parts` counts."""
    found = []
    for bars in itertools.combinations(range(total + parts - 1), parts - 1):
        edges = (-1, *bars, total + parts - 1)
        found.append(tuple(b - a - 1 for a, b in itertools.pairwise(edges)))
    return found


def _evidence(k: np.ndarray, noise: float) -> Float[np.ndarray, " K"]:
    """The evidence k / sigma_y^2, which is mean and variance of S / sigma_y^2 if f = 1."""
    k = np.asarray(k, float)
    if not (k.min() >= 1 and noise > 0):
        raise ValueError(f"k must be at least 1 and noise positive; got k={k.min():g}, noise={noise}")
    return k / noise**2


def _gaussian(of, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """E of(z), z ~ N(mean, spread^2), by the trapezoidal rule: exponentially exact for functions as smooth as these."""
    at = np.linspace(-1, 1, NODES)  # far below the mean as well: there lies all of the integral for strong evidence
    reach = (12 * spread + mean)[:, None]
    z = mean[:, None] + reach * at
    density = np.exp(-0.5 * ((z - mean[:, None]) / spread[:, None]) ** 2) / (spread[:, None] * math.sqrt(2 * math.pi))
    return (of(z) * density).sum(-1) * reach[:, 0] * (at[1] - at[0])
