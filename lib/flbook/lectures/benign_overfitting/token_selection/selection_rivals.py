"""Rivals of a trained query: the head's own values read by their likelihood, and a method that finds the signals."""

import numpy as np
import torch
from torch import Tensor

from flbook import measures
from flbook.lectures.benign_overfitting.shared.token_gram import TokenTraining
from flbook.lectures.benign_overfitting.token_selection.selection import head_shares


def head_values_error(mu_norm: np.ndarray, varrho: float = 0.1, tokens: int = 8, points: int = 2**15) -> np.ndarray:
    r"""Test error of the head's values alone, read by their likelihood: the sign of :math:`\sum_\ell\sinh(m h_\ell)`.

    In units of sigma_xi the head reads :math:`h_\ell`, of mean m in the relevant token, and does not know which it is.
    Nothing is trained. Integrated over quasi-random normal numbers.
    """
    m = np.asarray(mu_norm, float)[..., None, None] / np.sqrt(2)
    values = m * head_shares(varrho, tokens) + measures.sobol_normal(points, tokens).numpy()
    plus, minus = (np.logaddexp.reduce(sign * m * values, axis=-1) for sign in (1, -1))
    return (plus <= minus).mean(-1)


def spectral_error(problem: TokenTraining, d: int, flip_prob: float, points: int = 1024) -> Tensor:
    r"""Test error of signals found without head and without attention, shape ``*E``.

    Of each training sample take the token that is longest in the plane of the two leading eigenvectors of the tokens'
    Gram matrix. The means of these tokens over either observed label, unmixed for a share p of wrong labels, estimate
    :math:`\mu_\pm`; fresh samples are judged by :math:`\sum_\ell e^{\langle\hat\mu_y,x_\ell\rangle}`, shrunk by what
    the noise adds to the estimates.
    """
    gram, observed = problem.gram, problem.observed
    values, vectors = torch.linalg.eigh(gram.x_x)
    plane = (vectors[..., -2:] * values[..., None, -2:].sqrt()).unflatten(-2, (-1, problem.tokens))
    best = torch.nn.functional.one_hot(plane.square().sum(-1).argmax(-1), problem.tokens).to(observed)
    of = torch.stack([(observed == label).to(best) / (observed == label).sum() for label in (1, -1)])  # (2, n)
    mix = torch.tensor([[1 - flip_prob, -flip_prob], [-flip_prob, 1 - flip_prob]]).to(best) / (1 - 2 * flip_prob)
    weights = ((mix @ of)[..., None] * best[..., None, :, :]).flatten(-2)  # (*E, 2, N)
    overlaps = weights @ gram.x_x @ weights.mT  # of the two estimates
    along = weights @ gram.mu_x.mT  # with the two signals
    length = overlaps.diagonal(dim1=-2, dim2=-1)
    size = (length - problem.sigma_xi**2 * d * weights.square().sum(-1)).clamp(min=1e-3 * d**0.5)  # |mu|^2
    standard = measures.sobol_normal(points, 2 * problem.tokens).to(best).unflatten(-1, (-1, 2))
    root = torch.linalg.cholesky(overlaps + 1e-9 * length.amax(-1)[..., None, None] * torch.eye(2).to(best))
    noise = problem.sigma_xi * torch.einsum("plc,...ec->...ple", standard, root)
    wrong = []
    for label, pattern in zip((1, -1), problem.pattern.to(best), strict=True):
        seen = noise + torch.einsum("lc,...ec->...le", pattern, along)[..., None, :, :]
        shrunk = (size / length)[..., None, None, :] * seen / problem.sigma_xi**2
        evidence = (shrunk - 0.5 * (size**2 / length)[..., None, None, :]).logsumexp(-2)
        wrong.append((label * (evidence[..., 0] - evidence[..., 1]) <= 0).double().mean(-1))
    return torch.stack(wrong).mean(0)
