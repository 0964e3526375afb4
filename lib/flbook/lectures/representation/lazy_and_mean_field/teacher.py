"""Teachers: targets that depend on a sample through few directions, so that features can be learned or missed."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.domains import Checked, Count, Positive


class TeacherSample(NamedTuple):
    """Samples and their targets."""

    x: Float[Tensor, "*E n d"]  # samples
    y: Float[Tensor, "*E n"]  # targets, without noise


@dataclass(frozen=True)
class Teacher(Checked):
    r"""Gaussian samples and a target of K directions.

    .. math:: x \sim N(0, I_d), \qquad y = \frac1K \sum_{k=1}^K \tanh(s \langle u_k, x\rangle)

    The unit vectors u_k are the first coordinate axes if :math:`K \le d`, unless `spread` puts them at equal angles in
    the plane of the first two. K neurons of unit output weight represent the target exactly.

    Parameters
    ----------
    n
        Training samples.
    d
        Dimension of a sample.
    k
        Directions K; at most d, unless they are spread.
    sharpness
        The factor s.
    spread
        Directions at equal angles in a plane? Then d is at least 2.

    Raises
    ------
    ValueError
        If a field is outside its domain, or the directions do not fit into d dimensions.

    Examples
    --------
    >>> sample = Teacher(n=5, d=3, k=2).draw(seed=0)
    >>> sample.x.shape, sample.y.shape
    (torch.Size([5, 3]), torch.Size([5]))
    """

    n: Count = 100
    d: Count = 20
    k: Count = 1
    sharpness: Positive = 2.0
    spread: bool = False

    def __post_init__(self):
        super().__post_init__()
        if self.spread and self.d < 2 or not self.spread and self.k > self.d:
            raise ValueError(f"{self.k} directions do not fit into d = {self.d}: k must be at most d, "
                             "or spread=True with d at least 2")

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
        """The target of each sample, without noise."""
        return torch.tanh(self.sharpness * torch.einsum("...nd,kd->...nk", x, self.u.to(x))).mean(-1)

    def draw(self, seed: int | tuple[int, ...] = 0) -> TeacherSample:
        """A training sample in float64; a tuple of seeds gives one leading ensemble axis."""
        x = rng.normal((self.n, self.d), seed, "samples")
        return TeacherSample(x, self.target(x))

    def draw_test(self, points: int, seed: int | tuple[int, ...] = 0) -> TeacherSample:
        """Fresh samples of the same law, independent of the training sample."""
        x = rng.normal((points, self.d), seed, "fresh samples")
        return TeacherSample(x, self.target(x))
