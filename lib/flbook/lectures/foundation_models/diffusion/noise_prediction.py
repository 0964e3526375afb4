r"""The two-layer denoiser with tied weights, in closed form: expected loss, first steps, and where training ends.

The network :math:`f(x) = \frac{1}{\sqrt m}\sum_r \sigma(\langle w_r, x\rangle)\,w_r` sees a patch with noise added,
:math:`\alpha x + \beta\epsilon`, and is to say what :math:`\epsilon\sim N(0, I_d)` was. With :math:`\sigma(z) = z^2` or
:math:`\sigma(z) = z` the expectation over :math:`\epsilon` asks for the responses :math:`\langle w_r, x\rangle` and the
inner products :math:`\langle w_r, w_l\rangle` only.

Source: Han et al. (2025a), Section 2, for the network and the loss; the closed forms are derived in the lecture.
"""

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.optimize import minimize

from flbook.domains import Count, Positive, checked_arguments

Array = Any  # of numpy or of torch


@checked_arguments
def noising(t: Positive) -> tuple[float, float]:
    r"""What is left of the data and what noise is added at diffusion time t: :math:`(e^{-t}, \sqrt{1 - e^{-2t}})`.

    Examples
    --------
    >>> alpha, beta = noising(0.2)
    >>> round(alpha, 4), round(alpha**2 + beta**2, 12)
    (0.8187, 1.0)
    """
    return math.exp(-t), math.sqrt(-math.expm1(-2 * t))


def expected_loss(
    z: Array, gram: Array, share: Array, alpha: float, beta: float, d: int, power: Literal[1, 2] = 2
) -> Array:
    r"""Expected error of the predicted noise, :math:`\sum_x p_x\,E\|f(\alpha x + \beta\epsilon) - \epsilon\|^2`.

    For the square, with :math:`A_r = \alpha\langle w_r, x\rangle` and :math:`E_r = A_r^2 + \beta^2 G_{rr}`, a patch
    costs

    .. math:: d - \frac{4\beta}{\sqrt m}\sum_r A_r G_{rr}
              + \frac1m\sum_{rl} G_{rl}\big[E_r E_l + 4\beta^2 G_{rl} A_r A_l + 2\beta^4 G_{rl}^2\big].

    Parameters
    ----------
    z
        Responses :math:`\langle w_r, x\rangle`, shape ``(*E, m, N)``.
    gram
        Inner products G of the neurons, shape ``(*E, m, m)``.
    share
        Weight :math:`p_x` of each patch, shape ``(N,)``: 2 in total for samples of two patches.
    alpha, beta
        Of the data and of the added noise, see `noising`.
    d
        Dimension of a patch.
    power
        Of the activation.

    Returns
    -------
    Array of numpy or of torch, as given, shape ``*E``.
    """
    m, a, own = z.shape[-2], alpha * z, gram.diagonal(0, -2, -1)
    if power == 1:
        each = (a * (gram @ a)).sum(-2) / m
        rest = beta**2 / m * (gram * gram).sum(-1).sum(-1) - 2 * beta / math.sqrt(m) * own.sum(-1)
    else:
        e, squares = a * a + beta**2 * own[..., None], gram * gram
        each = ((e * (gram @ e)).sum(-2) + 4 * beta**2 * (a * (squares @ a)).sum(-2)) / m
        each = each - 4 * beta / math.sqrt(m) * (own[..., None] * a).sum(-2)
        rest = 2 * beta**4 / m * (squares * gram).sum(-1).sum(-1)
    return (each * share).sum(-1) + share.sum() * (d + rest)


def first_increments(share: Array, square: Array, length: float, alpha: float, beta: float, m: int) -> Array:
    r"""What a small step adds to :math:`\langle w_r, x\rangle` near zero weights, in units of the step size.

    .. math:: \frac{4\alpha\beta}{\sqrt m}\,\|w_r\|^2\,p_x\,\|x\|^2

    for orthogonal patches x of squared length `square`, and neurons of squared length `length` that do not see them
    yet. It does not change while the weights are small: responses grow linearly.
    """
    return 4 * alpha * beta / math.sqrt(m) * length * share * square


