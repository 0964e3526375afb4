r"""How much of a random push points along the one direction in which a saddle falls, and what that is worth.

A push of given length :math:`\|\xi\|` with the part c along the unstable direction e, of eigenvalue
:math:`\lambda_{\min} < 0`, grows like :math:`c\,e^{|\lambda_{\min}|t}`, so escape takes
:math:`(C_\pm - \log|c|)/|\lambda_{\min}|`, with a constant for either side of the saddle. Derived in the lecture
perturbed_flow.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma


def guided_share(values: NDArray[np.floating]) -> float:
    r"""The part of the energy along e of a push with the covariance of the squared Hessian, of these eigenvalues.

    .. math:: \frac{E\langle\xi, e\rangle^2}{E\|\xi\|^2} = \frac{\lambda_{\min}^2}{\sum_i \lambda_i^2}
    """
    return float(values.min() ** 2 / (values**2).sum())


def effective_rank(values: NDArray[np.floating]) -> float:
    """Directions that the guided push has to share its energy with, itself included: the inverse of its share."""
    return 1 / guided_share(values)


def mean_log_isotropic(coordinates: int) -> float:
    r"""The mean of :math:`\log(|\langle\xi, e\rangle|/\|\xi\|)` for independent noise, a beta law's logarithm."""
    return float(digamma(0.5) - digamma(coordinates / 2)) / 2


def mean_log_guided(values: NDArray[np.floating], draws: int = 20000) -> float:
    """The same for the guided push, by Monte Carlo over its independent parts along the eigenvectors."""
    kept = values[np.abs(values) > 1e-9 * np.abs(values).max()]
    part = (np.random.default_rng(0).standard_normal((draws, kept.size)) * kept) ** 2
    return float(np.log(part[:, kept.argmin()] / part.sum(1)).mean() / 2)


def head_start(values: NDArray[np.floating], coordinates: int) -> float:
    r"""By how many units :math:`1/|\lambda_{\min}|` a guided push of equal length escapes earlier, in the mean.

    Roughly half the logarithm of Np over the effective rank; negative if the rank is larger than Np.
    """
    return mean_log_guided(values) - mean_log_isotropic(coordinates)
