"""The error of the averaging classifier, and the closed form of what a trained network comes close to."""

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import ndtr
from torch import Tensor

from flbook.dynamics.gram import GramTraining


def averaging_error(problem: GramTraining, sigma_xi: float = 1.0) -> Float[Tensor, "*E"]:
    r"""Exact test error of the averaging classifier on a problem's own training samples, in float64.

    With :math:`w = \frac1n\sum_i\tilde y_i(y_i\mu + \xi_i)` it is
    :math:`\Phi(-\langle w, \mu\rangle/(\sigma_\xi\|w\|))`.
    """
    g, observed = problem.gram.to(torch.float64), problem.observed.double()
    c, on_mu = observed / observed.shape[-1], (problem.y * observed).mean(-1)
    cross = torch.einsum("...n,...n->...", g.mu_xi, c)
    square = on_mu**2 * g.mu_mu + 2 * on_mu * cross + torch.einsum("...n,...np,...p->...", c, g.xi_xi, c)
    return torch.special.ndtr(-(on_mu * g.mu_mu + cross) / (sigma_xi * square.sqrt()))


def two_averages_error(r, flip_prob: float = 0.0, nodes: int = 200):
    r"""Test error of a network whose filters of one sign all carry every sample of their label, at small n SNR².

    .. math:: \tfrac12\Phi(-a) + \int_0^\infty \varphi(z)\,\Phi(-a - z)\,dz, \quad a = (1 - 2p)\sqrt{r/2}

    It is the chance that :math:`\max(Z', 0) - \max(Z, 0)` exceeds a, for independent standard normal numbers Z, Z'.

    Parameters
    ----------
    r
        :math:`n\|\mu\|^4/(\sigma_\xi^4 d)`, a number or an array.
    flip_prob
        Share p of flipped labels.
    nodes
        Of the quadrature, which ends at z = 12.

    Source: derived in the lecture.

    Examples
    --------
    >>> round(float(two_averages_error(0.0)), 6)  # with probability 1/4 both are zero
    0.375
    """
    a = (1 - 2 * flip_prob) * np.sqrt(np.asarray(r, dtype=float) / 2)
    place, weight = np.polynomial.legendre.leggauss(nodes)
    z, weight = 6 * (place + 1), 6 * weight
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return (ndtr(-a) / 2 + ndtr(-a[..., None] - z) @ (weight * density))[()]
