"""Exclusive or: what the angle between the clusters does, and what rivals of the network make of one patch."""

import numpy as np
from scipy.special import ndtr, ndtri


def network_angle(angle):
    r"""Signal of a trained ReLU network at an angle of the clusters, over that at 90 degrees: :math:`\sin^2\theta`.

    Its filters of one label grow along that label's direction until they no longer see the other's. Derived in the
    lecture on XOR.
    """
    return np.sin(np.radians(angle)) ** 2


def lazy_angle(angle):
    r"""The same for the lazy network of many filters, :math:`1 - \cos\theta + 2\cos\theta\,\theta/\pi`.

    Its kernel of two signals at an angle :math:`\varphi` is :math:`\|\mu\|^2\cos\varphi\,(\pi - \varphi)/2\pi`
    (Cho and Saul 2009, degree 0). Derived in the lecture on XOR.
    """
    theta = np.radians(angle)
    return 1 - np.cos(theta) + 2 * np.cos(theta) * theta / np.pi


def theorem_angle(angle):
    r"""The factor that the theorem puts beside the signal: :math:`1 - \cos\theta`. Source: Meng et al. (2024), 3.4."""
    return 1 - np.cos(np.radians(angle))


def one_patch_lazy_error(n, mu_norm, d):
    r"""Test error of the lazy network when cluster and noise share one patch, :math:`\Phi(-r/(\pi\sqrt{nd}))`.

    With n < d, d large, clusters at right angles and :math:`r = n\|\mu\|^4/(\sigma_\xi^4 d)`, in units of
    :math:`\sigma_\xi`. Derived in the lecture on XOR.
    """
    r = n * np.asarray(mu_norm, dtype=float) ** 4 / d
    return ndtr(-r / (np.pi * np.sqrt(n * d)))


def one_patch_kernel_error(n, mu_norm, d):
    r"""The same of the kernel :math:`\langle x, x'\rangle^2`, every sample pulling alike.

    .. math:: \Phi\Big(-\frac{\sqrt n\,\|\mu\|^4}{2\sqrt2\,\sqrt{d\,(d + \|\mu\|^4)}}\Big)

    For large d and n, in units of :math:`\sigma_\xi`. Derived in the lecture on XOR.
    """
    signal = np.asarray(mu_norm, dtype=float) ** 4
    return ndtr(-np.sqrt(n) * signal / (2 * np.sqrt(2 * d * (d + signal))))


def one_patch_kernel_border(n, d, error=0.25):
    r"""The :math:`\|\mu\|` at which the closed form above is this error.

    It solves :math:`x^2 = c\,(1 + x)` for :math:`x = \|\mu\|^4/(\sigma_\xi^4 d)`, with :math:`c = 8 z^2/n` and z the
    error's quantile.
    """
    c = 8 * ndtri(error) ** 2 / np.asarray(n, dtype=float)
    return (d * (c + np.sqrt(c**2 + 4 * c)) / 2) ** 0.25


def one_patch_components_error(n, mu_norm, d):
    r"""Test error of the principal components of the classes when cluster and noise share one patch.

    The component of a class of n/2 samples has with the cluster's direction a squared cosine

    .. math:: \kappa = \frac{1 - \gamma/\ell^2}{1 + \gamma/\ell}, \qquad \gamma = 2d/n, \quad \ell = \|\mu\|^2 - 1,

    or 0 where :math:`\ell \le \sqrt\gamma`, for large d and n in units of :math:`\sigma_\xi` (spiked covariances: Paul
    2007, Benaych-Georges and Nadakuditi 2012); there is no noise along u, hence the 1. Of two independent normal
    answers the wrong one is then the larger with the probability :math:`2\Phi(z)\Phi(-z)`,
    :math:`z = \|\mu\|\sqrt{\kappa/(2 - 2\kappa)}`.
    """
    mu_norm, gamma = np.asarray(mu_norm, dtype=float), 2 * d / np.asarray(n, dtype=float)
    spike = np.maximum(mu_norm**2 - 1, 1e-9)
    square = np.maximum((1 - gamma / spike**2) / (1 + gamma / spike), 0)
    z = mu_norm * np.sqrt(square / (2 - 2 * square))
    return 2 * ndtr(z) * ndtr(-z)
