r"""The doubt that k labels leave about a sign, in closed form: for labels seen whole, and told apart by cells only.

Two functions, :math:`f = \pm 1` with equal chance, are seen in Laplace noise of scale 1, of density
:math:`\frac12e^{-|\varepsilon|}`. One label is worth the evidence
:math:`\frac12\log p(y - 1)/p(y + 1) = \mathrm{clip}(y, -1, 1)`.
"""

import itertools
import math

import numpy as np
from jaxtyping import Float, Int

NODES = np.linspace(-25, 25, 5001)  # where sech(pi t / 2) is above 1e-16, and fine enough for the cosines of evidence


def edges(m: int) -> Float[np.ndarray, " cuts"]:
    """Ends of m cells: m - 2 of one width on [-1, 1], and the two half-lines beside it, where evidence is constant.

    Raises ValueError if m is below 3.
    """
    if m < 3:
        raise ValueError(f"m must be at least 3, two half-lines and a cell between them; got {m}")
    return np.linspace(-1, 1, m - 1)


def chances(m: int) -> Float[np.ndarray, "2 m"]:
    """Chances of the cells if f = 1 and if f = -1."""
    ends = np.concatenate([[-np.inf], edges(m), [np.inf]])
    return np.stack([np.diff(_distribution(ends - f)) for f in (1, -1)])


def evidence(m: int) -> Float[np.ndarray, " m"]:
    r"""What one label of a cell is worth, :math:`\omega_j = \frac12\log P_+(j)/P_-(j)`."""
    plus, minus = chances(m)
    return 0.5 * np.log(plus / minus)


def doubt(k: Int[np.ndarray, " K"], m: int | None = None) -> Float[np.ndarray, " K"]:
    r"""Posterior variance of f after k labels, seen whole, or as one of m cells.

    .. math:: \Big(\sum\sqrt{P_+P_-}\Big)^k\,E\,\mathrm{sech}(Z), \qquad
              E\,\mathrm{sech}(Z) = \int\frac{\chi(t)^k}{2\cosh(\pi t/2)}\,dt

    Z is the evidence of k labels that are drawn from the law between the two, of density proportional to
    :math:`\sqrt{P_+P_-}`, and :math:`\chi` the characteristic function of one of them.

    Raises ValueError if a k is below 1.
    Source: derived in the lecture.
    """
    k = _counts(k)
    if m is None:
        overlap, chi = 2 / math.e, 0.5 * (np.cos(NODES) + np.sinc(NODES / math.pi))
    else:
        between = np.sqrt(chances(m).prod(0))
        overlap = between.sum()
        chi = np.cos(NODES[:, None] * evidence(m)) @ (between / overlap)
    weight = 0.5 / np.cosh(math.pi * NODES / 2) * (NODES[1] - NODES[0])
    return overlap**k * (chi ** k[:, None] @ weight)


def doubt_limit(k: Int[np.ndarray, " K"]) -> Float[np.ndarray, " K"]:
    r"""Its limit for many labels, :math:`\sqrt{3\pi/4k}\,(2/e)^k`."""
    k = _counts(k)
    return np.sqrt(0.75 * math.pi / k) * (2 / math.e) ** k


def feature_gap(k: Int[np.ndarray, " K"], m: int) -> Float[np.ndarray, " K"]:
    """Bayes gap of the best that can be done with m cells: what they leave in doubt beyond the labels themselves."""
    return doubt(k, m) - doubt(k)


def reported_rate() -> float:
    r"""The constant of the theorem as reported, :math:`D^2/8(\nu^2 + bD/2)`, at its largest.

    D is the divergence of the two laws of a label; :math:`\nu^2` is not below the variance of the log-likelihood ratio,
    and b, which bounds its fluctuation, not below 0.
    """
    divergence = 1 + math.exp(-2)
    square = 4 * (1 - 2 * math.exp(-2))  # mean square of twice the evidence, if f = 1
    return divergence**2 / (8 * (square - divergence**2))


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


def _counts(k: np.ndarray) -> Float[np.ndarray, " K"]:
    k = np.asarray(k, float)
    if not k.min() >= 1:
        raise ValueError(f"k must be at least 1, a number of labels; got {k.min():g}")
    return k


def _distribution(y: np.ndarray) -> Float[np.ndarray, " K"]:
    """Distribution function of Laplace noise of scale 1."""
    tail = 0.5 * np.exp(-np.abs(y))
    return np.where(y < 0, tail, 1 - tail)
