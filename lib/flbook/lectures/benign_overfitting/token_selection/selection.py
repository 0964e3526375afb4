"""Closed forms of token selection: what the head is worth, and which direction the query takes."""

import numpy as np
from scipy.special import ndtr


def uniform_attention_error(mu_norm, tokens=8, sigma_xi=1.0):
    r"""Error of a head that knows the signals under uniform attention, :math:`\Phi(-\|\mu\|/(\sigma_\xi\sqrt{2L}))`.

    Exact for token-selection data: hints at either class cancel, L noise values average. Derived in the lecture on
    token selection.
    """
    return ndtr(-mu_norm / (sigma_xi * np.sqrt(2 * tokens)))


def selection_ratio(n, mu_norm, d, flip_prob=0.2, tokens=8, sigma_xi=1.0):
    r"""How well a trained query tells the relevant token from noise: :math:`\langle u,\mu_y\rangle/(\sigma_\xi\|u\|)`.

    The direction of least norm that separates, in every training sample, the selected token (the relevant one; in a
    flipped sample an irrelevant one) from all others by a margin of 1, if noise vectors are orthogonal and weak hints
    are neglected: with :math:`A` the share of a clean sample's margin that the signal provides,

    .. math:: A = \frac{n_c(1 - 1/L) - n_f/L}{2\sigma_\xi^2 d/\|\mu\|^2 + n(1 - 1/L)}

    for :math:`n_f = pn` flipped and :math:`n_c = n - n_f` clean samples. Derived in the lecture on token selection.
    """
    flips, rest = flip_prob * n, 1 - 1 / tokens
    clean, noise = n - flips, sigma_xi**2 * d
    signal = (clean * rest - flips / tokens) / (2 * noise / mu_norm**2 + n * rest)
    of_clean = clean * rest * (1 - signal) ** 2
    of_flipped = flips * (rest + 2 * signal / tokens + rest * signal**2)
    square = 2 * signal**2 / mu_norm**2 + (of_clean + of_flipped) / noise
    return signal / (sigma_xi * np.sqrt(square))


def opposed_token_share(mu_norm, varrho=0.1, tokens=8, sigma_xi=1.0):
    r"""Chance that of all tokens of a flipped sample the opposed hint suits the wrong label best.

    The head's values are :math:`-1, -\varrho, +\varrho, 0, \dots` in units of :math:`1/\sqrt2`, each with noise of
    standard deviation :math:`\sigma_\xi/\|\mu\|`; the chance that the third is the largest is one integral.
    """
    z, weight = np.polynomial.hermite_e.hermegauss(80)
    unit = np.asarray(mu_norm, dtype=float)[..., None] / (sigma_xi * np.sqrt(2))
    beats = ndtr(z + (1 + varrho) * unit) * ndtr(z + 2 * varrho * unit) * ndtr(z + varrho * unit) ** (tokens - 3)
    return beats @ weight / np.sqrt(2 * np.pi)
