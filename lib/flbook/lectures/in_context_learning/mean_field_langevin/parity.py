"""Sparse parity: inputs of random signs, and a label that is the product of a few of them."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.domains import Checked, Count


class Signs(NamedTuple):
    """A sample of `SparseParity`."""

    x: Float[Tensor, "*E n d"]
    y: Float[Tensor, "*E n"]


@dataclass(frozen=True)
class SparseParity(Checked):
    r"""Uniform signs :math:`x \in \{-1, +1\}^d` and the label :math:`y = x_1 x_2 \cdots x_k`.

    A degree-k polynomial that is uncorrelated with every product of fewer coordinates.
    """

    n: Count = 300  # training samples
    d: Count = 20
    k: Count = 3  # coordinates that the label depends on, the first ones

    def __post_init__(self):
        super().__post_init__()
        if self.k > self.d:
            raise ValueError(f"k must be at most d = {self.d}; got {self.k}")

    def draw(self, seed: int | tuple[int, ...] = 0) -> Signs:
        """A training sample in float32; a tuple of seeds gives one leading ensemble axis.

        A larger n keeps the first samples of a smaller one.
        """
        return self._draw(self.n, seed, "parity")

    def draw_test(self, points: int, seed: int | tuple[int, ...] = 0) -> Signs:
        """Fresh samples."""
        return self._draw(points, seed, "parity test")

    def _draw(self, points: int, seed: int | tuple[int, ...], role: str) -> Signs:
        def one(seed):
            return 2.0 * torch.randint(2, (points, self.d), generator=rng.generator(seed, role)).float() - 1

        x = rng.over_seeds(one, seed)
        return Signs(x, x[..., : self.k].prod(-1))