class StationaryPoint(NamedTuple):
    """Where training ends: all neurons see the data alike, and their rests form a simplex."""

    signal: float  # s, every <w_r, mu_j>
    noise: float  # q, every <w_r, xi_i>
    own: float  # U, squared length of the part of a neuron that is orthogonal to the data
    length: float  # squared length of a neuron
    between: float  # inner product of two neurons
    gain: float  # the loss, less that of zero weights

    @property
    def ratio(self) -> float:
        """Signal over noise."""
        return self.signal / self.noise


def reduced_loss(
    s: float, q: float, own: float, mu: float, n_snr2: float, m: int, alpha: float = 1.0, beta: float = 1.0
) -> float:
    r"""The loss less 2d where every neuron responds by s to both signals and by q to all noise patches.

    .. math:: \sum_{z\in\{s,q\}}\Big\{-4\alpha\beta\sqrt m\,G z + G\big[E^2 + 4\alpha^2\beta^2 z^2 G + 2\beta^4 G^2\big]
              + (m-1)H\big[E^2 + 4\alpha^2\beta^2 z^2 H + 2\beta^4 H^2\big]\Big\},\quad E = \alpha^2 z^2 + \beta^2 G

    with :math:`G = D + U` the squared length of a neuron and :math:`H = D - U/(m-1)` the product of two, where
    :math:`D = (2s^2 + n\mathrm{SNR}^2\,q^2)/\|\mu\|^2`. U is `own`; U = 0 is the model within the span of the data.
    """
    data = (2 * s**2 + n_snr2 * q**2) / mu**2
    g, h = data + own, data - own / max(m - 1, 1)
    total = 0.0
    for z in (s, q):
        e, a = alpha**2 * z**2 + beta**2 * g, alpha * beta * z
        total += -4 * math.sqrt(m) * g * a + g * (e**2 + 4 * a**2 * g + 2 * beta**4 * g**2)
        total += (m - 1) * h * (e**2 + 4 * a**2 * h + 2 * beta**4 * h**2)
    return total


@checked_arguments
def stationary_point(
    mu: Positive, n_snr2: Positive, m: Count, alpha: Positive = 1.0, beta: Positive = 1.0, span_only: bool = False
) -> StationaryPoint:
    r"""The minimum of `reduced_loss`, for orthogonal patches, as many of one class as of the other.

    In the unit :math:`\beta^{-2/3}` of a weight only :math:`\alpha\|\mu\|/\beta` is left of the three numbers.

    Parameters
    ----------
    mu, n_snr2
        Signal strength and n times the squared signal-to-noise ratio.
    m
        Neurons.
    alpha, beta
        See `noising`.
    span_only
        Leave out what the neurons have orthogonal to the data, U = 0: wrong, and a rival.

    Examples
    --------
    >>> alpha, beta = noising(0.2)
    >>> round(stationary_point(5.0, 0.75, 20, alpha, beta).ratio, 3)
    0.779
    """
    strength, unit = alpha * mu / beta, beta ** (-2 / 3)

    def loss(log_of: np.ndarray) -> float:
        s, q, own = np.exp(log_of.clip(-30, 6))
        return reduced_loss(s, q, 0.0 if span_only else own, strength, n_snr2, m)

    starts = [np.log([z, z, 0.5]) for z in (0.1, 1.0)]
    found = [minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-14, "maxiter": 4000})
             for start in starts]
    s, q, own = np.exp(min(found, key=lambda one: one.fun).x)
    own = 0.0 if span_only else own
    data = (2 * s**2 + n_snr2 * q**2) / strength**2
    gain = reduced_loss(s, q, own, strength, n_snr2, m)
    back = unit * beta / alpha  # responses to x, from those to alpha x / beta
    return StationaryPoint(*map(float, (s * back, q * back, own * unit**2, (data + own) * unit**2,
                                        (data - own / max(m - 1, 1)) * unit**2, gain)))
