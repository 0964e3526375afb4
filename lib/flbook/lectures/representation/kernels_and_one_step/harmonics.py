r"""How much of a target any n functions hold, and how much the best kernel learns of it from n samples.

The target :math:`f_*(x) = \sigma_*(\langle\beta, x\rangle)` is split into spherical harmonics of degree l in x/|x|. As
:math:`\beta` turns, the part of degree l fills a space of :math:`D_l` functions evenly, so that n functions that are
chosen without :math:`\beta` hold at most :math:`n/D_l` of it, on average over the directions.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from flbook.theory import one_step


def dimension(d: int, degree: int) -> int:
    r"""The number :math:`D_l` of independent spherical harmonics of one degree in d dimensions.

    Parameters
    ----------
    d, degree
        Dimension, at least 3; degree l.

    Returns
    -------
    int
        :math:`D_1 = d`, :math:`D_3 = d(d-1)(d+4)/6`.

    Examples
    --------
    >>> [dimension(3, degree) for degree in range(4)]
    [1, 3, 5, 7]
    """
    below = math.comb(d + degree - 3, degree - 2) if degree > 1 else 0
    return math.comb(d + degree - 1, degree) - below


def norms(link: Callable, d: int, top: int = 9, nodes: int = 400) -> tuple[np.ndarray, float]:
    r"""Mean squares :math:`\|f_l\|^2` of the parts of degree 0 to `top` of the target, and of what is left.

    By quadrature over the length r of x and over the first coordinate t of x/r.

    Parameters
    ----------
    link
        :math:`\sigma_*`, of numpy arrays.
    d
        Dimension, at least 3.
    top
        The largest degree.
    nodes
        Number of nodes of either quadrature.

    Returns
    -------
    tuple[ndarray, float]
        The top + 1 mean squares, and the mean square of the rest.

    Examples
    --------
    >>> inside, rest = norms(lambda z: z**3, d=10)  # E z^6 = 15, of degrees 1 and 3 alone
    >>> bool(abs(inside[[1, 3]].sum() - 15) < 1e-6 and abs(rest) < 1e-6)
    True
    """
    place, weight = np.polynomial.legendre.leggauss(nodes)
    reach = min(1.0, 12 / math.sqrt(d))  # beyond it a coordinate of a unit vector has no probability left
    t, t_weight = place * reach, _share(weight, (d - 3) / 2 * np.log1p(-((place * reach) ** 2)))
    low = max(0.0, math.sqrt(d) - 8)
    r = low + (place + 1) / 2 * (math.sqrt(d) + 8 - low)
    r_weight = _share(weight, (d - 1) * np.log(r) - r**2 / 2)
    values = link(np.outer(r, t)) * np.sqrt(t_weight)
    basis, _ = np.linalg.qr(np.vander(t / reach, top + 1, increasing=True) * np.sqrt(t_weight)[:, None])
    inside = r_weight @ (values @ basis) ** 2
    return inside, float(r_weight @ (values**2).sum(-1) - inside.sum())


def floor(n: int, link: Callable, d: int) -> float:
    r"""What n functions, chosen without the direction, miss of the target at least, on average over its directions.

    .. math:: \|f_*\|^2 - \sum_l \|f_l\|^2\, \frac{n_l}{D_l}, \qquad n_l \le D_l, \quad \sum_l n_l = n

    where the functions go to the degrees with the largest :math:`\|f_l\|^2/D_l` first.

    Parameters
    ----------
    n
        Functions, such as the samples of a kernel method.
    link
        :math:`\sigma_*`, of numpy arrays.
    d
        Dimension, at least 3.

    Returns
    -------
    float
        A mean square error.

    Source: derived in the lecture `kernels_and_one_step`.
    """
    inside, missed = norms(link, d)
    sizes = np.array([dimension(d, degree) for degree in range(len(inside))])
    left = n
    for degree in np.argsort(-inside / sizes):
        used = min(left, int(sizes[degree]))
        missed += inside[degree] * (1 - used / sizes[degree])
        left -= used
    return float(missed)


def kernel_risk(n: float, link: Callable, d: int, noise: float) -> float:
    r"""Risk of the best kernel, :math:`E_\beta f_\beta(x) f_\beta(x')` with ridge :math:`\sigma_\varepsilon^2`.

    Its eigenvalues are :math:`\|f_l\|^2/D_l`, each :math:`D_l` times; the risk is their deterministic equivalent.

    Parameters
    ----------
    n
        Samples.
    link
        :math:`\sigma_*`, of numpy arrays, odd.
    d
        Dimension, at least 3.
    noise
        Standard deviation of the label noise.

    Returns
    -------
    float
        A mean square error.

    Source: derived in the lecture `kernels_and_one_step`, with `flbook.theory.one_step.ridge_risk`.
    """
    inside, rest = norms(link, d)
    odd = np.arange(1, len(inside), 2)
    sizes = np.array([dimension(d, int(degree)) for degree in odd], float)
    values = inside[odd] / sizes
    return float(one_step.ridge_risk(noise**2 / n, n, values, sizes, rest, noise, sizes)[0])


def kernel_samples(level: float, link: Callable, d: int, noise: float) -> float:
    """The samples from which on the best kernel has at most this risk, in the same limit.

    Parameters
    ----------
    level
        A risk.
    link, d, noise
        As in `kernel_risk`.

    Returns
    -------
    float
        Samples n.
    """
    low, high = math.log(d), math.log(dimension(d, 3)) + 5
    return math.exp(brentq(lambda log_n: kernel_risk(math.exp(log_n), link, d, noise) - level, low, high))


def _share(weight: np.ndarray, log_density: np.ndarray) -> np.ndarray:
    """Weights of a mean over a density."""
    weight = weight * np.exp(log_density - log_density.max())
    return weight / weight.sum()
