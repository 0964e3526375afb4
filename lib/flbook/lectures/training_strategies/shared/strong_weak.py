r"""Samples with a strong and a weak feature: patches [y u, y v, ξ], or [0, y v, ξ] where the strong one is missing.

Lu et al. (2024) devised it; here |u| = 1, and noise of given length, or none.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.data.signal_noise import alternating_labels
from flbook.domains import Checked, Count, Natural, NonNegative, Range, Seeds, checked_arguments


class StrongWeakSample(NamedTuple):
    """Training data of `StrongWeak`."""

    x: Float[Tensor, "*E n P d"]  # patches, the input of a network
    y: Float[Tensor, " n"]  # labels


@dataclass(frozen=True)
class StrongWeak(Checked):
    r"""Features :math:`u = e_1`, :math:`v = \sqrt\epsilon\,e_2`, and perhaps noise of length |ξ| orthogonal to both.

    Labels alternate, and the last samples are those without the strong feature.

    Parameters
    ----------
    n, d
        Samples; dimension of a patch.
    weak_only
        How many samples have no strong feature.
    ratio
        :math:`\epsilon = |v|^2/|u|^2`.
    noise
        |ξ|, the length of a noise patch; 0 is no noise patch at all.

    Raises
    ------
    ValueError
        If a number is out of its domain.

    Examples
    --------
    >>> data = StrongWeak(n=4, d=8, weak_only=1)
    >>> sample = data.draw()
    >>> sample.x.shape, sample.x[:, 0, 0].tolist()
    (torch.Size([4, 2, 8]), [1.0, -1.0, 1.0, 0.0])
    """

    n: Count = 16
    d: Annotated[int, Range(3)] = 64
    weak_only: Natural = 0
    ratio: Annotated[float, Range(0, 1, "(]")] = 0.01
    noise: NonNegative = 0.0

    def __post_init__(self):
        super().__post_init__()
        if self.n % 2 or self.weak_only > self.n:
            raise ValueError("n must be even, half of it of each label, and at least weak_only; got "
                             f"n = {self.n}, weak_only = {self.weak_only}")

    def labels(self) -> Float[Tensor, " n"]:
        """+1 and -1 by turns."""
        return alternating_labels(self.n)

    @checked_arguments
    def noise_patches(self, count: int, seed: Seeds, role: str) -> Float[Tensor, "*E count d"]:
        """Noise of one length, in a uniform direction orthogonal to both features."""
        xi = rng.normal((count, self.d), seed, role)
        xi[..., :2] = 0.0
        return self.noise * xi / xi.norm(dim=-1, keepdim=True)

    @checked_arguments
    def draw(self, seed: Seeds = 0) -> StrongWeakSample:
        """Training data; with noise, a tuple of seeds gives one leading axis."""
        y = self.labels()
        u, v = torch.zeros(2, self.n, self.d, dtype=torch.float64)
        u[: self.n - self.weak_only, 0] = y[: self.n - self.weak_only]
        v[:, 1] = self.ratio**0.5 * y
        if not self.noise:
            return StrongWeakSample(torch.stack([u, v], -2), y)
        xi = self.noise_patches(self.n, seed, "noise")
        return StrongWeakSample(torch.stack([u.expand_as(xi), v.expand_as(xi), xi], -2), y)

    def feature(self, which: str) -> Float[Tensor, "2 1 d"]:
        """Two samples, of label +1 and -1, with the "strong" or the "weak" feature alone and no noise."""
        x = torch.zeros(2, 1, self.d, dtype=torch.float64)
        place, size = {"strong": (0, 1.0), "weak": (1, self.ratio**0.5)}[which]
        x[:, 0, place] = torch.tensor([size, -size])
        return x
