r"""Gates of a Mamba layer on the labels of single-index prompts: what they see, and what they forget.

A gate T writes example l as :math:`T(y_l)x_l`; strengths are those of `flbook.hermite`. Derived in the lecture.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from flbook import hermite


def written(z, a: float = 1.0):
    r"""What a token of time :math:`\Delta = \log(1 + e^z)` is written with, :math:`\frac{1 - (1 + e^z)^{-a}}{a}`.

    At a = 1 it is the sigmoid, for a to 0 it is the softplus, :math:`\log(1 + e^z)`.
    """
    held = np.logaddexp(0, z)
    return -np.expm1(-a * held) / a


def kept(z, a: float = 1.0):
    r"""What is kept of all earlier tokens, :math:`(1 + e^z)^{-a}`."""
    return np.exp(-a * np.logaddexp(0, z))


def silu(z):
    r""":math:`z/(1 + e^{-z})`."""
    return z * np.exp(-np.logaddexp(0, -z))


@lru_cache(maxsize=8)
def law_of(link: Callable) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes z with their labels and weights: means over the law of one example are weighted sums."""
    z, weight = hermite.nodes(hermite.breakpoints(link))
    return z, link(z), weight


def memory(slope: float, bias: float, a: float, n: int, link: Callable) -> float:
    r"""The effective examples of the weights :math:`\prod_{m>l}(1 + e^{wy_m + b})^{-a}` of n examples.

    .. math:: \frac{\big(\sum_i\varphi_1^i\big)^2}{\sum_i\varphi_2^i}, \qquad
              \varphi_k = E\,(1 + e^{wy + b})^{-ka}, \quad i = 0 \dots n - 1
    """
    _, y, weight = law_of(link)
    share = kept(slope * y + bias, a)
    one, two = weight @ share, weight @ share**2
    places = np.arange(n)
    return float((one**places).sum() ** 2 / (two**places).sum())


def overlap(samples, d: int, gate: Callable, link: Callable):
    r"""Squared cosine of :math:`\sum_l\omega_l T(y_l)x_l` with the direction, as a ratio of means.

    .. math:: \frac{(n - 1)c_1^2 + E\,T^2z^2}{(n - 1)c_1^2 + E\,T^2z^2 + (d - 1)E\,T^2}, \qquad c_1 = E\,T(y)z

    with n the effective samples of the weights. Up to terms of order 1/n it is :math:`ns/(ns + d)`, s the strength.
    """
    z, y, weight = law_of(link)
    t = gate(y)
    signal = (np.asarray(samples, float) - 1) * (weight @ (t * z)) ** 2 + weight @ (t * z) ** 2
    return signal / (signal + (d - 1) * (weight @ t**2))


def quadratic_overlap(samples, d: int, gate: Callable, link: Callable):
    r"""Squared correlation over queries of :math:`x_q^\top Hx_q` with :math:`\langle\beta, x_q\rangle^2`.

    Both less their parts in 1 and :math:`\|x_q\|^2`, as a ratio of means:

    .. math:: \frac{n c_2^2}{n c_2^2 + \frac d2\big(d\,E\,T^2 + 2\,E\,T^2z^2\big)}, \qquad c_2 = E\,T(y)h_2(z)

    It pays for every product of two coordinates, as a kernel of degree two does.
    """
    z, y, weight = law_of(link)
    t = gate(y)
    signal = np.asarray(samples, float) * (weight @ (t * hermite.polynomial(2, z))) ** 2
    return signal / (signal + d / 2 * (d * (weight @ t**2) + 2 * (weight @ (t * z) ** 2)))


def best_mixture(gates: Sequence[Callable], link: Callable, k: int = 1) -> tuple[np.ndarray, float]:
    r"""The weights v of the strongest gate :math:`T = \sum_j v_jT_j` and its strength :math:`c^\top M^{-1}c`.

    .. math:: v = M^{-1}c, \qquad M_{ij} = E\,T_iT_j, \quad c_j = E\,T_j(y)h_k(z)

    At most :math:`E\,\zeta_k(y)^2`, the strength of the best gate.
    """
    z, y, weight = law_of(link)
    values = np.stack([gate(y) for gate in gates])
    correlation = values @ (weight * hermite.polynomial(k, z))
    moment = (values * weight) @ values.T
    v = np.linalg.lstsq(moment, correlation, rcond=1e-10)[0]
    found = v @ values
    return v, float((weight @ (found * hermite.polynomial(k, z))) ** 2 / (weight @ found**2))


def places(channels: int) -> tuple[list[float], list[float]]:
    """Slopes and biases of so many SiLU channels: :math:`silu(4(y - t))`, t spread evenly from -3 to 3."""
    return [4.0] * channels, [-4.0 * float(t) for t in np.linspace(-3, 3, channels)]


def silu_gates(channels: int) -> list[Callable]:
    """The channels as functions of the label."""
    return [lambda y, w=w, b=b: silu(w * y + b) for w, b in zip(*places(channels), strict=True)]


@lru_cache
def mixture(channels: int) -> np.ndarray:
    """The weights of the strongest mixture of the channels for labels h_3."""
    return best_mixture(silu_gates(channels), hermite.he(3))[0]


def cubic_risk(overlaps: np.ndarray, axis: int = -1):
    r"""Risk of :math:`c\,h_3(\langle\hat\beta, x_q\rangle)` for the target :math:`h_3(\langle\beta, x_q\rangle)`.

    .. math:: 1 - (E\,m^3)^2, \qquad m = \cos(\hat\beta, \beta), \quad c = E\,m^3

    overlaps: squared cosines; their mean is over `axis`.
    """
    return 1 - np.mean(np.asarray(overlaps) ** 1.5, axis) ** 2
