r"""Hermite expansions of a link g: what a label y = g(z), z standard normal, says about the direction behind z.

Everything is in the normalised polynomials :math:`h_k = \mathrm{He}_k / \sqrt{k!}`, which are orthonormal under the
standard normal law: :math:`E\,h_j(z)h_k(z) = \delta_{jk}`. A link is any function of numpy arrays; a `Series` is one
that knows its coefficients, so that products of polynomials are exact.

Sources: O'Donnell (2014), Analysis of Boolean Functions, section 11.2; Ben Arous et al. (2021) for the information
exponent; Damian et al. (2024) for the generative exponent.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import hermite_e

from flbook.domains import Checked, Natural, require

Places = Sequence[float] | np.ndarray
REACH = 12.0  # beyond it the normal density is below 1e-31
_NODES = np.polynomial.legendre.leggauss(48)


def polynomial(k: int, z):
    r"""The normalised Hermite polynomial :math:`h_k(z)`, of a number, an array or a tensor.

    By the recursion :math:`\sqrt{k+1}\,h_{k+1} = z h_k - \sqrt k\,h_{k-1}`.

    Raises ValueError if k is no whole number of at least 0.

    Parameters
    ----------
    k
        Degree.
    z
        Where to take it, any shape.

    Returns
    -------
    number, array or tensor
        Values, of the shape of z.

    Examples
    --------
    >>> round(polynomial(2, 3.0) * math.sqrt(2), 6)  # z^2 - 1
    8.0
    """
    require("k", k, Natural)
    below, here = 0 * z, 0 * z + 1
    for j in range(k):
        below, here = here, (z * here - math.sqrt(j) * below) / math.sqrt(j + 1)
    return here


@dataclass(frozen=True)
class Series(Checked):
    r"""A polynomial link :math:`g = \sum_k c_k h_k`, to be called on a number, an array or a tensor.

    Products and powers are exact, up to rounding.

    Attributes
    ----------
    coefficients
        :math:`c_0, c_1, \dots`

    Raises
    ------
    ValueError
        If there is no coefficient, or one is no number.

    Examples
    --------
    >>> square = he(1) * he(1)  # z^2 = h_0 + sqrt(2) h_2
    >>> [round(c, 6) for c in square.coefficients], round(square(3.0), 6)
    ([1.0, 0.0, 1.414214], 9.0)
    """

    coefficients: tuple[float, ...]

    def __call__(self, z):
        """The link at z, by Horner's rule in powers of z: two operations a degree, since dynamics call it often."""
        *lower, last = self._powers
        value = 0 * z + last
        for c in reversed(lower):
            value = value * z + c if c else value * z
        return value

    @cached_property
    def _powers(self) -> list[float]:
        """Coefficients in the powers of z."""
        return [float(c) for c in hermite_e.herme2poly(_plain(self))]

    def __mul__(self, other: "Series") -> "Series":
        """The series of the product."""
        return _series(hermite_e.hermemul(_plain(self), _plain(other)))

    def power(self, exponent: int) -> "Series":
        """The series of g(z)^exponent.

        Parameters
        ----------
        exponent
            A whole number of at least 0.

        Returns
        -------
        Series
            A series of the degree of g times `exponent`.
        """
        return _series(hermite_e.hermepow(_plain(self), exponent))

    def derivative(self) -> "Series":
        r"""The series of g': :math:`h_k' = \sqrt k\,h_{k-1}`.

        Returns
        -------
        Series
            A series of one degree less, or 0 for a constant.
        """
        lowered = tuple(math.sqrt(k) * c for k, c in enumerate(self.coefficients))[1:]
        return Series(lowered or (0.0,))

    @property
    def mean_square(self) -> float:
        r""":math:`E\,g(z)^2 = \sum_k c_k^2`.

        Returns
        -------
        float
            Mean square at a standard normal z.
        """
        return sum(c**2 for c in self.coefficients)


def he(k: int) -> Series:
    r"""The link :math:`h_k`: variance one, and nothing of any other degree. Raises ValueError as `polynomial` does.

    Parameters
    ----------
    k
        Degree.

    Returns
    -------
    Series
        A series of k + 1 coefficients.
    """
    require("k", k, Natural)
    return Series((0.0,) * k + (1.0,))


def _plain(series: Series) -> np.ndarray:
    """Coefficients in He_k, without the normalisation."""
    return np.array([c / math.sqrt(math.factorial(k)) for k, c in enumerate(series.coefficients)])


def _series(plain: np.ndarray) -> Series:
    return Series(tuple(float(c) * math.sqrt(math.factorial(k)) for k, c in enumerate(plain)))


