r"""Margin classifiers of two noisy clusters with flipped labels, in closed form.

All of them are sums :math:`w = \sum_i c_i \tilde y_i x_i` of the samples, and one number tells them apart: the coupling
:math:`\omega`, the weight of an inner product between two samples beside a sample's own. 1 is the hard margin, 0 the
average of the samples, and leaky ReLU networks on nearly orthogonal samples lie between. Throughout
:math:`a = n\,\mathrm{SNR}^2` and p is the share of flipped labels.
"""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr


def network_coupling(leak: float) -> float:
    r""":math:`\omega = (1+\alpha)^2 / (2(1+\alpha^2))`, where half of all filters are on for each sample.

    So it is if those of a sample's observed label are on and the others off, and in the tangent kernel of a random
    start. Source: derived in the lecture on leaky ReLU networks.
    """
    return (1 + leak) ** 2 / (2 * (1 + leak**2))


def signal_response(a, flip_prob: float, coupling=1.0):
    r""":math:`s = (1-2p)\,\omega a/(1+\omega a)`, what w sees of the signal, if noise vectors are orthogonal."""
    return (1 - 2 * flip_prob) * coupling * a / (1 + coupling * a)


def weight_ratio(a, flip_prob: float, coupling=1.0):
    """Weight of a flipped sample in w, over that of a clean one, if noise vectors are orthogonal."""
    s = signal_response(a, flip_prob, coupling)
    return (1 + s) / (1 - s)


def coupling_from(ratio, a, flip_prob: float):
    """The coupling at which flipped samples have `ratio` times the weight of clean ones: `weight_ratio` inverted."""
    s = (ratio - 1) / (ratio + 1)
    return s / (a * (1 - 2 * flip_prob - s))


def orthogonal_error(ratio, a, flip_prob: float, coupling=1.0):
    r"""Test error of w if noise vectors are orthogonal; `ratio` is d/n.

    .. math:: \Phi\Big(-\sqrt{\tfrac dn}\,\frac{(1-2p)\,a}{\sqrt{(1-2p)^2 + 4p(1-p)(1+\omega a)^2}}\Big)
    """
    q = 1 - 2 * flip_prob
    return ndtr(-np.sqrt(ratio) * q * a / np.sqrt(q**2 + (1 - q**2) * (1 + coupling * a) ** 2))


def margin_error(ratio: float, a: float, flip_prob: float, coupling: float = 1.0) -> float:
    r"""Test error of w when n and d grow in proportion, with d/n = `ratio`.

    With :math:`\rho` the response to fresh noise, :math:`g \sim N(0, 1)`, :math:`e = \pm 1` (-1 for a flipped label)
    and :math:`T^2 = E\,(1 - e s + \rho g)_+^2`, Gordon's comparison says that s and :math:`\rho` minimise

    .. math:: \frac{s^2}{a} + \frac dn \rho^2 + \frac{\omega}{1-\omega}\Big(T - \sqrt{d/n}\,\rho\Big)_+^2

    and :math:`T \le \sqrt{d/n}\,\rho` for the hard margin, :math:`\omega = 1`. The error is :math:`\Phi(-s/\rho)`.

    Source: Montanari et al. (2019) for the method; this model derived in the lecture on leaky ReLU networks.
    """
    if not (ratio >= 1 and a > 0 and 0 <= flip_prob < 0.5 and 0 < coupling <= 1):
        raise ValueError(f"margin_error needs d/n >= 1, so that every label can be fitted, a > 0, flip_prob in "
                         f"[0, 1/2) and a coupling in (0, 1]; got {ratio}, {a}, {flip_prob} and {coupling}")

    def cost(s: float) -> float:
        return s**2 / a + _noise(s, ratio, flip_prob, coupling)[1]

    s = float(minimize_scalar(cost, bounds=(0.0, 2.0), method="bounded", options={"xatol": 1e-9}).x)
    return float(ndtr(-s / _noise(s, ratio, flip_prob, coupling)[0]))


def _noise(s: float, ratio: float, flip_prob: float, coupling: float) -> tuple[float, float]:
    """The best noise response at signal response s, and what it costs."""
    low, high = 0.0, 1e3
    for _ in range(80):  # the smallest that meets all margins, by bisection
        middle = (low + high) / 2
        low, high = (middle, high) if _short(s, middle, flip_prob) > ratio**0.5 * middle else (low, middle)
    if coupling == 1:
        return high, ratio * high**2

    def cost(rho: float) -> float:
        missing = max(_short(s, rho, flip_prob) - ratio**0.5 * rho, 0.0)
        return ratio * rho**2 + missing**2 * coupling / (1 - coupling)

    found = minimize_scalar(cost, bounds=(1e-9, high), method="bounded", options={"xatol": 1e-9})
    return float(found.x), float(found.fun)


def _short(s: float, rho: float, flip_prob: float) -> float:
    r""":math:`T`, the lack of margin at random noise."""
    total = 0.0
    for share, mean in ((1 - flip_prob, 1 - s), (flip_prob, 1 + s)):
        z = mean / rho
        total += share * ((mean**2 + rho**2) * ndtr(z) + mean * rho * np.exp(-z * z / 2) / np.sqrt(2 * np.pi))
    return np.sqrt(total)
