r"""Few or many pretraining tasks: the risk of linear attention that was fitted to a finite pool of them.

The setting of Lu et al. (2024): d-dimensional inputs :math:`x \sim N(0, I/d)`, k tasks of length :math:`\sqrt d`, label
noise of variance :math:`\rho`, prompts of :math:`\ell` examples, a pretraining set of N prompts. Everything grows with
:math:`\alpha = \ell/d`, :math:`\kappa = k/d` and :math:`\tau = N/d^2` fixed. The risk here is that on *fresh* tasks and
counts the noise of the query's label, :math:`\rho`.
"""

import numpy as np

from flbook.lectures.in_context_learning.shared.attention_risk import attention_optimum, attention_risk


def icl_risk(tau: float, alpha: float, kappa: float, rho: float) -> float:
    r"""Risk on fresh tasks of ridgeless linear attention, all sizes large.

    With :math:`\mathcal M_\kappa(x) = 2/\big(x + 1 - \frac1\kappa + \sqrt{(x + 1 - \frac1\kappa)^2 + 4x/\kappa}\big)`,
    :math:`x = (1 + \rho)/\alpha`, :math:`m = \mathcal M_\kappa(x)` and :math:`\mu = x\,\mathcal M_{\kappa/\tau}(x)`,

    .. math:: \tau < 1: \quad \frac{\tau(1 + x)}{1 - \tau}\Big(1 - \tau(1 - \mu)^2 - \frac{x - \rho}x\mu\Big)
              - 2\tau(1 - \mu) + 1 + \rho, \qquad
              \tau > 1: \quad \Big(k - \frac1{\tau - 1}\Big)(1 + x)(x m)^2 + \frac{3 - 2\tau}{\tau - 1} m x^2
              + \Big(\frac{1 + \rho}{\tau - 1} m + 1\Big)x + \frac{\rho m}{\tau - 1} + \rho

    with :math:`k = 1/(1 - \kappa m^2/(\kappa + m)^2)`. There is a pole at :math:`\tau = 1`.

    Raises ValueError if an argument is not positive, rho negative, or tau is 1.
    Source: Lu et al. (2024), as evaluated in the authors' published code.
    """
    if not (tau > 0 and alpha > 0 and kappa > 0 and rho >= 0):
        raise ValueError(f"tau, alpha and kappa must be positive and rho not negative; got tau={tau}, alpha={alpha}, "
                         f"kappa={kappa}, rho={rho}")
    if tau == 1:
        raise ValueError("tau must differ from 1, where the risk is infinite")
    x = (1 + rho) / alpha
    if tau < 1:
        mu = x * _stieltjes(kappa / tau, x)
        inner = 1 - tau * (1 - mu) ** 2 - (x - rho) / x * mu
        return float(tau * (1 + x) / (1 - tau) * inner - 2 * tau * (1 - mu) + rho + 1)
    m = _stieltjes(kappa, x)
    k = 1 / (1 - kappa * (m / (kappa + m)) ** 2)
    return float((k - 1 / (tau - 1)) * (1 + x) * (x * m) ** 2 + (3 - 2 * tau) / (tau - 1) * m * x**2
                 + ((1 + rho) / (tau - 1) * m + 1) * x + rho * m / (tau - 1) + rho)


def _stieltjes(kappa: float, x: float) -> float:
    """The function M of `icl_risk`; the mean of 1 / (x + eigenvalue) over a pool's second moment."""
    a = x + 1 - 1 / kappa
    return 2 / (a + np.sqrt(a**2 + 4 * x / kappa))


def pool_risk(tasks: np.ndarray, examples: int, rho: float) -> float:
    r"""Risk on fresh tasks of the best linear attention for a given pool of tasks: infinitely many prompts, exact.

    The best matrix for inputs N(0, I/d) depends on the pool through its second moment
    :math:`\frac1k\sum_j\beta_j\beta_j^\top` alone, which takes the place of :math:`\Lambda_\beta`; the risk is that on
    tasks of covariance I.

    tasks: shape (k, d).
    """
    k, d = tasks.shape
    inputs = np.eye(d) / d
    gamma = attention_optimum(examples, inputs, rho**0.5, tasks.T @ tasks / k)
    return attention_risk(gamma, examples, inputs, rho**0.5) + rho


def long_prompts(kappa: float, rho: float) -> float:
    r"""The risk when prompts are long and many, :math:`\max(0, 1 - \kappa) + \rho`.

    A pool of :math:`k < d` tasks spans k dimensions; a fresh task has the share :math:`1 - \kappa` outside of them.
    """
    return max(0.0, 1 - kappa) + rho


def layer_errors(tasks: np.ndarray, n: int, noise: float) -> tuple[float, float]:
    r"""Squared errors over d of the best linear attention for a given pool, on the pool's tasks and on fresh ones.

    Means over prompts of 0 to n examples, with the best matrix for each length; inputs N(0, I), errors to the noiseless
    target, exact. Without an example the layer answers 0.

    tasks: shape (M, d).
    """
    size, d = tasks.shape
    second, eye = tasks.T @ tasks / size, np.eye(d)
    own, fresh = [float(np.trace(second))], [float(d)]
    for k in range(1, n + 1):
        gamma = attention_optimum(k, eye, noise, second)
        own.append(attention_risk(gamma, k, eye, noise, second))
        fresh.append(attention_risk(gamma, k, eye, noise))
    return float(np.mean(own)) / d, float(np.mean(fresh)) / d
