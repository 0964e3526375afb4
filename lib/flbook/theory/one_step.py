r"""One gradient step in the limit :math:`n, N, d \to \infty`, :math:`n/d \to \psi_1`, :math:`N/d \to \psi_2`.

Functions :math:`\sigma` and :math:`\sigma_*` enter by the `Parts` of their expansion: constant, linear, and the rest.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Parts(NamedTuple):
    r"""A function of a standard normal number z: :math:`\mu_0 + \mu_1 z` and a rest of norm :math:`\mu_2`."""

    mu_0: float
    mu_1: float
    mu_2: float

    @property
    def square(self) -> float:
        r"""The mean square of the function.

        Returns
        -------
        float
            :math:`\mu_0^2 + \mu_1^2 + \mu_2^2`.
        """
        return self.mu_0**2 + self.mu_1**2 + self.mu_2**2


def parts(function: Callable[[np.ndarray], np.ndarray], nodes: int = 200) -> Parts:
    r""":math:`\mu_0 = E\sigma(z)`, :math:`\mu_1 = E z\sigma(z)`, :math:`\mu_2^2 = E\sigma^2 - \mu_0^2 - \mu_1^2`.

    By Gauss-Hermite quadrature: exact to rounding for smooth functions, to some 1 % for those with a kink.

    Parameters
    ----------
    function
        Of numpy arrays.
    nodes
        Number of nodes of the quadrature.

    Returns
    -------
    Parts
        The three numbers, :math:`\mu_2` not negative.

    Source: Ba et al. (2022), equation (2.2).

    Examples
    --------
    >>> [round(part, 6) for part in parts(lambda z: 3 + 2 * z**3)]  # 2 z^3 has the linear part 6 z
    [3.0, 6.0, 4.898979]
    """
    z, weight = _normal(nodes)
    values = function(z)
    mu_0, mu_1 = float(weight @ values), float(weight @ (z * values))
    rest = float(weight @ (values - mu_0 - mu_1 * z) ** 2)
    return Parts(mu_0, mu_1, float(np.sqrt(rest)))


def nonlinear_floor(target: Parts) -> float:
    r""":math:`\|P_{>1} f_*\|^2 = \mu_{2,*}^2`: below it no method gets that predicts with a linear function of x.

    Parameters
    ----------
    target
        `parts` of the target.

    Returns
    -------
    float
        A mean square error.

    Source: Ba et al. (2022), Proposition 1.
    """
    return target.mu_2**2


class Spike(NamedTuple):
    """What one step leaves in the first layer."""

    singular_value: np.ndarray  # the largest of W
    overlap: np.ndarray  # squared cosine between its direction in input space and the target's


def spike_strength(eta, psi_1, sigma: Parts, target: Parts, noise: float):
    r"""Length :math:`t = \eta\theta_2` of the rank-one step :math:`\eta\sqrt N A`, and its share along the target.

    .. math:: \theta_2^2 = \mu_1^2\Big(\mu_{1,*}^2 + \frac{E y^2}{\psi_1}\Big), \qquad
              \frac{\theta_1^2}{\theta_2^2} = \frac{\mu_{1,*}^2}{\mu_{1,*}^2 + E y^2/\psi_1}

    Parameters
    ----------
    eta
        Step size :math:`\eta`, a number or an array.
    psi_1
        n/d, a number or an array.
    sigma, target
        `parts` of the activation and of the target.
    noise
        Standard deviation of the label noise.

    Returns
    -------
    tuple[float or ndarray, float or ndarray]
        t and :math:`\theta_1^2/\theta_2^2`: of the shape that `eta` and `psi_1` broadcast to, and of that of `psi_1`.

    Source: derived in the lecture `kernels_and_one_step`.
    """
    noisy = target.mu_1**2 + (target.square + noise**2) / np.asarray(psi_1, float)
    return np.asarray(eta) * abs(sigma.mu_1) * np.sqrt(noisy), target.mu_1**2 / noisy


def spike(eta, psi_1, psi_2: float, sigma: Parts, target: Parts, noise: float) -> Spike:
    r"""Largest singular value of :math:`W_1`, and squared overlap of its input direction with :math:`\beta_*`.

    With t and the share of `spike_strength`, if :math:`t > \psi_2^{1/4}`

    .. math:: s_1^2 = \frac{(1 + t^2)(\psi_2 + t^2)}{t^2}, \qquad \langle u_1, \beta_*\rangle^2 =
              \frac{\theta_1^2}{\theta_2^2}\Big(1 - \frac{\psi_2 + t^2}{t^2(t^2 + 1)}\Big),

    otherwise the spike drowns in the bulk: :math:`1 + \sqrt{\psi_2}` and 0.

    Parameters
    ----------
    eta
        Step size, a number or an array.
    psi_1, psi_2
        n/d, which may be an array, and N/d.
    sigma, target
        `parts` of the activation and of the target.
    noise
        Standard deviation of the label noise.

    Returns
    -------
    Spike
        Numbers of the shape that `eta` and `psi_1` broadcast to.

    Source: Benaych-Georges and Nadakuditi (2012), Section 3.1, for a rank-one matrix beside a Gaussian one.
    """
    t, share = spike_strength(eta, psi_1, sigma, target, noise)
    square = np.maximum(t, psi_2**0.25) ** 2  # at the threshold both formulas meet their value below it
    overlap = share * (1 - (psi_2 + square) / (square * (square + 1)))
    return Spike(np.sqrt((1 + square) * (psi_2 + square) / square), np.where(t > psi_2**0.25, overlap, 0.0))


def spike_threshold(psi_1, psi_2: float, sigma: Parts, target: Parts, noise: float):
    r"""The step size :math:`\eta_c = \psi_2^{1/4}/\theta_2` from which on the spike stands out of the bulk.

    Parameters
    ----------
    psi_1
        n/d, a number or an array.
    psi_2
        N/d.
    sigma, target
        `parts` of the activation and of the target.
    noise
        Standard deviation of the label noise.

    Returns
    -------
    float or ndarray
        Step sizes, of the shape of `psi_1`.
    """
    return psi_2**0.25 / spike_strength(1.0, psi_1, sigma, target, noise)[0]


def bulk_density(s, psi_2: float):
    r"""Density of the singular values of the random start :math:`W_0` (d of them), where :math:`\psi_2 \ge 1`.

    Parameters
    ----------
    s
        Singular values, a number or an array.
    psi_2
        N/d.

    Returns
    -------
    float or ndarray
        Densities, of the shape of `s`.

    Source: Marchenko and Pastur (1967).
    """
    s = np.asarray(s, float)
    low, high = np.sqrt(psi_2) - 1, np.sqrt(psi_2) + 1
    inside = np.clip((high**2 - s**2) * (s**2 - low**2), 0, None)
    return np.sqrt(inside) / (np.pi * np.maximum(s, 1e-300))


def ridge_risk(ridge, n: float, values, weights, rest, noise: float = 0.0, count: float | np.ndarray = 1.0):
    r"""Risk of ridge regression on n samples of Gaussian features, by its deterministic equivalent.

    .. math:: R = \frac{\text{rest} + \sigma_\varepsilon^2 + \kappa^2 \sum_k \text{weights}_k s_k/(s_k + \kappa)^2}
              {1 - \mathrm{df}_2/n} - \sigma_\varepsilon^2, \quad
              \kappa = \text{ridge} + \frac\kappa n \sum_k \frac{s_k}{s_k + \kappa}, \quad
              \mathrm{df}_2 = \sum_k \frac{s_k^2}{(s_k + \kappa)^2}

    Parameters
    ----------
    ridge
        Factor of :math:`\|a\|^2` beside the mean square error, shape ``R``.
    n
        Samples.
    values
        Eigenvalues :math:`s_k` of the features' covariance, shape ``(*E, k)``; each counts `count` times.
    weights
        Squares of the best coefficients along the eigenvectors, summed over equal ones, shape ``(*E, k)``.
    rest
        Mean square of the target that no linear function of the features explains, shape ``*E``.
    noise
        Standard deviation :math:`\sigma_\varepsilon`.
    count
        Of each eigenvalue, shape ``k`` or a number.

    Returns
    -------
    ndarray
        Risk against the target without noise, shape ``(*E, R)``.

    Source: Dobriban and Wager (2018); Hastie et al. (2022).

    Examples
    --------
    >>> ridge_risk([0.1, 10.0], n=100, values=[1.0], weights=[1.0], rest=0.0, noise=0.5, count=10).shape
    (2,)
    """
    s, b = np.asarray(values, float)[..., None, :], np.asarray(weights, float)[..., None, :]
    count, ridge = np.broadcast_to(np.asarray(count, float), s.shape[-1:]), np.atleast_1d(np.asarray(ridge, float))
    kappa = ridge + (count * s).sum(-1) / n
    for _ in range(60):  # Newton's method on a convex function, from above
        share = s / (s + kappa[..., None])
        excess = kappa * (1 - (count * share).sum(-1) / n) - ridge
        kappa = kappa - excess / (1 - (count * share**2).sum(-1) / n)
    share = s / (s + kappa[..., None])
    bias = (b * s * (1 - share) ** 2).sum(-1)
    return (np.asarray(rest)[..., None] + noise**2 + bias) / (1 - (count * share**2).sum(-1) / n) - noise**2


def linear_risk(lam, psi_1: float, target: Parts, noise: float):
    r"""Risk of ridge regression on the d inputs themselves, ridge :math:`\lambda` beside the mean square error.

    The nonlinear part of the target acts as noise: it raises the risk and cannot be learned.

    Parameters
    ----------
    lam
        The ridge :math:`\lambda`, shape ``R``, or a number.
    psi_1
        n/d.
    target
        `parts` of the target.
    noise
        Standard deviation of the label noise.

    Returns
    -------
    ndarray
        Risk against the target without noise, shape ``R``, which is ``(1,)`` for a number.
    """
    return ridge_risk(lam, psi_1, [1.0], [target.mu_1**2], nonlinear_floor(target), noise)


def gaussian_equivalent_risk(lam, n: int, width: int, squares, overlaps, sigma: Parts, target: Parts, noise: float):
    r"""Risk of ridge regression on :math:`N^{-1/2}(\mu_1 W x + \mu_2 z)`, z independent of x: features without a bend.

    In the limit, for odd :math:`\sigma` and as long as :math:`\eta = \Theta(1)`, it is the risk of the network itself,
    for the W at hand.

    Parameters
    ----------
    lam
        The ridge :math:`\lambda` in :math:`\frac\lambda N\|a\|^2`, shape ``R``.
    n, width
        Samples and neurons N.
    squares, overlaps
        The d squared singular values of W, and the squared cosines of the target's direction with their directions in
        input space, shape ``(*E, d)`` each.
    sigma, target, noise
        As in `spike`.

    Returns
    -------
    ndarray
        Shape ``(*E, R)``, never below `nonlinear_floor`.

    Source: Ba et al. (2022), Theorem 3, for the equivalence; the risk is `ridge_risk`.
    """
    squares, overlaps = np.asarray(squares, float), np.asarray(overlaps, float)
    values = (sigma.mu_1**2 * squares + sigma.mu_2**2) / width
    explained = sigma.mu_1**2 * target.mu_1**2 / width * squares * overlaps / values
    rest = target.mu_1**2 + target.mu_2**2 - explained.sum(-1)
    beside = np.full((*values.shape[:-1], 1), sigma.mu_2**2 / width)  # the N - d directions that W does not reach
    count = np.append(np.ones(squares.shape[-1]), width - squares.shape[-1])
    values, weights = np.concatenate([values, beside], -1), np.append(explained / values, 0 * beside, -1)
    return ridge_risk(np.atleast_1d(lam) / width, n, values, weights, rest, noise, count)


def one_direction_error(kappa, activation: Callable, link: Callable, nodes: int = 200):
    r""":math:`E_{\xi_1}\big(\sigma_*(\xi_1) - E_{\xi_2}\sigma(\kappa\xi_1 + \xi_2)\big)^2`, whose least value is tau*.

    The part of the target that many neurons miss which all moved by :math:`\kappa` along it, averaged.

    Parameters
    ----------
    kappa
        :math:`\kappa`, a number or an array.
    activation, link
        :math:`\sigma` and :math:`\sigma_*`, of numpy arrays.
    nodes
        Number of nodes of the quadrature.

    Returns
    -------
    float or ndarray
        Mean square errors, of the shape of `kappa`.

    Source: Ba et al. (2022), equation (5.1).
    """
    z, weight = _normal(nodes)
    student = activation(np.multiply.outer(kappa, z)[..., None] + z) @ weight
    return (link(z) - student) ** 2 @ weight


def _normal(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for the mean over a standard normal number."""
    z, weight = np.polynomial.hermite_e.hermegauss(nodes)
    return z, weight / weight.sum()
