r"""Linear attention on linear regression: its best matrix, its risk at any length, and what more layers can reach.

Throughout :math:`x_i \sim N(0, \Lambda)`, tasks of mean zero and covariance :math:`\Lambda_\beta` (the identity unless
given), label noise :math:`\sigma_y`; the risk is the mean squared error at a query, without a factor 1/2, against the
noiseless value. Derived in the lecture on linear attention.
"""

import numpy as np
from scipy.optimize import minimize

from flbook import rng
from flbook.domains import Positive, require


def _covariances(covariance, task_covariance) -> tuple[np.ndarray, np.ndarray]:
    lam = np.asarray(covariance, float)
    lam = np.diag(lam) if lam.ndim == 1 else lam
    psi = np.eye(len(lam)) if task_covariance is None else np.asarray(task_covariance, float)
    psi = np.diag(psi) if psi.ndim == 1 else psi
    for name, matrix in (("covariance", lam), ("task_covariance", psi)):
        if matrix.shape != lam.shape or not np.allclose(matrix, matrix.T) or np.linalg.eigvalsh(matrix)[0] < -1e-12:
            raise ValueError(f"{name} must be symmetric and positive semi-definite, of shape {lam.shape}; its shape is "
                             f"{matrix.shape}")
    return lam, psi


def _check_length(n: float) -> None:
    if not n >= 1:
        raise ValueError(f"n must be at least 1, the examples of a prompt (np.inf is the limit); got {n}")


def attention_optimum(n: float, covariance, noise: float = 0.0, task_covariance=None) -> np.ndarray:
    r"""The matrix of least risk at prompts of n examples.

    .. math:: \Gamma_* = \Lambda^{-1}\Big(\frac{n+1}n \Lambda\Lambda_\beta
              + \frac{\mathrm{tr}(\Lambda\Lambda_\beta) + \sigma_y^2}n I\Big)^{-1}\Lambda\Lambda_\beta

    With :math:`\Lambda_\beta = I` it is :math:`\big(\frac{n+1}n\Lambda + \frac{\mathrm{tr}\Lambda + \sigma_y^2}n
    I\big)^{-1}`.

    Parameters
    ----------
    n
        Examples of a prompt; infinite in the limit.
    covariance, task_covariance
        :math:`\Lambda` and :math:`\Lambda_\beta` (the identity if None): d numbers (a diagonal), or d rows.
    noise
        Standard deviation :math:`\sigma_y`.

    Returns
    -------
    ndarray
        Shape (d, d).

    Raises
    ------
    ValueError
        If n is below 1, or a matrix is no covariance.

    Source: Zhang, Frei and Bartlett (2024), Theorem 4.1 for one of its cases; Ahn et al. (2023), Theorem 1; Wu et al.
    (2024), with noise.

    Examples
    --------
    >>> attention_optimum(20, np.eye(5)).diagonal().round(3).tolist()  # n / (n + d + 1)
    [0.769, 0.769, 0.769, 0.769, 0.769]
    """
    _check_length(n)
    lam, psi = _covariances(covariance, task_covariance)
    if not np.isfinite(n):
        return np.linalg.inv(lam)
    both = lam @ psi
    shift = (np.trace(both) + noise**2) / n * np.eye(len(lam))
    return np.linalg.solve(lam, np.linalg.solve((n + 1) / n * both + shift, both))


def attention_risk(gamma, n: float, covariance, noise: float = 0.0, task_covariance=None) -> float:
    r"""The risk of one layer with any matrix gamma on prompts of n examples.

    .. math:: R_n(\Gamma) = \mathrm{tr}\,\Lambda_\beta\Lambda - 2\,\mathrm{tr}\,\Lambda_\beta\Lambda\Gamma\Lambda
        + \frac{n+1}n \mathrm{tr}\,\Lambda_\beta\Lambda\Gamma\Lambda\Gamma^\top\!\Lambda
        + \frac{\mathrm{tr}\,\Lambda_\beta\Lambda + \sigma_y^2}n\,\mathrm{tr}\,\Lambda\Gamma\Lambda\Gamma^\top

    At :math:`n = \infty` only :math:`\mathrm{tr}\,\Lambda_\beta(I - \Lambda\Gamma)\Lambda(I - \Lambda\Gamma)^\top`
    is left: the floor of a matrix that was trained on shorter prompts.

    Parameters
    ----------
    gamma
        Shape (d, d).
    n, covariance, noise, task_covariance
        As in `attention_optimum`.

    Raises
    ------
    ValueError
        If n is below 1, or shapes clash.

    Examples
    --------
    >>> best = attention_optimum(20, np.eye(5))
    >>> round(attention_risk(best, 20, np.eye(5)), 4), round(attention_risk(best, np.inf, np.eye(5)), 4)
    (1.1538, 0.2663)
    """
    _check_length(n)
    lam, psi = _covariances(covariance, task_covariance)
    gamma = np.asarray(gamma, float)
    if gamma.shape != lam.shape:
        raise ValueError(f"gamma must have the shape of the covariance, {lam.shape}; got {gamma.shape}")
    error = np.eye(len(lam)) - lam @ gamma
    spread = lam @ gamma @ lam @ gamma.T
    floor = np.trace(psi @ error @ lam @ error.T)
    return float(floor + (np.trace(psi @ spread @ lam) + (np.trace(psi @ lam) + noise**2) * np.trace(spread)) / n)


