r"""The first stage of a vision transformer in closed form: attention still nearly uniform, values and scores growing.

With :math:`a = n\,\mathrm{SNR}^2` and L tokens, values grow as in mean pooling, to the margin z. Queries and keys
grow by a factor :math:`e^G` that depends on a, L and z only:

.. math:: G = \frac{(a - 2)\,z^2}2\,\frac{L\sqrt{c_K}}{c_Q^{3/2}}, \qquad c_Q = a + 2(L-1), \quad
          c_K = \frac{(L-1)(a(L-1) + 2)}{L^2}

Source: derived in the lecture on the vision transformer.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import wrightomega


def rates(n_snr2, tokens):
    """c_Q and c_K: how fast the sum of a sample's queries, and the lead of the signal's key, follow each other."""
    rest = tokens - 1
    return n_snr2 + 2 * rest, rest * (n_snr2 * rest + 2) / tokens**2


def margin(n_snr2, tokens, rate, steps):
    r"""Margin of mean pooling after gradient flow with the step size ``rate * n * tokens``.

    Solves :math:`z + e^z = 1 + \frac{\kappa c_Q t}{2L}` for z, with the rate :math:`\kappa`.
    """
    return np.log(wrightomega(1 + rate * rates(n_snr2, tokens)[0] * steps / (2 * tokens)))


def growth(n_snr2, tokens, z):
    """G, the logarithm of the factor by which the growing mode of queries and keys has grown at the margin z."""
    fast, slow = rates(n_snr2, tokens)
    return (n_snr2 - 2) * z**2 / 2 * tokens * slow**0.5 / fast**1.5


def score_gap(u, w, n_snr2, tokens, z):
    r"""By how much the mean query scores the signal above the mean noise token, at the margin z.

    u, w: sum of a sample's queries and lead of the signal's key over the mean key before training, each the mean over a
    class: DataArrays with the dimension ``component``, which is summed over.
    """
    fast, slow = rates(n_snr2, tokens)
    grows = (u / fast**0.5 + w / slow**0.5) / 2
    falls = (u / fast**0.5 - w / slow**0.5) / 2
    factor = np.exp(2 * growth(n_snr2, tokens, z))
    length = (fast * slow) ** 0.5
    return length * ((grows**2).sum("component") * factor - (falls**2).sum("component") / factor) / (tokens - 1)


def log_fresh_score(n_snr2, n, tokens, z, h, sigma_0):
    """Log of the score that a fresh signal token gives itself over noise, once the growing mode is far ahead."""
    fast, slow = rates(n_snr2, tokens)
    share = n_snr2**2 * (1 - 1 / tokens) / (fast * slow) ** 0.5
    return np.log(share * sigma_0**2 * h / (2 * n)) + 2 * growth(n_snr2, tokens, z)


def border(n, tokens=16, rate=0.6, steps=400, h=4, sigma_0=0.01):
    r"""n SNR^2 at which a fresh signal token gives itself half of its attention; for three tokens or more.

    There its score is :math:`\log(L-1)`.

    Raises
    ------
    ValueError
        If there is no such strength between 2 and 10000.
    """

    def off(n_snr2):
        z = margin(n_snr2, tokens, rate, steps)
        return log_fresh_score(n_snr2, n, tokens, z, h, sigma_0) - np.log(np.log(tokens - 1))

    return float(brentq(off, 2.0, 1e4))
