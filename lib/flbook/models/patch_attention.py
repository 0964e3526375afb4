"""One layer of softmax self-attention with mean pooling: the vision transformer of the feature-learning papers."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook import rng
from flbook.domains import Count, NonNegative, Seeds, checked_arguments


class VisionTransformer(nn.Module):
    r"""Every token has a query and a key, and one value vector reads what attention gathers.

    .. math:: f(X) = \frac1L \sum_{\ell=1}^L \mathrm{softmax}(x_\ell^\top W_Q W_K^\top X^\top)\, X v,
              \qquad v = W_V w_o

    With :math:`w_o` fixed and of length 1, gradient descent on :math:`W_V` moves v exactly as gradient descent on v
    does, so v is trained instead, with ``q`` and ``k`` of shape ``(*E, d, h)``, ``v`` of shape ``(*E, d)``.

    Parameters
    ----------
    d, h
        Dimension of a token; width of queries and keys.
    sigma_0, sigma_v
        Standard deviations of the initial weights, all Gaussian: of queries and keys, and of v.
    seed
        One seed is one network; a tuple of seeds is an ensemble with one leading axis.
    dtype
        Of the parameters.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    Source: Jiang et al. (2024), Section 3.
    """

    sample_axes = 2  # patches, coordinates

    @checked_arguments
    def __init__(
        self,
        d: Count,
        h: Count = 8,
        sigma_0: NonNegative = 0.01,
        sigma_v: NonNegative = 0.001,
        seed: Seeds = 0,
        dtype: torch.dtype = torch.float32,
    ):
        super().__init__()
        start = initial_columns(d, h, sigma_0, sigma_v, seed).to(dtype)
        self.q, self.k = nn.Parameter(start[..., :h]), nn.Parameter(start[..., h : 2 * h])
        self.v = nn.Parameter(start[..., -1])

    def attention(self, x: Float[Tensor, "*#E n L d"]) -> Float[Tensor, "*E n L L"]:
        """Who (row) looks at whom (column): every row sums to one.

        Parameters
        ----------
        x
            Samples, shape ``(*#E, n, L, d)``.

        Returns
        -------
        Tensor
            Attention weights, shape ``(*E, n, L, L)``.
        """
        query, key = (torch.einsum("...nld,...dh->...nlh", x, w) for w in (self.q, self.k))
        return torch.einsum("...lh,...mh->...lm", query, key).softmax(-1)

    def forward(self, x: Float[Tensor, "*#E n L d"]) -> Float[Tensor, "*E n"]:
        """The network's output for n samples of L tokens.

        Parameters
        ----------
        x
            Samples, shape ``(*#E, n, L, d)``.

        Returns
        -------
        Tensor
            :math:`f(X)`, shape ``(*E, n)``.
        """
        if x.shape[-1] != self.v.shape[-1]:
            raise ValueError(f"tokens of shape {tuple(x.shape)} do not fit values of shape {tuple(self.v.shape)}")
        value = torch.einsum("...nld,...d->...nl", x, self.v)
        return torch.einsum("...nlm,...nm->...nl", self.attention(x), value).mean(-1)


def initial_columns(
    d: int, h: int, sigma_0: float, sigma_v: float, seed: int | tuple[int, ...]
) -> Float[Tensor, "*E d K"]:
    """The K = 2 h + 1 columns of (W_Q, W_K, v) before training.

    Parameters
    ----------
    d, h
        Dimension of a token; width of queries and keys.
    sigma_0, sigma_v
        Standard deviations of queries and keys, and of v.
    seed
        One number, or a tuple of them for an ensemble with one leading axis.

    Returns
    -------
    Tensor
        Columns in float64, shape ``(*E, d, K)``.
    """
    size = torch.tensor([sigma_0] * (2 * h) + [sigma_v], dtype=torch.float64)
    return rng.normal((d, 2 * h + 1), seed, "weights") * size
