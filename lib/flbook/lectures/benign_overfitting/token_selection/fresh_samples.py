r"""What fresh samples make of a trained query: their weights, and the test error by its exact law.

A fresh token meets the query in its signal and in a normal number. Given these, what the head reads in the sample is
normal: its noise is that of :math:`\nu`, less what the scores tell about it. So only L numbers a sample are drawn.
"""

import torch
from torch import Tensor

from flbook.lectures.benign_overfitting.shared.token_gram import TokenTraining
from flbook.training.problem import Params


def fresh_samples(problem: TokenTraining, params: Params, standard: Tensor) -> tuple[Tensor, Tensor]:
    r"""Weights of fresh samples of label +1 and -1, shape ``(*E, 2, points, L)``, and the test error, shape ``*E``.

    With scores :math:`\langle u, s_\ell\rangle + \sigma_\xi\|u\|\eta_\ell` and :math:`\rho` the cosine of u and the
    head, a sample of label +1 is misread with probability

    .. math:: \Phi\left(-\frac{\sum_\ell s_\ell\,(b_\ell^+ - b_\ell^-)\|\mu\|/\sqrt2 + \sigma_\xi\rho\,\eta_\ell}
              {\sigma_\xi\sqrt{(1 - \rho^2)\sum_\ell s_\ell^2}}\right) .

    standard: normal numbers eta, shape ``(points, L)``.
    """
    (signal, square), size = problem.direction(params), problem.gram.mu_norm
    length, sigma = square.sqrt(), problem.sigma_xi
    unit = (signal[..., 0] - signal[..., 1]) / (2**0.5 * size)  # of the query along the head
    cosine = torch.where(length > 0, unit / length.clamp(min=1e-300), 0.0)[..., None, None]
    eta, weights, wrong = standard.to(signal), [], []
    for label, pattern in zip((1, -1), problem.pattern.to(signal), strict=True):
        scores = torch.einsum("...c,lc->...l", signal, pattern)[..., None, :] + sigma * length[..., None, None] * eta
        weight = scores.softmax(-1)
        reads = size[..., None, None] * (pattern[:, 0] - pattern[:, 1]) / 2**0.5 + sigma * cosine * eta
        spread = sigma * ((1 - cosine[..., 0] ** 2) * weight.square().sum(-1)).sqrt()
        wrong.append(torch.special.ndtr(-label * (weight * reads).sum(-1) / spread).mean(-1))
        weights.append(weight)
    return torch.stack(weights, -3), (wrong[0] + wrong[1]) / 2
