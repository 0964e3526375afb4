"""The hard-margin classifier of two noisy clusters with flipped labels, when n and d grow in proportion."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr


class MaxMargin(NamedTuple):
    """What the hard-margin classifier without intercept converges to."""

    error: float  # test error on true labels
    norm: float  # its length |w*| at margin 1, over sqrt(n)


def max_margin(ratio: float, gamma: float, n: float, flip_prob: float = 0.0) -> MaxMargin:
    r"""Error and length of the hard-margin classifier on `Mixture`, with :math:`d/n` = `ratio`.

    The classifier is :math:`w = s\,v/\sqrt\gamma + z` with noise response :math:`\rho = \sqrt{(1-\gamma)/d}\,\|z\|`.
    By Gordon's comparison the margins can be met by some z if and only if, with :math:`g \sim N(0, 1)` and
    :math:`e = \pm 1` (-1 for a flipped label),

    .. math:: E\,\big(1 - e s + \rho g\big)_+^2 \le \tfrac{d}{n}\,\rho^2,

    and s minimises :math:`\|w\|^2 = s^2/\gamma + d\rho^2/(1-\gamma)`. The error is :math:`\Phi(-s/\rho)`.

    Source: Montanari et al. (2019) for the method; this model derived in the lecture on leaky ReLU networks.
    """
    if not (ratio >= 1 and 0 < gamma < 1 and 0 <= flip_prob < 0.5):
        raise ValueError(f"max_margin needs d/n >= 1, so that every label can be fitted, 0 < gamma < 1 and flip_prob "
                         f"in [0, 1/2); got {ratio}, {gamma} and {flip_prob}")

    def square(s: float) -> float:
        return (s**2 / gamma + ratio * n * response(s, ratio, flip_prob) ** 2 / (1 - gamma)) / n

    found = minimize_scalar(square, bounds=(0.0, 2.0), method="bounded", options={"xatol": 1e-10})
    s = float(found.x)
    return MaxMargin(float(ndtr(-s / response(s, ratio, flip_prob))), float(np.sqrt(found.fun)))


def response(s: float, ratio: float, flip_prob: float) -> float:
    r"""The smallest noise response :math:`\rho` that meets all margins at signal response s, by bisection."""
    low, high = 0.0, 1e3
    for _ in range(80):
        middle = (low + high) / 2
        short = (1 - flip_prob) * _short(1 - s, middle) + flip_prob * _short(1 + s, middle)
        low, high = (middle, high) if short > ratio * middle**2 else (low, middle)
    return high


def _short(mean: float, rho: float) -> float:
    r""":math:`E (a + \rho g)_+^2`."""
    z = mean / rho
    return (mean**2 + rho**2) * ndtr(z) + mean * rho * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
