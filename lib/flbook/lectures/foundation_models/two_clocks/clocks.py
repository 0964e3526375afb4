r"""The two clocks of a denoiser on fixed tanh features, for infinitely many of them.

A sample's coordinate along one direction has the variance 1 and comes with noise, :math:`x = \sqrt{\bar\alpha}\,x_0 +
\sqrt{1-\bar\alpha}\,\epsilon`. Features see it with strength :math:`a^2/d`, and each of the n samples by itself with
strength :math:`v^2/n`. Training falls apart into d problems of two numbers each.
"""

from typing import NamedTuple

import numpy as np

from flbook.hermite import coefficients

_COEFFICIENTS = coefficients(np.tanh, degree=39)  # in normalised Hermite polynomials


class Strengths(NamedTuple):
    r"""What a tanh feature knows: the noisy sample linearly, the sample by itself, and the rest, all different draws.

    .. math:: E\tanh^2 = a^2 + v^2 + r^2, \qquad E\tanh(u)\tanh(u') = a^2\bar\alpha + v^2

    with u and u' the same sample under two noises, normal numbers of correlation :math:`\bar\alpha`.
    """

    a: float
    v2: float
    r2: float


def strengths(kept: float) -> Strengths:
    r"""The strengths at :math:`\bar\alpha`, the share of the variance that the noise has left.

    Parameters
    ----------
    kept
        :math:`\bar\alpha`, between 0 and 1.

    Returns
    -------
    Strengths
        a, v^2 and r^2.
    """
    if not 0 < kept < 1:
        raise ValueError(f"kept must lie between 0 and 1: it is the share of the variance that is left; got {kept!r}")
    squares = np.square(_COEFFICIENTS)
    own = float(squares[2:] @ kept ** np.arange(2, len(squares)))
    return Strengths(float(_COEFFICIENTS[1]), own, float(squares[2:].sum()) - own)


def learning_time(d: int) -> float:
    r"""When half of what can be learned is learned: :math:`\frac{\ln 2}2\,d/a^2`, at any noise and any n."""
    return float(np.log(2) / 2 * d / _COEFFICIENTS[1] ** 2)


def memory_rate(n: float, kept: float) -> float:
    r"""At which samples are memorised: :math:`v^2(1-\bar\alpha)/n`."""
    return strengths(kept).v2 * (1 - kept) / n


def half_gap(kept: float) -> float:
    r"""By when the gap is half of its end, in units of one over `memory_rate`, for :math:`n \gg d`.

    The gap is :math:`2h + h^2(q-1)` over its end :math:`1 + q`, with :math:`q = \bar\alpha/(1-\bar\alpha)` and
    :math:`h = 1 - e^{-\text{rate} s}`.
    """
    q = kept / (1 - kept)
    roots = np.roots([q - 1, 2, -(1 + q) / 2]) if abs(q - 1) > 1e-9 else np.array([0.5])
    h = float(next(root.real for root in roots if 0 < root.real < 1))
    return -float(np.log1p(-h))


def two_clocks(s: np.ndarray, n: float, d: int, kept: float) -> tuple[np.ndarray, np.ndarray]:
    """Training and test loss over the time s, in the limit in which the clocks are far apart."""
    fast = np.exp(-_COEFFICIENTS[1] ** 2 / d * s)
    h = -np.expm1(-memory_rate(n, kept) * s)
    learned = kept + (1 - kept) * fast**2
    return learned - kept + kept * (1 - h) ** 2, learned + h**2 * kept**2 / (1 - kept)


def exact_losses(s: np.ndarray, n: float, d: int, kept: float, shares: np.ndarray,
                 weights: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    r"""Training and test loss over the time s, of infinitely many features.

    Parameters
    ----------
    s
        Times, shape ``(S,)``.
    n, d
        Samples and dimension.
    kept
        :math:`\bar\alpha`.
    shares
        Squared singular values :math:`\varsigma^2` of the samples over root n, one for each direction.
    weights
        How much each of them counts; all alike if None.

    Returns
    -------
    tuple
        Two arrays of shape ``(S,)``.
    """
    (a, v2, _), noise = strengths(kept), 1 - kept
    shares = np.asarray(shares, dtype=float)
    across = np.sqrt(kept * shares * v2 * a**2 / (d * n))
    u = np.stack([a**2 * (kept * shares + noise) / d, across, across, 0 * across + v2 / n], -1).reshape(-1, 2, 2)
    rates, basis = np.linalg.eigh(u)
    first = a * np.sqrt(noise / d) * basis[:, 0, :]  # V, in the eigenbasis
    left = np.exp(-rates[:, None] * s[:, None])
    train = 1 - ((1 - left**2) * (first**2 / rates)[:, None]).sum(-1)
    answer = -((1 - left) * (first * basis[:, 0, :] / rates)[:, None]).sum(-1) * a / np.sqrt(d)  # to the noisy sample
    test = 1 + 2 * answer * np.sqrt(noise) + answer**2
    return np.average(train, 0, weights), np.average(test, 0, weights)


def marchenko_pastur(ratio: float, count: int = 200) -> tuple[np.ndarray, np.ndarray]:
    r"""Squared singular values of many samples, d/n = `ratio` below 1: places and weights of a quadrature.

    Parameters
    ----------
    ratio
        Dimension over samples.
    count
        Number of places.

    Returns
    -------
    tuple
        Two arrays of shape ``(count,)``; the weights sum to 1.
    """
    if not 0 < ratio < 1:
        raise ValueError(f"d/n must lie between 0 and 1, or some directions have no sample; got {ratio!r}")
    theta = (np.arange(count) + 0.5) * np.pi / count
    places = 1 + ratio + 2 * np.sqrt(ratio) * np.cos(theta)
    weights = np.sin(theta) ** 2 / places
    return places, weights / weights.sum()
