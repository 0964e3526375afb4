r"""What a neuron is pulled by, in closed form, through Hermite coefficients of its activation at the clusters' shifts.

In the cluster k the input of a neuron of length one is a standard normal number plus :math:`k\|c\| w_c`, where
:math:`w_c` is its part along the centres. So all that the cluster changes is the coefficient
:math:`b_p(\omega) = E\,h_p(z)\,\sigma(z + \omega)`. Derived on this lecture's page.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import erf

from flbook import hermite
from flbook.dynamics.equations import Number, integrate


def shifted(activation: Callable, k: int, shift: float) -> float:
    r"""The coefficient :math:`b_p(\omega) = E\,h_p(z)\,\sigma(z + \omega)`.

    Examples
    --------
    >>> round(shifted(hermite.he(4), 3, 0.5), 9)  # 2 t: the quartic part tells the clusters apart
    1.0
    >>> round(shifted(hermite.he(3), 3, 0.5), 9)  # the cubic one does not
    1.0
    """
    return float(hermite.coefficients(lambda z: activation(z + shift), k)[k])


def shared_correlation(activation: Callable, rho: float, w_c: float, m: float) -> float:
    r"""Correlation of a neuron with the shared part, :math:`\frac{m^3}2[b_3(\|c\| w_c) - b_3(-\|c\| w_c)]`.

    Examples
    --------
    >>> abs(shared_correlation(hermite.he(3), rho=2.0, w_c=0.3, m=0.5)) < 1e-12
    True
    """
    return m**3 * (shifted(activation, 3, rho * w_c) - shifted(activation, 3, -rho * w_c)) / 2


def quartic_leak(rho: float, w_c: Number, m: float) -> Number:
    r"""The velocity of m of a neuron :math:`h_3 + h_4` that sees both clusters, :math:`\|c\| w_c\,m^2(6 - 8m^2)`.

    The correlation is :math:`2\|c\| w_c m^3`; this is its gradient on the sphere, along :math:`w_g`.
    """
    return rho * w_c * m**2 * (6 - 8 * m**2)


def purity(rho: Number) -> Number:
    r"""The pull on a neuron that sees one side of :math:`\langle\bar c, x\rangle = 0`, over that of one cluster.

    The share :math:`\Phi(\|c\|)` of its samples pulls forward, the share :math:`\Phi(-\|c\|)` back:
    :math:`\Phi(\|c\|) - \Phi(-\|c\|) = \mathrm{erf}(\|c\|/\sqrt2)`.
    """
    return erf(np.asarray(rho) / 2**0.5)


def router_gain(rho: float, local: float, first: np.ndarray, second: np.ndarray) -> float:
    r"""The first step of a router at zero, along the centres, over its step size.

    .. math:: \frac{\|c\|}8\Big[\nu(\Delta_{+1} - \Delta_{-1}) + 2\Delta_g\Big]

    Parameters
    ----------
    rho, local
        Of the data.
    first, second
        Of either expert :math:`\sum_j a_j m_j^3`, for :math:`w_{+1}`, :math:`w_{-1}` and :math:`w_g`;
        :math:`\Delta` is their difference.
    """
    own, other, shared = np.asarray(first) - np.asarray(second)
    return float(rho / 8 * (local * (own - other) + 2 * shared))


def posterior_share(rho: float) -> float:
    r"""The share of the shared part that the least mean squared error leaves, :math:`E\tanh(\|c\|^2 + \|c\| z)`.

    It is :math:`E\,E[k \mid x]^2`, and the cluster's posterior mean is :math:`\tanh(\|c\|\langle\bar c, x\rangle)`.

    Examples
    --------
    >>> round(posterior_share(2.0), 3)
    0.931
    """
    return hermite.mean(lambda z: np.tanh(rho**2 + rho * z))


def flow(pulls: tuple[float, float, float], start: tuple[float, float, float], times: np.ndarray) -> np.ndarray:
    r"""Overlaps of a cubic neuron under the equation :math:`m_i' = 3\phi_im_i^2 - m_i\sum_j 3\phi_jm_j^3`.

    Parameters
    ----------
    pulls
        The :math:`\phi_i`: what share of the samples shows it the directions :math:`w_{+1}`, :math:`w_{-1}` and
        :math:`w_g`.
    start
        Overlaps with them at the start.
    times
        Step size times steps, the first is 0.

    Returns
    -------
    ndarray
        Shape (3, times).
    """
    phi = np.asarray(pulls)[:, None]

    def rate(state):
        m = state["m"]
        return {"m": 3 * phi * m**2 - m * (3 * phi * m**3).sum(0)}

    return integrate(rate, {"m": np.asarray(start, float)[:, None]}, times, dt=0.05)["m"][:, 0]
