r"""Denoisers of Gaussians with any covariance: one Gaussian is the best linear denoiser, one per class a mixture.

.. math:: \hat x_0(x) = \sum_k w_k(x)\big[m_k + \sqrt{\bar\alpha}\,S_k V_k^{-1}(x - \sqrt{\bar\alpha}\,m_k)\big], \qquad
          V_k = \bar\alpha S_k + (1 - \bar\alpha) I

With one Gaussian this is the Wiener filter, the denoiser that is best among the affine ones.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook.domains import NonNegative, checked_arguments
from flbook.lectures.foundation_models.denoising_from_scratch.point_mixture import noise_of


class GaussianDenoiser(NamedTuple):
    """A mixture of Gaussians, fitted to points, as a denoiser."""

    share: Float[Tensor, " k"]
    mean: Float[Tensor, "k d"]
    covariance: Float[Tensor, "k d d"]

    @classmethod
    @checked_arguments
    def fitted(cls, x: Float[Tensor, "n d"], group: Int[Tensor, " n"] | None = None,
               ridge: NonNegative = 0.0) -> "GaussianDenoiser":
        """Shares, means and covariances of the groups, or of all points; `ridge` is added to every variance."""
        group = torch.zeros(len(x), dtype=torch.long) if group is None else group
        parts = [x[group == k] for k in group.unique()]
        covariance = torch.stack([torch.cov(part.T, correction=0) for part in parts])
        share = torch.tensor([len(part) / len(x) for part in parts]).to(x)
        mean = torch.stack([part.mean(0) for part in parts])
        return cls(share, mean, covariance + ridge * torch.eye(x.shape[-1]).to(x))

    def denoise(self, x: Float[Tensor, "n d"], kept: float) -> Float[Tensor, "n d"]:
        r""":math:`E[x_0 | x_t = x]` under the mixture, where `kept` is :math:`\bar\alpha_t`."""
        root, logs, guesses = math.sqrt(kept), [], []
        for share, mean, covariance in zip(*self, strict=True):
            factor = torch.linalg.cholesky(kept * covariance + (1 - kept) * torch.eye(len(mean)).to(x))
            rest = (x - root * mean).T
            solved = torch.cholesky_solve(rest, factor)
            logs.append(share.log() - (rest * solved).sum(0) / 2 - factor.diagonal().log().sum())
            guesses.append(mean + root * (covariance @ solved).T)
        weight = torch.softmax(torch.stack(logs), 0)
        return (weight[..., None] * torch.stack(guesses)).sum(0)

    def noise(self, x: Float[Tensor, "n d"], kept: float) -> Float[Tensor, "n d"]:
        """The expected noise under the mixture."""
        return noise_of(x, self.denoise(x, kept), kept)
