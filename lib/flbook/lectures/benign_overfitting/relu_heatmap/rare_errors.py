"""Rare errors of a trained network, by importance sampling, and the closed form of what its filters come close to."""

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import ndtr
from torch import Tensor

from flbook import measures
from flbook.dynamics.gram import GramTraining
from flbook.training.problem import Params


def rare_error(problem: GramTraining, params: Params, points: int = 1024) -> Float[Tensor, "*E"]:
    r"""Test error on true labels, however small: fresh noise is drawn where the network errs, and weighted back.

    A sample is missed where its noise excites the filters of the other sign. These answer to standard normal numbers g
    with a mean of :math:`\langle v, g\rangle`, so g is shifted along v until that mean equals the output on the signal,
    by t, and every point counts with the ratio of the densities, :math:`e^{-t\langle v, g\rangle/\|v\| - t^2/2}`.
    At t = 0 this is `flbook.measures.test_error`.

    Parameters
    ----------
    problem
        A network without bias, and with an activation that answers to what is positive.
    params
        Its coefficients after training.
    points
        Fresh noise patches for each sign, rounded up to a power of two.
    """
    size = problem.test_directions
    standard = measures.sobol_normal(points, size).to(problem.observed)
    columns = problem.fresh(params, torch.eye(size).to(standard))  # pre-activations are linear in g: (*E, size, k)
    z, missed = problem.fresh(params, standard), []
    for sign, signal in zip((1, -1), problem.signal_outputs(params), strict=True):
        v = columns @ (-sign * problem.a).clamp(min=0)
        length = v.norm(dim=-1).clamp(min=torch.finfo(v.dtype).tiny)
        t, along = (sign * signal / length).clamp(min=0), v / length[..., None]
        shift = t[..., None] * torch.einsum("...g,...gk->...k", along, columns)
        noise = problem.noise_outputs(params, z + shift[..., None, :])
        log_weight = -t[..., None] * torch.einsum("pg,...g->...p", standard, along) - t[..., None] ** 2 / 2
        wrong = sign * (signal[..., None] + noise) <= 0
        missed.append((wrong * log_weight.double().exp()).mean(-1))
    return (missed[0] + missed[1]) / 2


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
