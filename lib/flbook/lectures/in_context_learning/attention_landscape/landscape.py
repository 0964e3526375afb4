r"""The landscape that features see below an attention layer at its optimum: slopes, rungs, the band, curvature.

With :math:`f = G h_\mu + \zeta` the regression of the true features on the learned ones,
:math:`S = E\zeta\zeta^\top` and :math:`L = \frac12\mathrm{tr}S`.
Towards a rotated teacher, :math:`\mu_s = (1-s)\mu + sR_\sharp\mu^\circ`,

.. math:: \frac{dL}{ds}\Big|_0 = -\mathrm{tr}(RSG), \qquad \min_{\|R\|\le1} = -\|SG\|_*, \qquad
          \frac{d^2L}{ds^2}\Big|_0 = -\mathrm{tr}(S R^\top\Sigma_{\mu\mu}^{-1} R S) \text{ where } SG = 0, GRS = 0 .

Leading axes of every array are an ensemble. numpy only.
Sources: Kim and Suzuki (2024), Lemma 3.1, Theorem 3.3, Proposition 3.4, appendix C.4; the exact forms are derived in
the lecture.
"""

import numpy as np
from numpy import ndarray

Number = float | np.floating | ndarray


def ladder(k: int) -> ndarray:
    """Critical levels j/(2k) of a teacher whose covariance is the identity over k, with j features missing."""
    if k < 1:
        raise ValueError(f"k must be at least 1, the number of true features; got {k}")
    return np.arange(k + 1) / (2 * k)


def steepest_slope(S: ndarray, G: ndarray) -> Number:
    """The derivative of L towards the best rotation of the teacher: minus the nuclear norm of S G."""
    return -np.linalg.svd(S @ G, compute_uv=False).sum(-1)


def best_rotation(S: ndarray, G: ndarray) -> ndarray:
    """The orthogonal matrix R that minimises -tr(R S G)."""
    u, _, vt = np.linalg.svd(S @ G)
    return np.swapaxes(u @ vt, -1, -2)


def arch_slope(loss: Number, k: int, bound: Number) -> Number:
    """Between two rungs: the slope is at most -(4/bound) (L - j/2k) ((j+1)/2k - L), for a teacher of covariance I/k.

    Proposition 3.4 is the lowest arch. `bound` is the paper's R_1^2, or, sharper, the spectral norm of the
    cross-covariance of true and learned features.
    """
    below = np.clip(np.floor(2 * k * np.asarray(loss) + 1e-9), 0, k - 1) / (2 * k)
    return -4 / bound * (loss - below) * (below + 1 / (2 * k) - loss)


def critical_rotation(G: ndarray) -> ndarray:
    """A rotation R with G R S = 0 wherever S G = 0: V U^T of G = U D V^T."""
    u, _, vt = np.linalg.svd(G)
    return np.swapaxes(u @ vt, -1, -2)


def curvature(S: ndarray, R: ndarray, covariance: ndarray) -> Number:
    """The second derivative towards the teacher turned by R, at a critical point with G R S = 0."""
    moved = R @ S
    return -np.einsum("...ij,...ij->...", moved, np.linalg.solve(covariance, moved))
