"""Label noise: where the two stages of training exist, and where repeated training noise harms."""

import numpy as np


def first_stage_boundary(flip_prob):
    r"""Smallest :math:`n\,\mathrm{SNR}^2` at which flipped samples first follow their true label, :math:`1/(1 - 2p)`.

    In the limit of orthogonal noise (`orthogonal_noise`) the signal then starts faster than the noise
    of a sample that half of the filters see. Derived in the lecture on label noise.
    """
    return 1 / (1 - 2 * flip_prob)


def recycled_boundary(flip_prob):
    r"""Where the final error on repeated training noise falls from 1/2 to p/2: :math:`n\,\mathrm{SNR}^2 = 1/(1 - 4p)`.

    In the limit of orthogonal noise and long training; infinite for p of 1/4 and more. Derived in the lecture on label
    noise.
    """
    room = 1 - 4 * np.asarray(flip_prob, dtype=float)
    return np.where(room > 0, 1 / np.where(room > 0, room, 1), np.inf)[()]
