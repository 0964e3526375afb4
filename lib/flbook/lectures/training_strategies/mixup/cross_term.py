r"""Growth of a common and a rare feature while all outputs are small, with and without the cross term of Mixup.

For a filter of sign + let a_v and a_u be its responses to the two features of its label. A step of size η multiplies
them by :math:`I + \frac{\eta}{2m}B`,

.. math:: B = \kappa\begin{pmatrix}1-\rho&0\\0&\rho\end{pmatrix}
            + q\begin{pmatrix}1-\rho\\\rho\end{pmatrix}\begin{pmatrix}1-\rho&\rho\end{pmatrix}, \qquad
          q = \lambda_x(1-\lambda_x), \quad \kappa = \lambda_y\lambda_x^2 + (1-\lambda_y)(1-\lambda_x)^2.

Derived on this lecture's page.
"""

import math

import numpy as np

from flbook.domains import Probability, checked_arguments


@checked_arguments
def weights(input_weight: Probability, label_weight: Probability) -> tuple[float, float]:
    """κ, of a sample with itself, and q, of a sample with another.

    Examples
    --------
    >>> [round(number, 2) for number in weights(0.6, 0.6)], weights(1.0, 1.0)
    ([0.28, 0.24], (1.0, 0.0))
    """
    own, other = input_weight**2, (1 - input_weight) ** 2
    return label_weight * own + (1 - label_weight) * other, input_weight * (1 - input_weight)


def rates(share: float, input_weight: float, label_weight: float) -> np.ndarray:
    """The matrix B, the common feature first."""
    own, cross = weights(input_weight, label_weight)
    shares = np.array([1 - share, share])
    return own * np.diag(shares) + cross * np.outer(shares, shares)


def fastest(share: float, input_weight: float, label_weight: float) -> tuple[float, float]:
    """The largest eigenvalue of B, and a_u/a_v in its direction.

    Examples
    --------
    >>> fastest(0.1, 1.0, 1.0)  # standard training: the common feature alone
    (0.9, 0.0)
    """
    values, vectors = np.linalg.eigh(rates(share, input_weight, label_weight))
    common, rare = vectors[:, -1]
    return float(values[-1]), float(rare / common) if common else math.inf
