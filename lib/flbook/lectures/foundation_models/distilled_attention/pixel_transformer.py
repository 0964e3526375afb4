"""A causal transformer over the pixels of a picture: it predicts each from those before it."""

import copy
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from flbook.domains import Count, NonNegative, Seeds, checked_arguments
from flbook.models.transformer import GPT, linear, softmax_attention


class PixelTransformer(nn.Module):
    """A `GPT` between an embedding of grey values and a read-out of their logits.

    The sequence is moved on by one token, with a token of its own at the start, so that a pixel is predicted from those
    before it only.

    Parameters
    ----------
    width, layers, heads, sigma_0, seed
        Of the `GPT`.
    greys
        Grey values.
    length
        Pixels of a picture.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or ``width`` is no multiple of ``heads``.

    Examples
    --------
    >>> network = PixelTransformer(width=8, layers=1)
    >>> network(torch.zeros(3, 64, dtype=torch.long)).shape
    torch.Size([3, 64, 17])
    """

    @checked_arguments
    def __init__(self, width: Count = 32, layers: Count = 4, heads: Count = 2, sigma_0: NonNegative = 0.1,
                 seed: Seeds = 0, greys: Count = 17, length: Count = 64):
        super().__init__()
        self.greys = greys
        self.embedding = linear(greys + 1, width, 1.0, seed, "read-in")
        self.gpt = GPT(width, layers, heads, length, sigma_0, seed)
        self.read_out = linear(width, greys, width**-0.5, seed, "read-out")
        self.float()

    def forward(self, tokens: Int[Tensor, "*S b L"]) -> Float[Tensor, "*E b L greys"]:
        """Logits of every pixel given those before it."""
        before = functional.pad(tokens[..., :-1], (1, 0), value=self.greys)
        shown = functional.one_hot(before, self.greys + 1).to(self.embedding.weight)  # (*S, b, L, greys + 1)
        return self.read_out(self.gpt(self.embedding(shown)))

    def nats(self, tokens: Int[Tensor, "*S b L"]) -> Float[Tensor, "*E b"]:
        """Minus the log-likelihood of each picture, per pixel."""
        logits = self(tokens)
        chosen = tokens[..., None].expand(*logits.shape[:-1], 1)
        return -logits.log_softmax(-1).gather(-1, chosen)[..., 0].mean(-1)

    def attending(self, attends: Sequence[Callable | None]) -> "PixelTransformer":
        """The same weights with another attention in each layer; None keeps softmax."""
        if len(attends) != len(self.gpt.blocks):
            raise ValueError(f"attends must have one entry for each of the {len(self.gpt.blocks)} layers; "
                             f"got {len(attends)}")
        changed = copy.deepcopy(self)
        for block, attend in zip(changed.gpt.blocks, attends, strict=True):
            block.attend = attend or softmax_attention
        return changed

    @torch.no_grad()
    def queries_and_keys(self, tokens: Int[Tensor, "*S b L"]) -> list[tuple[Tensor, Tensor]]:
        """What meets in each layer's attention, queries and keys (*S, b, h, L, k), on the way of softmax attention."""
        kept = []

        def recording(query, key, value):
            kept.append((query, key))
            return softmax_attention(query, key, value)

        self.attending([recording] * len(self.gpt.blocks))(tokens)
        return kept