def least_risk(covariance, samples, noise: float = 0.0):
    r"""The risk of one layer at its best matrix, tasks :math:`\beta \sim N(0, I)`.

    .. math:: \sum_j \lambda_j\Big(1 - \frac{\lambda_j n}{(n + 1)\lambda_j + \mathrm{tr}\Lambda + \sigma_y^2}\Big)

    The same holds for examples of unequal weights, n being their effective samples
    (`flbook.lectures.in_context_learning.shared.forgetting.effective_samples`).

    Parameters
    ----------
    covariance
        :math:`\Lambda`: a matrix, or its eigenvalues :math:`\lambda_j`.
    samples
        n, a number or an array.
    noise
        Standard deviation :math:`\sigma_y`.

    Examples
    --------
    >>> least_risk(np.ones(5), [20, 200]).round(4).tolist()
    [1.1538, 0.1456]
    """
    values = np.asarray(covariance, float)
    values = values if values.ndim == 1 else np.linalg.eigvalsh(values)
    samples = np.asarray(samples, float)[..., None]
    kept = values * samples / ((samples + 1) * values + values.sum() + noise**2)
    return (values * (1 - kept)).sum(-1)


def isotropic_risk(n, d: int):
    r"""The `least_risk` for :math:`\Lambda = I` without noise, :math:`d(d+1)/(n+d+1)`: that of the best single step."""
    return least_risk(np.ones(d), n)


def best_step(n: int, d: int, variance: float = 1.0, fourth: float = 3.0) -> tuple[float, float]:
    r"""The best single gradient step and its risk, for inputs with d independent coordinates of any symmetric law.

    .. math:: \eta_* = \frac v s, \quad R = d\,v\Big(1 - \frac{v^2}{s}\Big), \quad
              s = \frac{E x_j^4 + (d-1) v^2}{n} + \Big(1 - \frac1n\Big) v^2

    Noiseless, tasks of covariance I. For Gaussian coordinates the risk is `isotropic_risk`.

    Parameters
    ----------
    n
        Examples of a prompt.
    d
        Dimension.
    variance, fourth
        :math:`v = E x_j^2` and :math:`E x_j^4` of a coordinate.

    Examples
    --------
    >>> step, risk = best_step(20, 5)
    >>> round(step, 4), round(risk, 4)
    (0.7692, 1.1538)
    """
    second = (fourth + (d - 1) * variance**2) / n + (1 - 1 / n) * variance**2
    return variance / second, d * variance * (1 - variance**2 / second)


def low_signal_ratio(d: int, snr: float) -> float:
    r"""Risk of the best attention over that of Bayes' ridge regression on very long prompts.

    It tends to :math:`1 + (1 + \frac1d)\,\mathrm{SNR}` with :math:`\mathrm{SNR} = \mathrm{tr}\Lambda/\sigma_y^2`: near
    one only where the noise is larger than the signal, however long the prompt.
    """
    return 1 + (1 + 1 / d) * snr


def second_moments(n: int, covariance, draws: int, seed: int = 0) -> np.ndarray:
    r"""Matrices :math:`S = \frac1n\sum_i x_i x_i^\top`, shape (draws, d, d), from Wishart's law: n costs nothing.

    Examples
    --------
    >>> second_moments(1000, np.eye(3), draws=2).shape
    (2, 3, 3)
    """
    lam, _ = _covariances(covariance, None)
    d, generator = len(lam), rng.numpy_generator(seed, "second moments")
    if n < d:
        x = generator.standard_normal((draws, n, d))
        white = np.einsum("snd,sne->sde", x, x) / n
    else:
        factor = np.tril(generator.standard_normal((draws, d, d)), -1)
        factor[:, range(d), range(d)] = np.sqrt(generator.chisquare(n - np.arange(d), (draws, d)))
        white = factor @ factor.transpose(0, 2, 1) / n
    values, vectors = np.linalg.eigh(lam)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    return root @ white @ root


