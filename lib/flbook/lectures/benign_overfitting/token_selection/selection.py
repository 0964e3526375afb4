"""Closed forms of token selection: which tokens win, which direction the query takes, and what that does to the error.

All are derived in the lecture on token selection, for noise vectors that are orthogonal to each other.
"""

import numpy as np
import xarray as xr
from scipy.special import ndtr

from flbook import measures


def chance_of_largest(first, others):
    r"""The chance that the first of some independent normal numbers of variance 1 is the largest.

    One integral, :math:`\int\varphi(z)\prod_j\Phi(z + m_1 - m_j)\,dz`. first: its mean, an array. others: their means,
    a sequence of arrays.
    """
    z, weight = np.polynomial.hermite_e.hermegauss(100)
    lead = [np.asarray(first, float)[..., None] - np.asarray(mean, float)[..., None] for mean in others]
    return np.prod([ndtr(z + one) for one in np.broadcast_arrays(*lead)], axis=0) @ weight / np.sqrt(2 * np.pi)


def uniform_attention_error(mu_norm, tokens=8, sigma_xi=1.0):
    r"""Error of a head that knows the signals under uniform attention, :math:`\Phi(-\|\mu\|/(\sigma_\xi\sqrt{2L}))`.

    Exact for token-selection data: hints at either class cancel, L noise values average.
    """
    return ndtr(-mu_norm / (sigma_xi * np.sqrt(2 * tokens)))


def signal_shares(varrho=0.1, tokens=8):
    r"""How much of a signal each token carries: :math:`b = (1, \varrho, \varrho, 0, \dots)`."""
    return np.r_[1.0, varrho, varrho, np.zeros(tokens - 3)]


def head_shares(varrho=0.1, tokens=8):
    r"""What the head reads of it in each token, for the right label: :math:`(1, \varrho, -\varrho, 0, \dots)`."""
    return signal_shares(varrho, tokens) * np.r_[1, 1, -1, np.zeros(tokens - 3)]


def gain(mu_norm, flip_prob=0.2, varrho=0.1, tokens=8, sigma_xi=1.0):
    r"""What the chosen tokens of a training set carry of the signal, less what the mean token does: g.

    A sample chooses the token in which the head reads most for its observed label. In units of sigma_xi it reads
    :math:`m, \varrho m, -\varrho m, 0, \dots` for the right label, with :math:`m = \|\mu\|/(\sqrt2\sigma_\xi)`,
    minus that for a wrong one, and a normal number in each token.
    """
    m, carries = np.asarray(mu_norm, float) / (np.sqrt(2) * sigma_xi), signal_shares(varrho, tokens)
    reads, chosen = head_shares(varrho, tokens), 0.0
    for label, share in ((1, 1 - flip_prob), (-1, flip_prob)):
        for place in np.flatnonzero(carries):
            others = [label * m * read for read in np.delete(reads, place)]
            chosen = chosen + share * carries[place] * chance_of_largest(label * m * reads[place], others)
    return chosen - carries.mean()


def least_norm(n, mu_norm, d, flip_prob=0.2, varrho=0.1, tokens=8, sigma_xi=1.0):
    r"""Pull of the signal :math:`A = \langle u,\mu_\pm\rangle`, and length, of the least-norm query.

    It is the shortest one that gives the chosen token of every training sample (`gain`) a lead of 1 over the others.
    With :math:`c = 1 - 1/L` and :math:`b^2 = \sum_\ell b_\ell^2 - L\bar b^2` of `signal_shares`

    .. math:: A = \frac{g}{b^2 + 2/(n\,\mathrm{SNR}^2)}, \qquad \|u\|^2 = \frac{n}{\sigma_\xi^2 d}(c - gA).

    Holds for orthogonal noise vectors and :math:`A \le 1/(L\bar b)`.
    """
    carries, strength = signal_shares(varrho, tokens), n * mu_norm**2 / (sigma_xi**2 * d)
    chosen = xr.apply_ufunc(gain, mu_norm, flip_prob, varrho, tokens, sigma_xi)  # over an array with or without labels
    pull = chosen / (tokens * carries.var() + 2 / strength)
    return pull, np.sqrt(n / d * (1 - 1 / tokens - chosen * pull)) / sigma_xi


def selection_ratio(n, mu_norm, d, flip_prob=0.2, varrho=0.1, tokens=8, sigma_xi=1.0):
    r"""How well the least-norm query tells the relevant token from noise, :math:`R = A/(\sigma_\xi\|u\|)`."""
    pull, length = least_norm(n, mu_norm, d, flip_prob, varrho, tokens, sigma_xi)
    return pull / (sigma_xi * length)


def selected_share(ratio, varrho=0.1, tokens=8):
    """Share of fresh samples whose largest weight is on the relevant token, given the ratio R: one integral."""
    shares = np.r_[varrho, varrho, np.zeros(tokens - 3)]
    return xr.apply_ufunc(lambda pull: chance_of_largest(pull, [share * pull for share in shares]), ratio)


def hard_attention_error(ratio, mu_norm, varrho=0.1, tokens=8, sigma_xi=1.0):
    r"""Test error once all weight is on one token, :math:`\frac12(1 - S) + S\,\Phi(-\|\mu\|/(\sqrt2\sigma_\xi))`.

    S is `selected_share`; what is read in another token is right half of the time, hints at either class together.
    """
    share = selected_share(ratio, varrho, tokens)
    return (1 - share) / 2 + share * ndtr(-mu_norm / (np.sqrt(2) * sigma_xi))


def clock_error(time, n, mu_norm, d, flip_prob=0.2, varrho=0.1, tokens=8, points=2**12):
    r"""Test error at a late training time, :math:`\eta t`, for a query in the least-norm direction (sigma_xi = 1).

    The other tokens of a training sample hold a weight of about e to the minus lead, and the lead grows at that rate:

    .. math:: \lambda = \ln\Big(1 + \frac{L}{\sqrt2(1 + e^{1/\sqrt2})}\,\frac{\sigma_\xi^2 d\,\eta t}n\Big) .
    """
    rate = tokens / (np.sqrt(2) * (1 + np.exp(1 / np.sqrt(2))))
    lead = np.log1p(rate * np.asarray(time, float) * d / n)[..., None, None]
    pull, length = least_norm(n, mu_norm, d, flip_prob, varrho, tokens)
    carries = signal_shares(varrho, tokens)
    reads = head_shares(varrho, tokens) * mu_norm / np.sqrt(2)
    scores = lead * (pull * carries + length * measures.sobol_normal(points, tokens).numpy())
    weight = np.exp(scores - scores.max(-1, keepdims=True))
    return ndtr(-(weight * reads).sum(-1) / np.sqrt((weight**2).sum(-1))).mean(-1)
