r"""The exchange law: the growth of noise tells that of the signal, for every power q of ReLU and every loss slope.

Each step of sample i grows its own noise response z and, as one of n/2 samples, the signal response u of its label's
filters. In gradient flow on orthogonal noise of one length, with :math:`\Psi(z) = \int dz\,z^{1-q}`,

.. math:: \Psi(u(t)) - \Psi(u(0)) = \frac{n\,\mathrm{SNR}^2}{2}\;
          \mathrm{mean}_i\big[\Psi(z_i(t)) - \Psi(z_i(0))\big].

Source: derived in the lecture on powers of ReLU.
"""

import math

import numpy as np
import torch

from flbook.dynamics.gram import GramTraining
from flbook.models.activations import ReLUPower
from flbook.shapes import signs
from flbook.training.problem import Params


def potential(z, q):
    r""":math:`\Psi(z) = \int dz\,z^{1-q}`: z for ReLU, the logarithm for its square, :math:`-1/z` for its cube.

    Parameters
    ----------
    z
        Responses; where they are not positive the answer is NaN, since the slope of ReLU^q is 0 there.
    q
        Power of ReLU, at least 1.

    Returns
    -------
    numpy.ndarray
        Of the shape of `z`.

    Examples
    --------
    >>> potential(np.array([0.5, 2.0]), 3).tolist(), float(potential(1.0, 2))
    ([-2.0, -0.5], 0.0)
    """
    z = np.asarray(z, dtype=float)
    inside = np.where(z > 0, z, np.nan)
    return np.log(inside) if q == 2 else inside ** (2 - q) / (2 - q)


def mean_response(z, q, axis=-1):
    r"""The mean of responses in which the law is a curve of two numbers: :math:`\Psi^{-1}(\mathrm{mean}\,\Psi(z))`.

    Parameters
    ----------
    z
        Responses.
    q
        Power of ReLU, at least 1: the arithmetic mean for 1, the geometric one for 2, the harmonic one for 3.
    axis
        Of the samples.

    Returns
    -------
    numpy.ndarray
        Of the shape of `z` without that axis.

    Examples
    --------
    >>> float(mean_response(np.array([1.0, 4.0]), 2)), float(mean_response(np.array([1.0, 3.0]), 3))
    (2.0, 1.5)
    """
    mean = potential(z, q).mean(axis)
    return np.exp(mean) if q == 2 else ((2 - q) * mean) ** (1 / (2 - q))


def signal_at(noise, u_0, noise_0, n_snr2, q):
    """The signal that the law says, when the mean noise response has grown from `noise_0` to `noise`.

    Parameters
    ----------
    noise
        Mean responses to noise, as `mean_response` takes them.
    u_0, noise_0
        Where signal and noise started.
    n_snr2
        n SNR^2.
    q
        Power of ReLU, at least 1.

    Returns
    -------
    numpy.ndarray
        Responses to the signal; infinity from where it has blown up.

    Examples
    --------
    >>> signal_at(np.array([0.5, 1.0]), 0.1, 0.5, 4.0, 2).round(3).tolist()
    [0.1, 0.4]
    """
    grown = potential(u_0, q) + n_snr2 / 2 * (potential(noise, q) - potential(noise_0, q))
    if q == 2:
        return np.exp(grown)
    if q < 2:
        return ((2 - q) * grown) ** (1 / (2 - q))
    return np.where(grown < 0, np.minimum(grown, -1e-300) * (2 - q), np.nan) ** (1 / (2 - q))


def margin_after(steps, lr):
    r"""The margin that a sample fitted by its noise reaches under ReLU^2: s with :math:`e^s = 4\kappa T s`, at least 1.

    Late :math:`\dot s = \frac2n g s` with :math:`g \approx 2e^{-s}`, hence :math:`4\kappa s e^{-s}` a step.

    Parameters
    ----------
    steps, lr
        T and :math:`\kappa = \eta\sigma_\xi^2 d/(nm)`.

    Returns
    -------
    float
        The margin s.

    Examples
    --------
    >>> round(margin_after(600, 0.05), 2)
    6.69
    """
    s = 1.0
    for _ in range(100):
        s = max(1.0, math.log(4 * lr * steps * s))
    return s


def square_forecast(problem: GramTraining, margin: float) -> Params:
    r"""What a network with ReLU^2 will have learned of the signal, from its initial weights alone.

    Under the square all filters of a label grow by one factor. So a label has one number, its output on the signal,
    :math:`S = \frac1m\sum_r u_r^2`, and each sample one, :math:`s_i = \frac1m\sum_r z_{i,r}^2`, over what starts above
    0. Training ends at a margin :math:`S + s_i = M`. With the exchange law S solves

    .. math:: \log\frac{S}{S(0)} = \frac{n\,\mathrm{SNR}^2}{2}\,
              \mathrm{mean}_i\Big[\log\frac{\max(M - S, s_i(0))}{s_i(0)}\Big].

    Parameters
    ----------
    problem
        With ReLU^2 and balanced classes. Memorised noise is left at 0.
    margin
        M, see `margin_after`.

    Returns
    -------
    Params
        Those of `problem`, with the signal learned.
    """
    if problem.activation != ReLUPower(2.0):
        raise ValueError(f"activation must be ReLU^2; got {problem.activation}")
    start, k = problem.start(), problem.gram.w_w.shape[-1]
    on_mu, on_xi = problem.preactivations(start)
    u = signs(k, on_mu) * on_mu
    strength = problem.gram.mu_mu[..., None] * on_xi.shape[-1] / problem.gram.xi_xi.diagonal(dim1=-2, dim2=-1)
    ends = []
    for label, rows in ((1, slice(0, k // 2)), (-1, slice(k // 2, k))):
        own = problem.y == label
        signal = problem.scale * u[..., rows].relu().square().sum(-1)
        noise = problem.scale * on_xi[..., rows, :][..., own].relu().square().sum(-2)
        half_a = strength[..., own].mean(-1) / 2
        ends.append((_balance(signal, noise, half_a, margin) / signal).sqrt()[..., None].expand_as(u[..., rows]))
    factor = torch.where(u > 0, torch.cat(ends, -1), 1.0)
    return start | {"mu": signs(k, u) * (factor - 1) * u / problem.gram.mu_mu[..., None]}


def _balance(signal: torch.Tensor, noise: torch.Tensor, half_a: torch.Tensor, margin: float) -> torch.Tensor:
    """The output on the signal at which every sample has the margin, by bisection in its logarithm."""
    low, high = signal.log(), torch.full_like(signal, margin).log().maximum(signal.log())
    for _ in range(60):
        middle = (low + high) / 2
        room = (margin - middle.exp())[..., None].maximum(noise)
        short = signal.log() + half_a * (room / noise).log().mean(-1) > middle
        low, high = torch.where(short, middle, low), torch.where(short, high, middle)
    return low.exp()
