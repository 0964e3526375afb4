"""One attention layer with a residual stream: a normalised task vector is added to the query word."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook import rng
from flbook.domains import Count, NonNegative, Positive, Seeds, checked_arguments


def unit(z: Tensor) -> Tensor:
    r"""Division by the length, :math:`z/\|z\|`."""
    return z / z.norm(dim=-1, keepdim=True)


class TaskVectorAttention(nn.Module):
    r"""Attention over all tokens before the query, added to the query as a vector of length one.

    .. math:: h_0 = W_V \sum_{\ell < L} p_\ell\,T_\ell, \quad
              p = \mathrm{softmax}_\ell\big(T_\ell^\top W_K^\top W_Q T_L\big), \qquad
              h = \mathrm{LN}(h_0) + T_L, \qquad \mathrm{LN}(z) = z/\|z\|

    and logits :math:`\tau\langle h, u\rangle` over a dictionary of answers u. Parameters ``q``, ``k``, ``v`` of shape
    ``(*E, d, d)``.

    Parameters
    ----------
    d
        Coordinates of a token.
    start
        Queries and keys start at so many times the identity.
    spread
        Standard deviation of the values at the start.
    sharpness
        :math:`\tau`.
    seed
        One seed is one network; a tuple of seeds is an ensemble with one leading axis.
    dtype
        Of the parameters.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    Source: Bu et al. (2025), Section 2, as reported; the factor of the logits is ours.
    """

    @checked_arguments
    def __init__(
        self,
        d: Count,
        start: float = 0.3,
        spread: NonNegative = 0.01,
        seed: Seeds = 0,
        sharpness: Positive = 4.0,
        dtype: torch.dtype = torch.float32,
    ):
        super().__init__()
        values = spread * rng.normal((d, d), seed, "values")
        same = start * torch.eye(d, dtype=torch.float64).expand_as(values)
        self.q, self.k, self.v = (nn.Parameter(part.to(dtype).clone()) for part in (same, same, values))
        self.sharpness = sharpness

    def attention(self, tokens: Float[Tensor, "*#E b L d"], query: Float[Tensor, "*#E b d"]) -> Float[Tensor, "*E b L"]:
        """Weight of each token."""
        u = torch.einsum("...hi,...bi->...bh", self.q, query)
        u = torch.einsum("...hi,...bh->...bi", self.k, u)
        return torch.einsum("...bli,...bi->...bl", tokens, u).softmax(-1)

    def task_vector(self, tokens: Float[Tensor, "*#E b L d"], query: Float[Tensor, "*#E b d"]) -> Tensor:
        """What attention adds to the residual, LN(h_0), shape ``(*E, b, d)``."""
        if tokens.shape[-1] != self.v.shape[-1]:
            raise ValueError(f"tokens of shape {tuple(tokens.shape)} do not fit values of shape {tuple(self.v.shape)}")
        read = torch.einsum("...bl,...bli->...bi", self.attention(tokens, query), tokens)
        return unit(torch.einsum("...ij,...bj->...bi", self.v, read))

    def forward(
        self, tokens: Float[Tensor, "*#E b L d"], query: Float[Tensor, "*#E b d"], answers: Float[Tensor, "A d"]
    ) -> Float[Tensor, "*E b A"]:
        """Logits of the answers."""
        return read_out(self.task_vector(tokens, query) + query, answers, self.sharpness)


class LinearRecall(nn.Module):
    r"""A linear classifier: :math:`\langle w_u, x_q\rangle + \langle w'_u, \bar T\rangle` of query and mean token.

    Parameter: ``w`` of shape ``(*E, 2, A, d)``, started at 0.
    """

    @checked_arguments
    def __init__(self, d: Count, answers: Count, members: Sequence[int] = (), dtype: torch.dtype = torch.float32):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(*members, 2, answers, d, dtype=dtype))

    def forward(
        self, tokens: Float[Tensor, "*#E b L d"], query: Float[Tensor, "*#E b d"], answers: Float[Tensor, "A d"]
    ) -> Float[Tensor, "*E b A"]:
        """Logits of the answers, whose vectors it does not look at."""
        summary = torch.stack([query, tokens.mean(-2)], -2)
        return torch.einsum("...bci,...cai->...ba", summary, self.w)


def read_out(h: Float[Tensor, "*E b d"], answers: Float[Tensor, "A d"], sharpness: float = 4.0) -> Tensor:
    """Logits of a dictionary, shape ``(*E, b, A)``: inner products, sharpened."""
    return sharpness * torch.einsum("...bi,ai->...ba", h, answers.to(h))
