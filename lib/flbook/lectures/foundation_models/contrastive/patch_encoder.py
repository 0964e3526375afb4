"""An encoder of patches: a network that turns an input into features and answers nothing yet."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook import rng
from flbook.domains import Count, Positive, Seeds, checked_arguments


class PatchEncoder(nn.Module):
    r"""A ReLU layer that every patch meets, with features :math:`h_r(x^{(p)}) = \max(\langle w_r, x^{(p)}\rangle, 0)`.

    Parameters
    ----------
    d
        Dimension of a patch.
    m
        Neurons.
    sigma_0
        Standard deviation of an initial weight.
    seed
        A tuple of seeds gives an ensemble, one leading axis of the weights.
    role
        Of the draw; a second modality has its own.
    dtype
        Of the weights.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Source: Huang et al. (2024), section 3.

    Examples
    --------
    >>> encoder = PatchEncoder(d=20, m=3, seed=(0, 1))
    >>> encoder(torch.ones(2, 5, 4, 20)).shape  # five samples of four patches
    torch.Size([2, 5, 4, 3])
    """

    sample_axes = 2  # patches, coordinates

    @checked_arguments
    def __init__(self, d: Count, m: Count = 50, sigma_0: Positive = 0.001, seed: Seeds = 0, role: str = "weights",
                 dtype: torch.dtype = torch.float32):
        super().__init__()
        self.w = nn.Parameter((sigma_0 * rng.normal((m, d), seed, role)).to(dtype))

    def forward(self, x: Float[Tensor, "*E n P d"]) -> Float[Tensor, "*E n P m"]:
        """Features of every patch."""
        return torch.einsum("...npd,...md->...npm", x, self.w).relu()

    def flat(self, x: Float[Tensor, "*E n P d"]) -> Float[Tensor, "*E n k"]:
        """The features of all patches one after the other: their inner products are patch-wise similarities."""
        return self(x).flatten(-2)

    def embedding(self, x: Float[Tensor, "*E n P d"]) -> Float[Tensor, "*E n m"]:
        """What a classifier downstream is given: features summed over patches."""
        return self(x).sum(-2)
