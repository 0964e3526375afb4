"""The two-layer denoiser of the signal-noise papers: its second layer is the transpose of the first."""

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook.domains import Count, NonNegative, Seeds, checked_arguments
from flbook.models.cnn import initial_weights


class TiedDenoiser(nn.Module):
    r"""Of each patch the noise in it: :math:`f(x) = \frac{1}{\sqrt m}\sum_{r=1}^m \sigma(\langle w_r, x\rangle)\,w_r`.

    The same neurons meet every patch. Parameter: ``w`` of shape ``(*E, m, d)``.

    Parameters
    ----------
    d, m
        Dimension of a patch; neurons.
    sigma_0
        Standard deviation of the Gaussian initial weights.
    power
        Of the activation :math:`\sigma(z) = z^q`: 2, or 1 for a linear denoiser.
    seed
        One seed is one network; a tuple of seeds is an ensemble with one leading axis.
    dtype
        Of the parameters.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    Source: Han et al. (2025a), Section 2.

    Examples
    --------
    >>> TiedDenoiser(d=100, seed=(0, 1, 2))(torch.zeros(20, 2, 100)).shape  # three networks, 20 samples of two patches
    torch.Size([3, 20, 2, 100])
    """

    @checked_arguments
    def __init__(
        self,
        d: Count,
        m: Count = 20,
        sigma_0: NonNegative = 1e-3,
        power: Literal[1, 2] = 2,
        seed: Seeds = 0,
        dtype: torch.dtype = torch.float32,
    ):
        super().__init__()
        self.power = power
        self.w = nn.Parameter(initial_weights(d, m, sigma_0, seed).to(dtype))

    def forward(self, x: Float[Tensor, "*#E n P d"]) -> Float[Tensor, "*E n P d"]:
        """The noise that it finds in each patch."""
        if x.shape[-1] != self.w.shape[-1]:
            raise ValueError(f"patches of shape {tuple(x.shape)} do not fit neurons of shape {tuple(self.w.shape)}")
        z = torch.einsum("...npd,...rd->...npr", x, self.w)
        return torch.einsum("...npr,...rd->...npd", z**self.power, self.w) / math.sqrt(self.w.shape[-2])
