"""One attention layer over word-label pairs, and a two-layer head that reads the attended label."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook import rng
from flbook.domains import Count, NonNegative, Seeds, checked_arguments
from flbook.shapes import Context, signs


class ConceptAttention(nn.Module):
    r"""Attention scores words, values are labels, a ReLU head reads them.

    .. math:: f(H) = r^\top \mathrm{ReLU}\Big(W_O \sum_\ell p_\ell\,y_\ell\Big), \qquad
              p = \mathrm{softmax}_\ell\big(x_\ell^\top W_K^\top W_Q\,x_q\big), \qquad r_i = \pm\tfrac1m

    What is trained: ``q`` and ``k`` of shape ``(*E, d, d)``, ``o`` of shape ``(*E, m, d)``.

    Parameters
    ----------
    d, m
        Coordinates of a word or label; neurons of the head, an even number.
    start, spread
        Queries and keys start at ``start`` times the identity plus entries :math:`N(0, \mathrm{spread}^2/d)`.
    head
        Standard deviation of the head's entries at the start.
    mirrored
        The number of concepts K, whose d_k are the axes K to 2K - 1: the second half of the neurons then reads labels
        reflected in the directions d_k of the first half, so that the output changes its sign with the labels'
        contrast, exactly. None leaves the head random.
    seed
        One seed is one network; a tuple of seeds is an ensemble with one leading axis.
    dtype
        Of the parameters.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or m is odd.

    Source: Bu et al. (2024), equation for f as on the tutorial's slide.
    """

    @checked_arguments
    def __init__(
        self,
        d: Count,
        m: Count = 64,
        start: float = 0.3,
        spread: NonNegative = 0.0,
        head: NonNegative = 0.1,
        seed: Seeds = 0,
        mirrored: Count | None = None,
        dtype: torch.dtype = torch.float32,
    ):
        super().__init__()
        check_head(m)
        keys, queries = (start * torch.eye(d, dtype=torch.float64) + spread / d**0.5 * rng.normal((d, d), seed, role)
                         for role in ("keys", "queries"))
        output = head * rng.normal((m, d), seed, "head")
        if mirrored is not None:
            half = output[..., : m // 2, :]
            other = half.clone()
            other[..., mirrored : 2 * mirrored] *= -1
            output = torch.cat([half, other], -2)
        self.q, self.k, self.o = (nn.Parameter(part.to(dtype)) for part in (queries, keys, output))

    def attention(self, context: Context, query: Float[Tensor, "*#E b 1 d"]) -> Float[Tensor, "*E b n"]:
        """Weight of each example; the last ensemble axis of the prompts is their batch b."""
        return attention(self.q, self.k, context, query)

    def forward(self, context: Context, query: Float[Tensor, "*#E b 1 d"]) -> Float[Tensor, "*E b 1"]:
        """The output for each prompt; its sign is the prediction."""
        if query.shape[-1] != self.q.shape[-1]:
            raise ValueError(f"words of shape {tuple(query.shape)} do not fit queries of shape {tuple(self.q.shape)}")
        read = torch.einsum("...bn,...bni->...bi", self.attention(context, query), context.y)
        return head(self.o, read)[..., None]


def check_head(m: int) -> None:
    """Refuse a number of neurons that does not split into halves."""
    if m < 2 or m % 2:
        raise ValueError(f"m must be even and at least 2, half of the neurons of either sign; got {m}")


def attention(q: Tensor, k: Tensor, context: Context, query: Tensor) -> Tensor:
    """Softmax over the examples of the scores x_l^T W_K^T W_Q x_q, shape (*E, b, n)."""
    u = torch.einsum("...hi,...bi->...bh", q, query[..., 0, :])
    u = torch.einsum("...hi,...bh->...bi", k, u)
    return torch.einsum("...bni,...bi->...bn", context.x, u).softmax(-1)


def head(o: Tensor, read: Float[Tensor, "*E b d"]) -> Float[Tensor, "*E b"]:
    """The ReLU head: its first half of neurons votes for +1, the second for -1."""
    z = torch.einsum("...mi,...bi->...bm", o, read).relu()
    return torch.einsum("...bm,m->...b", z, signs(z.shape[-1], z) / z.shape[-1])


class PromptAverages(nn.Module):
    r"""A linear classifier that sees no pairs: the query, the mean word and the mean label, each with its own weights.

    .. math:: f(H) = \langle w_1, x_q\rangle + \langle w_2, \bar x\rangle + \langle w_3, \bar y\rangle

    Parameter: ``w`` of shape ``(*E, 3, d)``, started at 0.
    """

    @checked_arguments
    def __init__(self, d: Count, members: Sequence[int] = (), dtype: torch.dtype = torch.float32):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(*members, 3, d, dtype=dtype))

    def forward(self, context: Context, query: Float[Tensor, "*#E b 1 d"]) -> Float[Tensor, "*E b 1"]:
        """The output for each prompt."""
        parts = torch.stack([query[..., 0, :], context.x.mean(-2), context.y.mean(-2)], -2)
        return torch.einsum("...bci,...ci->...b", parts, self.w)[..., None]


@dataclass(frozen=True)
class SimilarWords:
    r"""A rule without training: the label of the nearest word, or a softmax average over similarity.

    .. math:: f(H) = \sum_\ell p_\ell\,\langle v, y_\ell\rangle, \qquad
              p = \mathrm{softmax}_\ell\big(\mathrm{scale}\,\langle x_\ell, x_q\rangle\big)

    v, ``code``: what says the sign of a label. With ``scale=None`` all weight is on the word at the least distance.
    """

    code: Float[Tensor, " d"]
    scale: float | None = None

    def __call__(self, context: Context, query: Float[Tensor, "*#E b 1 d"]) -> Float[Tensor, "*E b 1"]:
        """The output for each prompt."""
        sign = torch.einsum("...bni,i->...bn", context.y, self.code.to(query))
        if self.scale is None:
            nearest = (context.x - query).square().sum(-1).argmin(-1, keepdim=True)
            return sign.gather(-1, nearest)
        scores = self.scale * torch.einsum("...bni,...bi->...bn", context.x, query[..., 0, :])
        return (scores.softmax(-1) * sign).sum(-1, keepdim=True)


@dataclass(frozen=True)
class KnownConcepts:
    r"""A rule without training that knows all directions, and reads from the examples what the words mean.

    .. math:: f(H) = \mathrm{sign}\Big(\sum_\ell\langle b_k, x_\ell\rangle\langle d_k, y_\ell\rangle\Big)\,
              \langle b_k, x_q\rangle

    for the concept k whose :math:`a_k` the words show most. ``words``: the vectors a, b, c, d of each concept.
    """

    words: Float[Tensor, "4 K d"]

    def __call__(self, context: Context, query: Float[Tensor, "*#E b 1 d"]) -> Float[Tensor, "*E b 1"]:
        """The output for each prompt."""
        a, b, _, d = self.words.to(query)
        shown = torch.einsum("...bi,ki->...bk", context.x.sum(-2) + query[..., 0, :], a).argmax(-1)
        b, d = b[shown], d[shown]
        meaning = torch.einsum("...bni,...bi,...bnj,...bj->...b", context.x, b, context.y, d).sign()
        return (meaning * (query[..., 0, :] * b).sum(-1))[..., None]
