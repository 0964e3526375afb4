"""Exclusive or: what the angle between the clusters does, and what a fixed kernel makes of one patch."""

import numpy as np
from scipy.special import ndtr


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
