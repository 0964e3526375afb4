"""Estimators: classifiers written down in one line, with nothing to train."""

import torch
from jaxtyping import Float
from torch import Tensor


def averaging(x: Float[Tensor, "*E n d"], observed: Float[Tensor, "*E n"]) -> Float[Tensor, "*E d"]:
    r"""The averaging classifier :math:`w = \sum_i \tilde y_i x_i`; it predicts the sign of :math:`\langle w, x\rangle`.

    Source: derived in the lecture on the data model.
    """
    return torch.einsum("...n,...nd->...d", observed, x)


def weighted_second_moment(x: Float[Tensor, "*E n d"], weight: Float[Tensor, "*E n"]) -> Float[Tensor, "*E d d"]:
    r"""The matrix :math:`\frac1n\sum_i T_i x_i x_i^\top`; its top eigenvector is the spectral estimate of a direction.

    Source: Lu and Li (2020), equation (2).
    """
    return torch.einsum("...n,...nd,...nc->...dc", weight / x.shape[-2], x, x)
