"""Estimators: classifiers written down in one line, with nothing to train."""

import torch
from jaxtyping import Float
from torch import Tensor


def averaging(x: Float[Tensor, "*E n d"], observed: Float[Tensor, "*E n"]) -> Float[Tensor, "*E d"]:
    r"""The averaging classifier :math:`w = \sum_i \tilde y_i x_i`; it predicts the sign of :math:`\langle w, x\rangle`.

    Source: derived in the lecture on the data model.
    """
    return torch.einsum("...n,...nd->...d", observed, x)
