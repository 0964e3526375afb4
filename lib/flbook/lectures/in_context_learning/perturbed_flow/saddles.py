r"""How much of a random push points along the one direction in which a saddle falls, and what that is worth.

A push with the part c along the unstable direction e, of eigenvalue :math:`\lambda_{\min} < 0`, grows like
:math:`c\,e^{|\lambda_{\min}|t}`, so escape takes :math:`(C_\pm - \log|c|)/|\lambda_{\min}|`, with a constant for either
side of the saddle. Derived in the lecture perturbed_flow.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def guided_share(values: NDArray[np.floating]) -> NDArray[np.floating]:
    r"""The part of the energy along e of a push with the covariance of the squared Hessian, of eigenvalues (*E, Np).

    .. math:: \frac{E\langle\xi, e\rangle^2}{E\|\xi\|^2} = \frac{\lambda_{\min}^2}{\sum_i \lambda_i^2} = \frac1r
    """
    return np.asarray(values.min(-1) ** 2 / (values**2).sum(-1))


def lead(share: ArrayLike, coordinates: int) -> NDArray[np.floating]:
    r"""By how many units :math:`1/|\lambda_{\min}|` a Gaussian push escapes earlier than independent noise.

    Of this share, equal mean energy, in the mean, in Np coordinates: :math:`\frac12\log(Np\,\text{share})`.
    """
    return np.asarray(np.log(coordinates * np.asarray(share)) / 2)


def krylov_share(values: NDArray[np.floating], products: int, seed: int) -> float:
    """The share of the direction that Lanczos finds from a random start with so many products with the Hessian.

    Worked out in the eigenbasis, where the Hessian is diagonal.
    """
    span, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal(values.size)[:, None])
    for _ in range(products):  # every product adds a direction, made orthogonal to those before
        span, _ = np.linalg.qr(np.column_stack([span, values * span[:, -1]]))
    _, vectors = np.linalg.eigh(span.T @ (values[:, None] * span))
    return float((span @ vectors[:, 0])[values.argmin()] ** 2)
