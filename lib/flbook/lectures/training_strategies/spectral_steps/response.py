r"""How loudly one orthogonalised step answers a fact, and how many facts it stores: from their frequencies alone.

The polar factor of :math:`G = \sum_i p_i u_i e_i^\top`, with independent uniform inputs and outputs in high dimension,
answers with :math:`u_i^\top P e_i = h(p_i)`,

.. math:: h(p) = \frac2\pi \int_0^\infty \frac{p\,\tau^2}{1 + p^2\tau^2}\,dt, \qquad
          t\,\tau(t) + \frac1d \sum_i \frac{p_i^2\tau^2}{1 + p_i^2\tau^2} = 1,

where :math:`\tau(t) = \frac1d \sum_a t/(s_a^2 + t^2)` belongs to the singular values. A rare fact has h = k p with the
gain k = h'(0). Derived on this lecture's page.
"""

import math
from functools import cache

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.stats import beta
from torch import Tensor

Numbers = Float[np.ndarray, "..."]


def gain_of_spectrum(s: Float[Tensor, "*E d"]) -> Float[Tensor, "*E"]:
    r"""The gain of a polar factor to first order, exact: :math:`k = d^{-2} \sum_{a \ne b} 1/(s_a + s_b)`."""
    pairs = 1 / (s[..., :, None] + s[..., None, :])
    return (pairs.sum((-2, -1)) - (0.5 / s).sum(-1)) / s.shape[-1] ** 2


def _crowding(tau: float | Numbers, p: Numbers, d: int):
    r""":math:`\frac1d \sum_i p_i^2\tau^2/(1 + p_i^2\tau^2)`: how much of the space the facts fill."""
    square = np.square(np.multiply.outer(tau, p))
    return (square / (1 + square)).sum(-1) / d


def shrinkage(p: Numbers, d: int, points: int = 200) -> tuple[np.ndarray, np.ndarray]:
    r"""Values of :math:`\tau`, falling from :math:`\tau(0)`, and the t at which each is taken.

    Given tau the equation is linear in t, so only tau(0) asks for a root. There is one if there are more facts than
    dimensions.
    """
    if len(p) <= d:
        raise ValueError(f"p must belong to more facts than the d = {d} dimensions; got {len(p)}")
    top = math.exp(brentq(lambda log: _crowding(math.exp(log), p, d) - 1, 0, 60))
    tau = top * np.concatenate([1 - np.geomspace(1e-6, 0.5, points), 0.5 * np.geomspace(1, 1e-9, points)[1:]])
    return tau, np.array([(1 - _crowding(value, p, d)) / value for value in tau])


def response(p: Numbers, d: int, at: Numbers | None = None) -> Numbers:
    r"""What the polar factor answers, :math:`h(p_i)`, for each fact, or for frequencies `at` of further ones."""
    tau, t = shrinkage(p, d)
    at = p if at is None else at
    rates = at[:, None] * tau**2 / (1 + (at[:, None] * tau) ** 2)
    return 2 / math.pi * (rates[:, 0] * t[0] + np.trapezoid(rates, t, axis=1))


def gain(p: Numbers, d: int) -> float:
    r"""The gain of a rare fact, :math:`k = \frac2\pi \int_0^\infty \tau^2 dt`."""
    return float(response(p, d, np.array([1e-12]))[0] / 1e-12)


def gain_of_power_law(power: float, d: int, count: int) -> float:
    r"""The same in closed form for :math:`p_i = i^{-\alpha}/Z` and many facts.

    .. math:: k = \frac{4\,\tau(0)}{\pi(1 + \alpha)}, \qquad
              \tau(0) = Z \Big(\frac{2\alpha d}\pi \sin\frac\pi{2\alpha}\Big)^\alpha

    It grows like :math:`d^\alpha`; alpha must exceed 1/2.
    """
    total = float((np.arange(1, count + 1.0) ** -power).sum())
    top = total * (2 * power * d / math.pi * math.sin(math.pi / (2 * power))) ** power
    return 4 * top / (math.pi * (1 + power))


def border(power: float, d: int, count: int) -> float:
    r"""The rank at which the response is as large as the largest noise, :math:`k p_i = \sqrt{2 \ln N/d}`.

    .. math:: i^\star = \Big(\frac4{\pi(1 + \alpha)}\Big)^{1/\alpha}\,\frac{2\alpha d}\pi \sin\frac\pi{2\alpha}\,
              \Big(\frac d{2 \ln N}\Big)^{1/(2\alpha)}
    """
    total = float((np.arange(1, count + 1.0) ** -power).sum())
    return (gain_of_power_law(power, d, count) / total * math.sqrt(d / (2 * math.log(count)))) ** (1 / power)


@cache
def _table(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Places from -1 to 1 and the logarithm of F_d there: it is smooth, and slow to compute at every fact."""
    places = np.linspace(-1, 1, 4001)
    return places, np.maximum(beta.logcdf((1 + places) / 2, (d - 1) / 2, (d - 1) / 2), -1e3)


def log_below(x: Numbers, d: int) -> Numbers:
    """The logarithm of F_d, the distribution function of one coordinate of a uniform unit vector of R^d."""
    return np.interp(np.clip(x, -1, 1), *_table(d))


def normal_grid() -> tuple[np.ndarray, np.ndarray]:
    """Places and weights for means over a standard normal number."""
    z = np.linspace(-6, 6, 121)
    weight = np.exp(-(z**2) / 2)
    return z, weight / weight.sum()


def chance(signal: Numbers, d: int, count: int) -> Numbers:
    r"""The chance that each fact is stored, :math:`E\,F_d(h_i + z/\sqrt d)^{N-1}` over a standard normal z.

    :math:`F_d` is the law of what another output reads of a unit vector that does not know it.
    """
    z, weight = normal_grid()
    return np.exp((count - 1) * log_below(signal[:, None] + z / math.sqrt(d), d)) @ weight


def expected(power: float, d: int, count: int, ranks: int | None = None) -> float:
    """How many facts an orthogonalised step stores, of the first ranks, if not all are asked for; no free constant."""
    p = np.arange(1, count + 1.0) ** -power
    p /= p.sum()
    ranks = count if ranks is None else ranks
    at = np.unique(np.geomspace(1, ranks, 400).round().astype(int))  # between them the chance is smooth
    chances = chance(response(p, d, p[at - 1]), d, count)
    return float(np.interp(np.arange(1, ranks + 1), at, chances).sum())