def ridge_risk(n: int, covariance, noise: float, draws: int = 4000, seed: int = 0) -> np.ndarray:
    r"""Risk of Bayes' ridge regression for each drawn prompt: :math:`\mathrm{tr}\,\Lambda(nS/\sigma_y^2+I)^{-1}`.

    Raises ValueError if the noise is no number above 0: then ridge regression is least squares.
    """
    lam, _ = _covariances(covariance, None)
    require("noise", noise, Positive)
    s = second_moments(n, lam, draws, seed)
    return np.einsum("de,sed->s", lam, np.linalg.inv(n * s / noise**2 + np.eye(len(lam))))


def descent_risk(steps: int, s: np.ndarray, covariance, task_covariance=None) -> float:
    r"""The least risk of any polynomial of degree `steps` in S, so of that many gradient steps, however tuned.

    The error after L steps is :math:`\beta^\top r(S)\,x_q` with :math:`r(\lambda) = \prod_l(1 - \eta_l\lambda)`, a
    polynomial with r(0) = 1. Its risk is quadratic in the other coefficients, so the best ones solve a linear system,
    and momentum or any other use of L products with S does not do better.

    Parameters
    ----------
    steps
        L.
    s
        Drawn matrices from `second_moments`, over which the risk is averaged, shape (draws, d, d).
    covariance, task_covariance
        As in `attention_optimum`.
    """
    lam, psi = _covariances(covariance, task_covariance)
    powers = [np.broadcast_to(np.eye(len(lam)), s.shape)]
    for _ in range(steps):
        powers.append(powers[-1] @ s)
    weighted = [np.einsum("ab,sbc,cd->sad", psi, power, lam, optimize=True) for power in powers]
    h = np.array([[np.einsum("sad,sad->", one, other, optimize=True) / len(s) for other in powers] for one in weighted])
    return float(h[0, 0] - h[0, 1:] @ np.linalg.solve(h[1:, 1:], h[1:, 0]))


def layered_risk(steps, bends, values: np.ndarray) -> float:
    r"""The risk of layers that descend and bend: the mean of :math:`d\,g_L(\lambda)^2` over eigenvalues of S.

    .. math:: g_{l+1} = g_l\,(1 - a_l\lambda_l), \qquad \lambda_{l+1} = \lambda_l\,(1 - a_l b_l\lambda_l)^2

    A layer takes a gradient step of size :math:`a_l`, and with :math:`b_l` it also moves the inputs, so that the next
    one meets other eigenvalues. With b = 0 these are L gradient steps.

    Parameters
    ----------
    steps
        a, one a layer.
    bends
        b, one for each layer but the last.
    values
        Eigenvalues :math:`\lambda_0` of S, shape (draws, d).

    Source: von Oswald et al. (2023), GD++; Ahn et al. (2023), for its parameters.
    """
    return values.shape[-1] * float((_residual(np.asarray(steps), np.asarray(bends), values) ** 2).mean())


def _residual(steps: np.ndarray, bends: np.ndarray, values: np.ndarray) -> np.ndarray:
    error, now = np.ones_like(values), values
    for a, b in zip(steps, [*bends, 0.0], strict=True):
        error, now = error * (1 - a * now), now * (1 - a * b * now) ** 2
    return error


def layered_optimum(layers: int, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The best steps and bends of `layered_risk` that three searches find; the first of them does not bend.

    They search on a thinned spectrum and are compared on the whole one, whose largest eigenvalues decide.
    """
    d = values.shape[-1]
    spectrum = np.sort(values, axis=None)  # the mean spectrum, thinned to about 5000 equally likely numbers
    group = max(1, spectrum.size // 5000)
    spectrum = spectrum[: spectrum.size // group * group].reshape(-1, group).mean(1)

    def risk(at: np.ndarray) -> float:
        return d * float((_residual(at[:layers], at[layers:], spectrum) ** 2).mean())

    straight = np.full(layers, 0.8)
    found = [np.r_[minimize(lambda at: risk(np.r_[at, np.zeros(layers - 1)]), straight, method="BFGS").x,
                   np.zeros(layers - 1)]]
    found += [minimize(risk, np.r_[straight, np.full(layers - 1, bend)], method="BFGS").x for bend in (0.0, 0.3)]
    best = min(found, key=lambda at: layered_risk(at[:layers], at[layers:], values))
    return best[:layers], best[layers:]
