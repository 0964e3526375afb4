r"""A transformer of attention only, which predicts the next word: rotary positions, norms before each layer.

.. math:: h_t \leftarrow h_t + \sum_{\text{heads}} W_o \sum_{j\le t}
    \mathrm{softmax}_j\big(\langle R_t q_t, R_j k_j\rangle/\sqrt k\big) v_j,

queries, keys and values linear in the normed :math:`h`, and :math:`R_t` a rotation by angles that grow with t: scores
depend on two places by their distance only. With smeared keys :math:`k_j` is a mean of the keys of j and j - 1 with a
trained weight for each head.

Source: Elhage et al. (2021) for attention only, Olsson et al. (2022) for smeared keys, Su et al. (2021) for rotations.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from flbook import rng
from flbook.domains import Count, Positive, Seeds, checked_arguments
from flbook.models.transformer import linear


class WordTransformer(nn.Module):
    """The network; a tuple of seeds gives an ensemble, whose axis leads every parameter.

    Parameters
    ----------
    vocabulary, length
        Words, and the places of the longest window.
    width, layers, heads
        Coordinates of a place; layers, each of so many heads of width / heads coordinates.
    smeared
        Whether keys are means over two neighbours.
    sigma_0
        Standard deviation of all weights at the start.
    seed
        Of the start.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or ``width`` no multiple of twice ``heads``.

    Examples
    --------
    >>> network = WordTransformer(vocabulary=10, length=6, width=8, layers=2, heads=2, seed=(0, 1))
    >>> network(torch.zeros(2, 3, 6, dtype=torch.long)).shape
    torch.Size([2, 3, 6, 10])
    """

    @checked_arguments
    def __init__(self, vocabulary: Count, length: Count, width: Count = 128, layers: Count = 2, heads: Count = 4,
                 smeared: bool = False, sigma_0: Positive = 0.02, seed: Seeds = (0,)):
        super().__init__()
        if width % (2 * heads):
            raise ValueError(f"width must be a multiple of twice heads = {heads}; got {width}")
        self.heads = heads
        self.embedding = nn.Parameter(sigma_0 * rng.normal((vocabulary, width), seed, "words").float())
        asks = [linear(width, 3 * width, sigma_0, seed, f"layer {k} ask") for k in range(layers)]
        answers = [linear(width, width, sigma_0, seed, f"layer {k} answer") for k in range(layers)]
        self.ask, self.answer = nn.ModuleList(asks).float(), nn.ModuleList(answers).float()
        self.read_out = linear(width, vocabulary, sigma_0, seed, "read-out").float()
        members = self.embedding.shape[:-2]
        self.smear = nn.Parameter(torch.zeros(*members, layers, heads)) if smeared else None
        angles = torch.arange(length)[:, None] / 1000 ** (torch.arange(0, width // heads, 2) * heads / width)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def turned(self, x: Float[Tensor, "*B L k"]) -> Float[Tensor, "*B L k"]:
        """Pairs of coordinates rotated by the angles of their place."""
        a, b = x.chunk(2, -1)
        cos, sin = self.cos[: x.shape[-2]].to(x), self.sin[: x.shape[-2]].to(x)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    def parts(self, layer: int, x: Float[Tensor, "*S b L w"]) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of all heads, each ``(*S, b, h, L, k)``."""
        merged = self.ask[layer](x).unflatten(-1, (3, self.heads, -1))
        query, key, value = merged.movedim(-3, 0).transpose(-2, -3)
        if self.smear is not None:
            before = functional.pad(key, (0, 0, 1, 0))[..., :-1, :]
            part = self.smear[..., layer, :].sigmoid()[..., None, :, None, None].to(key)
            key = (1 - part) * key + part * before
        return self.turned(query), self.turned(key), value

    def forward(self, words: Int[Tensor, "*S b L"], kept: Float[Tensor, "layers heads"] | None = None,
                maps: list | None = None) -> Float[Tensor, "*S b L V"]:  # fmt: skip
        """Logits of the next word at every place.

        Parameters
        ----------
        words
            Numbers of words, shape ``(*S, b, L)``.
        kept
            What each head's output is multiplied by; all ones if None.
        maps
            A list that gets the attention of every layer, ``(*S, b, h, L, L)``.

        Returns
        -------
        Tensor
            Logits, shape ``(*S, b, L, V)``.
        """
        index = words.flatten(-2)[..., None].expand(*words.shape[:-2], -1, self.embedding.shape[-1])
        x = self.embedding.gather(-2, index).unflatten(-2, words.shape[-2:])
        for layer in range(len(self.ask)):
            query, key, value = self.parts(layer, normed(x))
            q, k, v = (part.flatten(0, -4) for part in (query, key, value))
            out = functional.scaled_dot_product_attention(q, k, v, is_causal=True).reshape(value.shape)
            if maps is not None:
                maps.append(attention(query, key))
            if kept is not None:
                out = out * kept[layer][:, None, None]
            x = x + self.answer[layer](out.transpose(-2, -3).flatten(-2))
        return self.read_out(normed(x))


def normed(x: Float[Tensor, "*B w"]) -> Float[Tensor, "*B w"]:
    """Every place with mean 0 and variance 1."""
    return functional.layer_norm(x, x.shape[-1:])


def attention(query: Float[Tensor, "*B L k"], key: Float[Tensor, "*B L k"]) -> Float[Tensor, "*B L L"]:
    """How much each place looks at those up to itself."""
    scores = query @ key.mT / query.shape[-1] ** 0.5
    ahead = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
    return scores.masked_fill(ahead, -torch.inf).softmax(-1)
