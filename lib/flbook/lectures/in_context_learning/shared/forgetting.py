r"""A Mamba layer in context: the weighted sum that it forms, what that costs, and what would do better.

With a fixed step the layer predicts :math:`x_q^\top\Gamma\sum_i\omega_i y_{n-i}x_{n-i}` with
:math:`\omega_i = (1 - \alpha)\alpha^{i+1}`. All risks are mean squared errors without a factor 1/2. Derived in the
lectures; the isotropic risk agrees with the tables of Jiang et al. (2025).
"""

import numpy as np

from flbook.lectures.in_context_learning.shared.attention_risk import least_risk as attention_risk


def decay(n):
    r"""The decay at which an example counts half after n more, :math:`\alpha = 2^{-1/n}`."""
    return 0.5 ** (1 / np.asarray(n, float))


def weights(alpha: float, n: int) -> np.ndarray:
    r""":math:`\omega_i = (1 - \alpha)\alpha^{i+1}`, i = 0 for the last example; shape (n,)."""
    return (1 - alpha) * alpha ** np.arange(1, n + 1)


def effective_samples(alpha, n):
    r""":math:`n_\mathrm{eff} = \frac{(\sum_i\omega_i)^2}{\sum_i\omega_i^2} =
    \frac{(1 + \alpha)(1 - \alpha^n)}{(1 - \alpha)(1 + \alpha^n)}`: so many equal weights have the same scatter.

    At most n, and n in the limit alpha = 1, where nothing is forgotten.

    Examples
    --------
    >>> round(float(effective_samples(0.9, 100)), 2)
    19.0
    """
    alpha, n = np.asarray(alpha, float), np.asarray(n, float)
    with np.errstate(invalid="ignore"):
        found = (1 + alpha) * (1 - alpha**n) / ((1 - alpha) * (1 + alpha**n))
    return np.where(alpha == 1, n, found)


def attention_matrix(covariance: np.ndarray, omega: np.ndarray, noise: float = 0.0) -> np.ndarray:
    r"""The best matrix, :math:`\Gamma^* = \Omega_1\big[(\Omega_1^2 + \Omega_2)\Lambda +
    \Omega_2(\mathrm{tr}\Lambda + \sigma_y^2)I\big]^{-1}`, :math:`\Omega_k = \sum_i\omega_i^k`.

    Parameters
    ----------
    covariance
        :math:`\Lambda`, shape (d, d).
    omega
        The weights of the examples, shape (n,).
    noise
        Standard deviation :math:`\sigma_y`.
    """
    one, two = omega.sum(), (omega**2).sum()
    scatter = two * (np.trace(covariance) + noise**2) * np.eye(len(covariance))
    return one * np.linalg.inv((one**2 + two) * covariance + scatter)


def mamba_risk(covariance, n, noise: float = 0.0, alpha=None):
    r"""Risk of the layer's best matrix with the decay alpha, :math:`2^{-1/n}` unless given.

    Examples
    --------
    >>> bool(mamba_risk(np.ones(4), 50) > attention_risk(np.ones(4), 50))  # forgetting costs
    True
    """
    return attention_risk(covariance, effective_samples(decay(n) if alpha is None else alpha, n), noise)


def chunk_risk(d: int, n, chunk, noise: float = 0.0, step: float | None = None):
    r"""Risk of one gradient step a chunk of b examples, on the chunk's mean squared error; n/b steps.

    .. math:: R = d\,f^{n/b} + \eta^2\frac{d\sigma_y^2}b\,\frac{1 - f^{n/b}}{1 - f}, \qquad
              f = 1 - 2\eta + \eta^2\Big(1 + \frac{d + 1}b\Big)

    At the best step without noise, :math:`\eta = b/(b + d + 1)`, it is :math:`d\,(1 + b/(d + 1))^{-n/b}`.

    Examples
    --------
    >>> round(float(chunk_risk(4, 20, 20)), 3)  # one chunk: linear attention, d (d + 1) / (n + d + 1)
    0.8
    """
    n, chunk = np.asarray(n, float), np.asarray(chunk, float)
    eta = chunk / (chunk + d + 1) if step is None else step
    shrink = 1 - 2 * eta + eta**2 * (1 + (d + 1) / chunk)
    rest = shrink ** (n / chunk)
    return d * rest + eta**2 * d * noise**2 / chunk * (1 - rest) / (1 - shrink)