def nodes(breaks: Places = ()) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of a rule for E f(z): weights @ f(nodes).

    Gauss-Legendre on pieces of length one or less that end at the `breaks`, where f may jump, or bend like a square
    root: on each piece z = middle + half sin(angle), which smooths both ends.

    Parameters
    ----------
    breaks
        Places where f jumps or bends, in any order.

    Returns
    -------
    tuple of ndarray
        Nodes in ascending order and their weights, both of shape ``(N,)``.

    Examples
    --------
    >>> z, weight = nodes(breaks=[0.0])
    >>> round(float(weight @ (z > 0)), 6)
    0.5
    """
    grid = np.arange(-REACH, REACH + 1)
    ends = np.unique(np.concatenate([grid, np.clip(np.asarray(breaks, float), -REACH, REACH)]))
    half, middle = np.diff(ends) / 2, (ends[1:] + ends[:-1]) / 2
    angle = np.pi / 2 * _NODES[0]
    z = middle[:, None] + half[:, None] * np.sin(angle)
    weight = half[:, None] * np.cos(angle) * _NODES[1] * np.pi / 2
    return z.ravel(), (weight * np.exp(-(z**2) / 2) / math.sqrt(2 * np.pi)).ravel()


def mean(f: Callable, breaks: Places = ()) -> float:
    """E f(z) for a standard normal z.

    Parameters
    ----------
    f
        A function of arrays.
    breaks
        Places at which f jumps or bends.

    Returns
    -------
    float
        Expectation.

    Examples
    --------
    >>> round(mean(lambda z: z**4), 6)
    3.0
    """
    z, weight = nodes(breaks)
    return float(weight @ f(z))


def coefficients(link: Callable, degree: int, breaks: Places = ()) -> np.ndarray:
    r"""The Hermite coefficients :math:`c_k = E\,g(z)h_k(z)` for k = 0 ... degree, shape (degree + 1,).

    Parameters
    ----------
    link
        A function of numpy arrays, or a `Series`.
    degree
        The highest k.
    breaks
        Places where the link jumps or bends.

    Returns
    -------
    ndarray
        Coefficients in ascending order of k.

    Examples
    --------
    >>> coefficients(he(3), degree=4).tolist()
    [0.0, 0.0, 0.0, 1.0, 0.0]
    """
    if isinstance(link, Series):
        given = np.zeros(max(degree + 1, len(link.coefficients)))
        given[: len(link.coefficients)] = link.coefficients
        return given[: degree + 1]
    z, weight = nodes(breaks)
    values = weight * link(z)
    return np.array([values @ polynomial(k, z) for k in range(degree + 1)])


def _first(strengths: np.ndarray, what: str, tol: float) -> int:
    """The first degree above zero whose strength counts."""
    counted = np.flatnonzero(strengths[1:] > tol)
    if not counted.size:
        raise ValueError(f"the {what} exponent is above degree = {len(strengths) - 1}; ask for a higher degree")
    return int(counted[0]) + 1


def information_exponent(link: Callable, degree: int = 8, breaks: Places = (), tol: float = 1e-10) -> int:
    r"""The smallest k >= 1 with :math:`c_k \ne 0`: the first degree at which the label itself correlates with z.

    Parameters
    ----------
    link
        A function of numpy arrays, or a `Series`.
    degree
        The highest k that is tried.
    breaks
        Where the link jumps or bends.
    tol
        :math:`c_k^2` counts as zero below `tol` times the link's mean square.

    Returns
    -------
    int
        Exponent, from 1 to `degree`.

    Raises
    ------
    ValueError
        If the exponent is above `degree`.

    Source: Ben Arous et al. (2021), Definition 1.2.

    Examples
    --------
    >>> information_exponent(he(3)), information_exponent(np.tanh)
    (3, 1)
    """
    scale = link.mean_square if isinstance(link, Series) else mean(lambda z: link(z) ** 2, breaks)
    return _first(coefficients(link, degree, breaks) ** 2 / scale, "information", tol)


def slope(link: Callable) -> Callable:
    """The derivative of a link: exact for a `Series`, else by a complex step, so the link must take complex numbers.

    Parameters
    ----------
    link
        A `Series`, or a function that takes arrays of complex numbers, too.

    Returns
    -------
    Callable
        The derivative, a link itself.
    """
    if isinstance(link, Series):
        return link.derivative()
    return lambda z: np.imag(link(z + 1e-30j)) / 1e-30


def turning_points(link: Callable) -> np.ndarray:
    """Where the link turns (its derivative changes sign), in order, within the reach.

    Parameters
    ----------
    link
        A `Series`, or a function of which `slope` knows the derivative.

    Returns
    -------
    ndarray
        Places, shape ``(turns,)``.
    """
    grid = np.linspace(-REACH, REACH, 4802)  # an even number: no node at zero
    derivative = slope(link)
    signs = np.sign(derivative(grid))
    left = np.flatnonzero(signs[:-1] * signs[1:] < 0)
    return _bisected(derivative, grid[left], grid[left + 1])


def _bisected(f: Callable, low: np.ndarray, high: np.ndarray, level: float | np.ndarray = 0.0) -> np.ndarray:
    """Where f = level between low and high, by sixty bisections."""
    rising = f(high) > f(low)
    for _ in range(60):
        middle = (low + high) / 2
        below = (f(middle) < level) == rising
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2)


def preimages(link: Callable, y: np.ndarray) -> np.ndarray:
    """All z with g(z) = y, shape (branches, *y): one a monotone branch of the link, NaN where a branch misses y.

    Parameters
    ----------
    link
        A `Series`, or a function of which `slope` knows the derivative.
    y
        Labels, any shape.

    Returns
    -------
    ndarray
        Preimages, on branches in ascending order.

    Examples
    --------
    >>> preimages(lambda z: z**2, np.array(4.0)).round(6).tolist()
    [-2.0, 2.0]
    """
    y = np.asarray(y, float)
    slack = 1e-13 * (1 + np.abs(y))  # a label at a turning value may miss its own branch by a rounding error
    ends = np.concatenate([[-REACH], turning_points(link), [REACH]])
    found = []
    for low, high in zip(ends[:-1], ends[1:], strict=True):
        values = link(np.array([low, high]))
        hit = (values.min() - slack <= y) & (y <= values.max() + slack)
        z = _bisected(link, np.full(y.shape, low), np.full(y.shape, high), y)
        found.append(np.where(hit, z, np.nan))
    return np.stack(found)


def breakpoints(link: Callable, jumps: Places = ()) -> np.ndarray:
    """Where T(g(z)) may jump or bend as a function of z: where g turns, or meets a turning value or a jump of T.

    Parameters
    ----------
    link
        A `Series`, or a function of which `slope` knows the derivative.
    jumps
        Labels at which T jumps or bends.

    Returns
    -------
    ndarray
        Places in no order, some perhaps twice, shape ``(N,)``.
    """
    turns = turning_points(link)
    where = preimages(link, np.concatenate([link(turns), np.asarray(jumps, float)])).ravel()
    return np.concatenate([turns, where[np.isfinite(where)]])


def best_gate(link: Callable, k: int) -> Callable:
    r"""The gate :math:`\zeta_k(y) = E[h_k(z) \mid g(z) = y]`, whose strength at degree k no other gate exceeds.

    .. math:: \zeta_k(y) = \frac{\sum_{z: g(z) = y} h_k(z)\,\varphi(z)/|g'(z)|}{\sum_{z: g(z) = y} \varphi(z)/|g'(z)|}

    Source: Damian et al. (2024), section 2.

    Parameters
    ----------
    link
        A smooth link, flat at single points only.
    k
        Degree.

    Returns
    -------
    Callable
        A function of an array of labels that returns an array of the same shape.

    Examples
    --------
    >>> bool(np.allclose(best_gate(lambda z: z**2, 2)(np.array([4.0])), polynomial(2, 2.0)))  # y tells z up to its sign
    True
    """
    derivative = slope(link)

    def gate(y):
        z = preimages(link, y)
        there = np.isfinite(z)
        z = np.where(there, z, 0.0)
        log = np.where(there, -(z**2) / 2 - np.log(np.maximum(np.abs(derivative(z)), 1e-300)), -np.inf)
        weight = np.exp(log - log.max(axis=0))
        return (weight * polynomial(k, z)).sum(0) / weight.sum(0)

    return gate


def strength(gate: Callable, link: Callable, k: int, jumps: Places = ()) -> float:
    r"""How much of a gate points at degree k, :math:`c_k(T)^2 / E\,T(y)^2`, a share between 0 and 1.

    Parameters
    ----------
    gate
        T, of the labels.
    link
        g.
    k
        The degree.
    jumps
        Labels at which the gate jumps or bends.

    Returns
    -------
    float
        Strength, between 0 and 1.

    Source: Cauchy-Schwarz; derived in the lecture.

    Examples
    --------
    >>> round(strength(lambda y: y, he(3), 3), 6)
    1.0
    """
    z, weight = nodes(breakpoints(link, jumps))
    values = gate(link(z))
    return float((weight @ (values * polynomial(k, z))) ** 2 / (weight @ values**2))


def best_strengths(link: Callable, degree: int) -> np.ndarray:
    r"""The largest strength of any gate at each degree, :math:`E\,\zeta_k(y)^2`, shape (degree + 1,).

    Parameters
    ----------
    link
        A smooth link, as in `best_gate`.
    degree
        The highest degree k.

    Returns
    -------
    ndarray
        Strengths in ascending order of k.
    """
    z, weight = nodes(breakpoints(link))
    y = link(z)
    return np.array([weight @ best_gate(link, k)(y) ** 2 for k in range(degree + 1)])


def generative_exponent(link: Callable, degree: int = 6, tol: float = 1e-10) -> int:
    r"""The smallest k >= 1 at which some gate T(y) correlates with z, that is :math:`E\,\zeta_k(y)^2 \ne 0`.

    At most the information exponent.

    Parameters
    ----------
    link
        A smooth link, as in `best_gate`.
    degree
        The highest k that is tried.
    tol
        Largest strength that counts as zero.

    Returns
    -------
    int
        Exponent, from 1 to `degree`.

    Raises
    ------
    ValueError
        If it is above `degree`.

    Source: Damian et al. (2024), Definition 2.3.

    Examples
    --------
    >>> information_exponent(he(3)), generative_exponent(he(3))
    (3, 1)
    """
    return _first(best_strengths(link, degree), "generative", tol)
