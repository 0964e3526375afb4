"""Teachers: targets that depend on a sample through few directions, so that features can be learned or missed."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng


class Taught(NamedTuple):
    """Samples and what the teacher says of them."""

    x: Float[Tensor, "*E n d"]
    y: Float[Tensor, "*E n"]


@dataclass(frozen=True)
class Teacher:
    r"""Gaussian samples and a target of K directions.

    .. math:: x \sim N(0, I_d), \qquad y = \frac1K \sum_{k=1}^K \tanh(s \langle u_k, x\rangle)

    The unit vectors u_k are the first coordinate axes if :math:`K \le d`, unless `spread` puts them at equal angles in
    the plane of the first two. K neurons of unit output weight represent the target exactly.
    """

    n: int = 100  # training samples
    d: int = 20  # dimension
    k: int = 1  # directions K
    sharpness: float = 2.0  # s
    spread: bool = False

    def __post_init__(self):
        if not (self.n >= 1 and self.d >= 1 and self.k >= 1):
            raise ValueError(f"n, d and k must be at least 1; got n={self.n}, d={self.d}, k={self.k}")
        if self.spread and self.d < 2 or not self.spread and self.k > self.d:
            raise ValueError(f"{self.k} directions do not fit into d = {self.d}: k must be at most d, "
                             "or spread=True with d at least 2")
        if not (math.isfinite(self.sharpness) and self.sharpness > 0):
            raise ValueError(f"sharpness must be positive and finite; got {self.sharpness}")

    @property
    def u(self) -> Float[Tensor, "k d"]:
        """The directions, one a row."""
        if not self.spread:
            return torch.eye(self.k, self.d, dtype=torch.float64)
        angle = 2 * math.pi * torch.arange(self.k, dtype=torch.float64) / self.k
        u = torch.zeros(self.k, self.d, dtype=torch.float64)
        u[:, 0], u[:, 1] = angle.cos(), angle.sin()
        return u

    def target(self, x: Float[Tensor, "*E n d"]) -> Float[Tensor, "*E n"]:
        """What the teacher says, without noise."""
        return torch.tanh(self.sharpness * torch.einsum("...nd,kd->...nk", x, self.u.to(x))).mean(-1)

    def draw(self, seed: int | tuple[int, ...] = 0) -> Taught:
        """A training sample in float64; a tuple of seeds gives one leading ensemble axis."""
        x = rng.normal((self.n, self.d), seed, "samples")
        return Taught(x, self.target(x))

    def draw_test(self, points: int, seed: int | tuple[int, ...] = 0) -> Taught:
        """Fresh samples of the same law, independent of the training sample."""
        x = rng.normal((points, self.d), seed, "fresh samples")
        return Taught(x, self.target(x))