def lms_risk(d: int, n, noise: float = 0.0, step: float | None = None):
    r"""Risk of online gradient descent with residuals, inputs and tasks standard normal, step :math:`1/(d + 2)`.

    .. math:: d f^n + \eta^2 d\,\sigma_y^2\,\frac{1 - f^n}{1 - f}, \qquad f = 1 - 2\eta + \eta^2(d + 2)

    Its floor under noise, :math:`d\sigma_y^2/(d + 2)` at that step, does not fall with n.

    Examples
    --------
    >>> round(float(lms_risk(4, 10**6, noise=1.0)), 4)
    0.6667
    """
    return chunk_risk(d, n, 1, noise, step)


def falling_risk(d: int, n: int, noise: float = 0.0) -> float:
    r"""The same with the falling step :math:`\eta_l = 1/(d + 1 + l)`, by the recursion of the mean squared error.

    .. math:: e_l = \big(1 - 2\eta_l + \eta_l^2(d + 2)\big)e_{l-1} + \eta_l^2 d\,\sigma_y^2, \qquad e_0 = d
    """
    error = float(d)
    for eta in 1 / (d + 1.0 + np.arange(1, n + 1)):
        error = (1 - 2 * eta + eta**2 * (d + 2)) * error + eta**2 * d * noise**2
    return error


def untrained_length_risk(d: int, n: int, trained: int) -> float:
    r"""Risk at n examples of the layer trained at another length, noiseless, inputs standard normal.

    .. math:: d\big(g^2(\Omega_1^2 + (d + 1)\Omega_2) - 2g\Omega_1 + 1\big)

    with g of the trained length, and the sums :math:`\Omega_k = \sum_i\omega_i^k` over the n examples.
    """
    alpha = float(decay(trained))
    g = attention_matrix(np.eye(d), weights(alpha, trained))[0, 0]
    one, two = weights(alpha, n).sum(), (weights(alpha, n) ** 2).sum()
    return float(d * (g**2 * (one**2 + (d + 1) * two) - 2 * g * one + 1))


def drifting_risk(d: int, n: int, alpha: float, memory: float, noise: float = 0.0) -> float:
    r"""Risk of the best :math:`g\,x_q^\top\sum_i\omega_i y_i x_i` for a task that drifts, inputs standard normal.

    .. math:: \beta_{l+1} = \rho\beta_l + \sqrt{1 - \rho^2}\,\xi_l, \qquad
              R = d\Big(1 - \frac{(\sum_i\omega_i\rho^{i+1})^2}{\sum_{ij}\omega_i\omega_j\rho^{|i-j|} +
              (d + 1 + \sigma_y^2)\sum_i\omega_i^2}\Big)

    The query is answered by the task after the last example's.

    Parameters
    ----------
    d
        Dimension.
    n
        Examples of a prompt.
    alpha
        The decay of the weights.
    memory
        :math:`\rho`.
    noise
        Standard deviation :math:`\sigma_y`.
    """
    covariance, power = _drifting_moments(d, n, alpha, memory, noise)
    return float(d * (1 - covariance**2 / power))


def drifting_scale(d: int, n: int, alpha: float, memory: float, noise: float = 0.0) -> float:
    """The number g of `drifting_risk`."""
    covariance, power = _drifting_moments(d, n, alpha, memory, noise)
    return float(covariance / power)


def _drifting_moments(d: int, n: int, alpha: float, memory: float, noise: float) -> tuple[float, float]:
    """A coordinate's covariance with the task to be predicted, and its mean square."""
    omega, places = weights(alpha, n), np.arange(n)
    spread = omega @ memory ** np.abs(places[:, None] - places[None, :]).astype(float) @ omega
    return omega @ memory ** (places + 1.0), spread + (d + 1 + noise**2) * (omega**2).sum()


def kalman(d: int, memory: float, noise: float = 0.0) -> tuple[float, float]:
    r"""The best linear filter of :math:`y_l x_l = \beta_l + \text{noise}` after many examples: its decay and its risk.

    The noise has the variance :math:`r = d + 1 + \sigma_y^2` a coordinate. With the error p of the prediction and the
    gain k the stationary Kalman filter is

    .. math:: p = \rho^2 p(1 - k) + 1 - \rho^2, \qquad k = \frac{p}{p + r}, \qquad \alpha = \rho(1 - k), \qquad R = dp,

    so its weights are exponential: a state-space layer can be it. Source: Kalman (1960).
    """
    r, drift = d + 1 + noise**2, 1 - memory**2
    half = drift * (1 - r) / 2  # p^2 - 2 half p - drift r = 0
    p = half + np.sqrt(half**2 + drift * r)
    return float(memory * r / (p + r)), float(d * p)
