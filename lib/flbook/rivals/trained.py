"""Rivals of a training problem: the same data, the same rule, and a model that learns no feature."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook.models.cnn import TwoLayerCNN
from flbook.shapes import signs
from flbook.training.problem import Problem

RIVALS = ("linear", "lazy", "frozen")
Rival = Literal["network", "linear", "lazy", "frozen"]


def rival(problem: Problem, name: str) -> Problem:
    """The rival of this name; "network" is the problem itself. Raises ValueError if the problem has no such rival.

    Parameters
    ----------
    problem
        The problem whose rival is wanted.
    name
        ``"network"``, ``"linear"``, ``"lazy"`` or ``"frozen"``.

    Returns
    -------
    Problem
        The rival on the same data.
    """
    return problem if name == "network" else getattr(problem, name)()


class FrozenCNN(nn.Module):
    """Random features for given images: the filters of a network stay as they are, its output weights train.

    Parameters
    ----------
    cnn
        The network before training.
    x
        Training samples, on which features get mean square 1, shape ``(*E, n, 2, d)``.
    """

    w: Tensor
    b: Tensor | None
    size: Tensor

    sample_axes = 2  # patches, coordinates

    def __init__(self, cnn: TwoLayerCNN, x: Float[Tensor, "*E n 2 d"]):
        super().__init__()
        self.activation = cnn.activation
        self.register_buffer("w", cnn.w.detach().flatten(-3, -2), persistent=False)
        self.register_buffer("b", None if cnn.b is None else cnn.b.detach().flatten(-2), persistent=False)
        self.register_buffer("size", torch.ones_like(self.w[..., :1, :1]), persistent=False)
        self.size = self.features(x).square().mean((-2, -1), keepdim=True).sqrt()  # so that any sigma_0 gives one rule
        self.a = nn.Parameter(cnn.scale * signs(self.w.shape[-2], self.w).expand(self.w.shape[:-1]).clone())

    def features(self, x: Float[Tensor, "*#E n P d"]) -> Float[Tensor, "*E n k"]:
        """Responses of the filters, summed over patches.

        Parameters
        ----------
        x
            Samples, shape ``(*#E, n, P, d)``.

        Returns
        -------
        Tensor
            Features, shape ``(*E, n, k)``.
        """
        z = torch.einsum("...npd,...kd->...npk", x, self.w)
        z = z if self.b is None else z + self.b[..., None, None, :]
        return self.activation(z).sum(-2) / self.size

    def forward(self, x: Float[Tensor, "*#E n P d"]) -> Float[Tensor, "*E n"]:
        """Outputs for n samples.

        Parameters
        ----------
        x
            Samples, shape ``(*#E, n, P, d)``.

        Returns
        -------
        Tensor
            Outputs, shape ``(*E, n)``.
        """
        return torch.einsum("...k,...nk->...n", self.a, self.features(x))
