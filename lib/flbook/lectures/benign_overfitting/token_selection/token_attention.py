"""Token selection by attention: a trained query decides which tokens a fixed head gets to read."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook.domains import Seeds, checked_arguments
from flbook.models.cnn import initial_weights


class TokenAttention(nn.Module):
    r"""One query over L tokens, and a head that is not trained.

    .. math:: f(X) = \nu^\top X^\top\,\mathrm{softmax}(X W^\top \mathbf q)

    The query starts at 0: attention is uniform. What is trained: ``query`` of shape ``(*E, d)`` and, with
    ``train_keys=True``, ``w`` of shape ``(*E, d, d)``.

    Parameters
    ----------
    head
        :math:`\nu`, that of the data, ``data.head``.
    train_keys
        Is W trained too? It then starts uniform in :math:`\pm 1/\sqrt d` (PyTorch's default for a linear layer);
        otherwise it is the identity.
    seed
        One seed is one network; a tuple of seeds is an ensemble with one leading axis.
    dtype
        Of the parameters.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    Source: Sakamoto and Sato (2025), Section 3.
    """

    sample_axes = 2  # patches, coordinates

    @checked_arguments
    def __init__(
        self,
        head: Float[Tensor, " d"],
        train_keys: bool = False,
        seed: Seeds = 0,
        dtype: torch.dtype = torch.float32,
    ):
        super().__init__()
        d = head.shape[-1]
        members = (len(seed),) if isinstance(seed, tuple | list | range) else ()
        self.register_buffer("head", head.to(dtype))
        self.query = nn.Parameter(torch.zeros(*members, d, dtype=dtype))
        self.w = nn.Parameter(initial_weights(d, d, None, seed).to(dtype)) if train_keys else None

    def attention(self, x: Float[Tensor, "*#E n L d"]) -> Float[Tensor, "*E n L"]:
        """The weight of each token."""
        u = self.query if self.w is None else torch.einsum("...k,...kd->...d", self.query, self.w)
        return torch.einsum("...nld,...d->...nl", x, u).softmax(-1)

    def forward(self, x: Float[Tensor, "*#E n L d"]) -> Float[Tensor, "*E n"]:
        """The head's reading of the selected tokens, for n samples."""
        if x.shape[-1] != self.head.shape[-1]:
            raise ValueError(f"tokens of shape {tuple(x.shape)} do not fit a head of shape {tuple(self.head.shape)}")
        return (self.attention(x) * (x @ self.head)).sum(-1)
