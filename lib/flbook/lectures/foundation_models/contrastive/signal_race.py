r"""Closed forms of contrastive pre-training on signal and noise: first losses, growth rates, and who wins the race.

While all similarities are small, the softmax gives each of M negatives and the partner the weight 1/(M + 1). Then, for
opposite labels as negatives and noise patches of squared length :math:`\sigma_\xi^2 d` orthogonal to each other and to
the signals, each step multiplies

.. math::
    \text{signal, one modality:}\quad & 1 + a, \qquad a = \frac{\eta}{2\tau}\frac{M}{M+1}\|\mu\|^2 \\
    \text{signal, two modalities:}\quad & 1 + C_\mu a, \qquad C_\mu = \|\tilde\mu\|/\|\mu\| \\
    \text{noise, either way:}\quad & 1 + b, \qquad b = \frac{\eta}{n\tau}\frac{M}{M+1}\sigma_\xi^2 d

The signal grows faster if and only if the product :math:`n\,\mathrm{SNR}\,\widetilde{\mathrm{SNR}}` is above 2.

Source: derived in the lecture.
"""

import math

from scipy.special import ndtr

from flbook.domains import Count, NonNegative, Positive, checked_arguments


@checked_arguments
def first_loss(negatives: Count, directions: Count = 1) -> float:
    """The loss of an encoder whose features are all equal: a guess among the partner and its negatives.

    Examples
    --------
    >>> first_loss(1) == math.log(2)
    True
    """
    return directions * math.log1p(negatives)


@checked_arguments
def signal_rate(product: Positive, lr: Positive, negatives: Count, temperature: Positive = 1.0) -> float:
    r"""What each step adds, relatively, to the response to the signal.

    Parameters
    ----------
    product
        Of the two views' signal strengths: :math:`\|\mu\|^2` for one modality, :math:`\|\mu\|\|\tilde\mu\|` for two.
    lr, negatives, temperature
        Step size, negatives of an anchor, and what divides the similarities.

    Examples
    --------
    >>> round(signal_rate(25.0, lr=0.01, negatives=50), 6)
    0.122549
    """
    return lr / (2 * temperature) * negatives / (negatives + 1) * product


@checked_arguments
def noise_rate(square: Positive, n: Count, lr: Positive, negatives: Count, temperature: Positive = 1.0) -> float:
    r"""The same for the responses to noise patches of squared length `square` of n samples.

    Examples
    --------
    >>> round(noise_rate(2000.0, 100, lr=0.01, negatives=50), 6)
    0.196078
    """
    return lr / (n * temperature) * negatives / (negatives + 1) * square


@checked_arguments
def pure_signal_accuracy(nu_norm: NonNegative, sigma_xi: Positive = 1.0) -> float:
    r"""Accuracy of a linear classifier on neurons that are all along :math:`\pm\mu`, features summed over patches.

    .. math:: \Phi(\|\nu\|/\sigma_\xi)

    Such neurons give :math:`(z)_+` and :math:`(-z)_+`, summed over the patches, and the difference of the two sums is
    proportional to :math:`y\|\nu\| + \zeta_\mu`, with the noise :math:`\zeta_\mu` along the signal.

    Examples
    --------
    >>> round(pure_signal_accuracy(2.0), 4)
    0.9772
    """
    return float(ndtr(nu_norm / sigma_xi))


@checked_arguments
def averaging_accuracy(n: Count, d: Count, mu_norm: Positive, nu_norm: NonNegative, sigma_xi: Positive = 1.0) -> float:
    r"""Accuracy under :math:`\nu` of the labelled classifier :math:`\sum_i y_i x_i` on the patches side by side.

    .. math:: \Phi\big(\|\nu\|\|\mu\|\sqrt n/(\sigma_\xi^2\sqrt d)\big)

    up to terms of relative order :math:`d^{-1/2}`: it learns the signal patch exactly, and noise only adds to it.

    Examples
    --------
    >>> round(averaging_accuracy(100, 2000, 5.0, 2.0), 4)
    0.9873
    """
    return float(ndtr(nu_norm * mu_norm * math.sqrt(n / d) / sigma_xi**2))
