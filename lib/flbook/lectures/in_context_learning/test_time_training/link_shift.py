r"""A link that shifts: :math:`\sigma_\theta = \cos\theta\,h_2 + \sin\theta\,h_3`, pretraining at :math:`\theta = 0`."""

import math

import numpy as np


def shifted_link(degrees: float) -> tuple[float, float, float, float]:
    r"""Hermite coefficients of :math:`\sigma_\theta`, of mean square 1 at every angle."""
    angle = math.radians(degrees)
    return (0.0, 0.0, math.cos(angle), math.sin(angle))


def fixed_risk(degrees, overlap=1.0):
    r"""Risk of the pretrained link :math:`h_2` along a direction of this overlap with the true one.

    .. math:: E\big(\sigma_\theta(\langle\beta, x\rangle) - h_2(\langle u, x\rangle)\big)^2
              = 2 - 2\cos\theta\,\langle u, \beta\rangle^2

    At overlap 1 it is the floor that no number of examples lowers while the output layer stays fixed.
    """
    return 2 - 2 * np.cos(np.radians(degrees)) * np.asarray(overlap, float) ** 2


def linear_floor(degrees):
    r"""What an attention whose matrix lets only pretraining's functions through keeps: :math:`\sin^2\theta`."""
    return np.sin(np.radians(degrees)) ** 2
