"""Handwritten digits as sequences: 64 tokens, row by row, each one of 17 grey values."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook import rng
from flbook.data.ten_digits import ten_digits
from flbook.domains import Checked, Natural, Range

GREYS = 17  # 0 is white paper, 16 is ink


class Sequences(NamedTuple):
    """Pictures as tokens, 0 to 16."""

    tokens: Int[Tensor, "*E batch 64"]


@dataclass(frozen=True)
class PixelSequences(Checked):
    """The 1797 handwritten digits that come with scikit-learn, some of them to train on, the rest to test.

    Parameters
    ----------
    n
        Pictures to train on, from 1 to 1796.
    split
        Seed of which these are.

    Raises
    ------
    ValueError
        If a field is outside its domain.

    Source: Alpaydin and Kaynak (1998), the test set of the optical recognition data, as in scikit-learn's load_digits.

    Examples
    --------
    >>> data = PixelSequences(n=1500)
    >>> data.train.shape, data.test.shape, data.draw(8, seed=(0, 1)).tokens.shape
    (torch.Size([1500, 64]), torch.Size([297, 64]), torch.Size([2, 8, 64]))
    """

    n: Annotated[int, Range(1, 1796)] = 1500
    split: Natural = 0

    @property
    def train(self) -> Int[Tensor, "n 64"]:
        """Pictures to train on."""
        return _tokens(self.n, self.split)[: self.n]

    @property
    def test(self) -> Int[Tensor, "t 64"]:
        """All the others."""
        return _tokens(self.n, self.split)[self.n :]

    def draw(self, batch: int, seed: int | tuple[int, ...] = 0, step: int = 0, device="cpu") -> Sequences:
        """Training pictures of one step, with replacement; a pure function of (seed, step)."""
        places = rng.over_seeds(lambda one: torch.randint(
            self.n, (batch,), generator=rng.generator(one, f"pictures, step {step}")), seed)
        return Sequences(self.train[places].to(device))

    def frequencies(self, pseudo: float = 0.1) -> Float[Tensor, "64 17"]:
        """How often each place has each grey value in training, from counts that begin at a small number.

        The best that can be said without looking at the picture.
        """
        counts = torch.nn.functional.one_hot(self.train, GREYS).sum(0) + pseudo
        return counts / counts.sum(-1, keepdim=True)


@lru_cache
def _tokens(n: int, split: int) -> Int[Tensor, "1797 64"]:
    """Training pictures, then test pictures; nobody writes into them."""
    pictures = ten_digits(n, split)
    pixels = torch.cat([pictures.x, pictures.x_test]).flatten(1)
    return torch.searchsorted(pixels.unique(), pixels)  # shifted and scaled grey values are in the same order
