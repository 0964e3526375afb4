r"""What simple rules achieve on a prompt of linear regression: risks in closed form, as shares of the label's variance.

The law is :math:`x \sim N(0, I_d)`, :math:`\beta \sim N(0, I_d)`, :math:`y = \langle\beta, x\rangle + \varepsilon` with
label noise :math:`\sigma_y`; a label without its noise has the variance d. k is the number of examples.
"""

import numpy as np

from flbook.lectures.in_context_learning.shared.attention_risk import isotropic_risk


def least_squares(k, d: int, noise: float = 0.0) -> np.ndarray:
    r"""Least squares, the shortest solution where there are many.

    .. math:: \frac{R}{d} = \max\Big(0, 1 - \frac kd\Big) + \frac{\sigma_y^2}{d}\,\frac{\min(k, d)}{|k - d| - 1}

    It sees a random k-dimensional share of the task; the noise term is the trace of the inverse of a Wishart matrix,
    infinite for :math:`|k - d| \le 1`. Without noise no rule has a smaller risk: it is the posterior mean.
    Source: derived in the lecture.
    """
    k = np.asarray(k, dtype=float)
    missed = np.maximum(0.0, 1 - k / d)
    if not noise:
        return np.asarray(missed)
    room = np.abs(k - d) - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        blur = np.where(k == 0, 0.0, np.where(room > 0, noise**2 / d * np.minimum(k, d) / room, np.inf))
    return np.asarray(missed + blur)


def averaging(k, d: int) -> np.ndarray:
    r"""The average :math:`\hat\beta = \frac1k\sum_i y_i x_i` of noiseless labels: :math:`R/d = (d+1)/k`.

    Source: derived in the lecture.
    """
    return np.asarray((d + 1) / np.asarray(k, dtype=float))


def one_step(k, d: int) -> np.ndarray:
    r"""The best multiple of the average, :math:`\eta = k/(k+d+1)`: :math:`R/d = (d+1)/(k+d+1)`.

    One gradient step from zero; also the optimum of linear attention at :math:`\Lambda = I`.
    Source: derived in the lecture.
    """
    return np.asarray(isotropic_risk(k, d) / d)
