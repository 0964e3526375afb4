"""Phase variables, boundaries and closed forms of the signal-noise model, for numbers and arrays alike."""

from typing import Literal

import numpy as np
from scipy.special import ndtr

from flbook.domains import require


def kou_variable(n, mu_norm, d, sigma_xi=1.0):
    r"""The phase variable of ReLU networks, :math:`r = n\|\mu\|^4 / (\sigma_\xi^4 d)`.

    Parameters
    ----------
    n
        Training samples.
    mu_norm
        Signal strength :math:`\|\mu\|`.
    d
        Dimension of a patch.
    sigma_xi
        Standard deviation of a noise coordinate.

    Returns
    -------
    float or ndarray
        r, of the shape that the arguments broadcast to.

    Source: Kou et al. (2023), Theorem 4.2: overfitting is benign if r exceeds a constant, harmful if it is below one.

    Examples
    --------
    >>> kou_variable(n=20, mu_norm=2.0, d=160)
    2.0
    """
    return n * mu_norm**4 / (sigma_xi**4 * d)


def kou_boundary(n, d, sigma_xi=1.0, constant=1.0):
    r"""Signal strength on the boundary :math:`n\|\mu\|^4 = C\sigma_\xi^4 d`, that is :math:`\sigma_\xi (Cd/n)^{1/4}`.

    Parameters
    ----------
    n
        Training samples.
    d
        Dimension of a patch.
    sigma_xi
        Standard deviation of a noise coordinate.
    constant
        The constant C.

    Returns
    -------
    float or ndarray
        :math:`\|\mu\|`, of the shape that the arguments broadcast to.

    Source: Kou et al. (2023), Theorem 4.2.

    Examples
    --------
    >>> round(kou_boundary(n=10, d=160), 6)
    2.0
    """
    return sigma_xi * (constant * d / n) ** 0.25


def cao_variable(n, mu_norm, d, q, sigma_xi=1.0):
    r"""The phase variable of ReLU^q networks, :math:`n\,\mathrm{SNR}^q`.

    Parameters
    ----------
    n
        Training samples.
    mu_norm
        Signal strength :math:`\|\mu\|`.
    d
        Dimension of a patch.
    q
        Power of the activation.
    sigma_xi
        Standard deviation of a noise coordinate.

    Returns
    -------
    float or ndarray
        A number, or an array of the shape that the arguments broadcast to.

    Source: Cao et al. (2022), Theorems 4.3 and 4.4.
    """
    return n * (mu_norm / (sigma_xi * np.sqrt(d))) ** q


def averaging_error(n, mu_norm, d, flip_prob=0.0, sigma_xi=1.0):
    r"""Test error of the averaging classifier :math:`\sum_i \tilde y_i x_i` on one patch :math:`x = y\mu + \xi`.

    .. math:: \Phi\Big(-\frac{q n \|\mu\|^2}{\sigma_\xi\sqrt{n d \sigma_\xi^2 + (q n \|\mu\|)^2}}\Big), \quad q = 1 - 2p

    with exactly pn flips, up to terms of relative order :math:`1/\sqrt{d}` and :math:`1/(\sqrt n \|\mu\|)`; for
    :math:`n\,\mathrm{SNR}^2 \ll 1` it is :math:`\Phi(-(1 - 2p)\sqrt r)`.

    Parameters
    ----------
    n
        Training samples.
    mu_norm
        Signal strength :math:`\|\mu\|`.
    d
        Dimension.
    flip_prob
        Share p of flipped labels.
    sigma_xi
        Standard deviation of a noise coordinate.

    Returns
    -------
    float or ndarray
        A number, or an array of the shape that the arguments broadcast to.

    Source: derived in the lecture on the data model.

    Examples
    --------
    >>> float(averaging_error(n=10, mu_norm=0.0, d=100))
    0.5
    """
    signal = (1 - 2 * flip_prob) * n * mu_norm  # of the weights, along mu
    return ndtr(-signal * mu_norm / (sigma_xi * np.sqrt(n * d * sigma_xi**2 + signal**2)))


def random_filters_error(m, snr2, clusters=2):
    r"""Least test error that output weights on 2m random ReLU filters can have, however many samples they see.

    .. math:: \Phi\Big(-\sqrt{c\,m\,\mathrm{SNR}^2 / (1 - 1/\pi)}\Big)

    Class means lie :math:`\langle w_k, \mu\rangle` apart in feature k, or half of
    :math:`|\langle w_k, u\rangle| - |\langle w_k, v\rangle|` with four clusters at right angles; fresh noise has
    variance :math:`(1 - 1/\pi)\sigma_\xi^2\|w_k\|^2/2` there, independent for d large. Hence c = 1 for two clusters
    and :math:`(1 - 2/\pi)/2` for the four of XOR, on average over the filters, for a signal that is small against the
    noise: the linear discriminant.

    Parameters
    ----------
    m
        Half the filters.
    snr2
        :math:`\mathrm{SNR}^2`, a number or an array.
    clusters
        2, or 4 for XOR.

    Returns
    -------
    float or ndarray
        An error from 0 to 1/2, of the shape of `snr2`.

    Raises
    ------
    ValueError
        If the clusters are neither.

    Source: derived in the lectures on label noise and on XOR.

    Examples
    --------
    >>> float(random_filters_error(m=10, snr2=0.0))
    0.5
    """
    require("clusters", clusters, Literal[2, 4])
    c = 1.0 if clusters == 2 else (1 - 2 / np.pi) / 2
    return ndtr(-np.sqrt(c * m * np.asarray(snr2) / (1 - 1 / np.pi)))[()]
