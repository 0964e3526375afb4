r"""Recovering the direction beta behind :math:`y = g(\langle\beta, x\rangle)`: overlaps in high dimension."""

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from flbook import hermite


def average_overlap(alpha, strength):
    r"""Squared cosine of :math:`\sum_i T(y_i)x_i` with beta at :math:`\alpha = n/d` samples a dimension.

    .. math:: \frac{\alpha s}{1 + \alpha s}, \quad s = \frac{(E\,T(y)z)^2}{E\,T(y)^2}

    for large d. Derived in the lecture.

    Parameters
    ----------
    alpha
        Samples a dimension, :math:`n/d`, a number or an array.
    strength
        s, as `flbook.hermite.strength` gives it at degree 1.

    Returns
    -------
    float or ndarray
        Overlaps, of the shape of `alpha`.

    Examples
    --------
    >>> average_overlap(alpha=3.0, strength=1.0)
    0.75
    """
    return alpha * strength / (1 + alpha * strength)


def step_alignment(alpha, d: int, signal: float, power: float, along: float = 0.0):
    r"""Mean cosine with beta of a gradient step of a neuron at overlap :math:`m = d^{-1/2}`, without its part along w.

    .. math:: \sqrt{1 - m^2}\;E\,\frac{|S| + \delta}{\sqrt{(|S| + \delta)^2 + (d - 2)V/n}}, \qquad
              \delta \sim N(0, V_v/n), \quad n = \alpha d

    The scatter of the signal is of the order of the noise over :math:`\sqrt d`. Derived in the lecture.

    Parameters
    ----------
    alpha
        Samples a dimension, :math:`n/d`, a number or an array.
    d
        Dimension of an input.
    signal
        S, the mean of the step.
    power
        V, n times the variance of its noise in each direction across w and beta.
    along
        :math:`V_v`, n times the variance of the signal; 0 leaves it out.

    Returns
    -------
    float or ndarray
        Cosines, of the shape of `alpha`.
    """
    z, weight = hermite.nodes()
    n = np.asarray(alpha, float)[..., None] * d
    found = abs(signal) + np.sqrt(along / n) * z
    return np.sqrt(1 - 1 / d) * (found / np.sqrt(found**2 + power * (d - 2) / n)) @ weight


def matrix_threshold(strength: float) -> float:
    r"""Below :math:`n/d = 1/(2 E\zeta_2(y)^2)` no gate makes the matrix point at beta; the best gate does above.

    Parameters
    ----------
    strength
        :math:`E\zeta_2(y)^2`, as `flbook.hermite.best_strengths` gives it.

    Returns
    -------
    float
        Samples a dimension, :math:`n/d`.

    Source: Mondelli and Montanari (2019), Theorem 2, and Lu and Li (2020).
    """
    return 1 / (2 * strength)


def matrix_overlap(alpha: float, gate: Callable, link: Callable, jumps: hermite.Places = ()) -> float:
    r"""Squared cosine with beta of the top eigenvector of :math:`\sum_i T(y_i)x_ix_i^\top` for large d.

    With :math:`\phi(\lambda) = \lambda E\frac{T z^2}{\lambda - T}` and
    :math:`\psi(\lambda) = \lambda\big(\frac1\alpha + E\frac{T}{\lambda - T}\big)`, let psi have its minimum at
    :math:`\bar\lambda`. If :math:`\phi(\bar\lambda) \le \psi(\bar\lambda)` the overlap is zero; otherwise

    .. math:: \frac{\psi'(\lambda^*)}{\psi'(\lambda^*) - \phi'(\lambda^*)}, \qquad \phi(\lambda^*) = \psi(\lambda^*).

    Parameters
    ----------
    alpha
        Samples a dimension, n/d.
    gate
        T, a function of numpy arrays, bounded from above.
    link
        g, of numpy arrays; see `flbook.hermite`.
    jumps
        Labels at which the gate jumps or bends.

    Returns
    -------
    float
        A number from 0 to 1.

    Source: Lu and Li (2020), Theorem 1.
    """
    z, weight = hermite.nodes(hermite.breakpoints(link, jumps))
    t = np.broadcast_to(gate(link(z)), z.shape)
    top = t[np.abs(z) < 8].max()
    scale = np.sqrt(weight @ t**2)

    def phi(x):
        return x * (weight @ (t * z**2 / (x - t)))

    def psi(x):
        return x * (1 / alpha + weight @ (t / (x - t)))

    def psi_slope(x):
        return 1 / alpha - weight @ (t / (x - t)) ** 2

    low, high = top + 1e-9 * scale, top + 1e6 * scale
    edge = brentq(psi_slope, low, high) if psi_slope(low) < 0 else low
    if phi(edge) <= psi(edge):
        return 0.0
    spot = brentq(lambda x: phi(x) - psi(x), edge, high)
    rise, fall = psi_slope(spot), -(weight @ (t**2 * z**2 / (spot - t) ** 2))
    return float(rise / (rise - fall))
