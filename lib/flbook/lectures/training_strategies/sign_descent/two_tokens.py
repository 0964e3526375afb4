r"""Samples of two tokens, a signal and sparse noise, and a transformer of one layer of attention that reads them.

.. math:: f(x) = \sum_{l=1}^2 \sum_{m=1}^2 \mathrm{softmax}(x_l^\top W_Q W_K^\top x)_m\,\langle v, x_m\rangle

Source: Li et al. (2025); the sizes are ours.
"""

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float
from scipy.special import ndtr
from torch import Tensor

from flbook import rng
from flbook.data.signal_noise import alternating_labels
from flbook.domains import Checked, Count, Natural, Positive, Range, checked_arguments
from flbook.models.patch_attention import VisionTransformer


class TwoTokenSample(NamedTuple):
    """Samples and their labels."""

    x: Float[Tensor, "*E n 2 d"]  # the signal's token first
    y: Float[Tensor, "*E n"]


@dataclass(frozen=True)
class TwoTokens(Checked):
    r"""A sample is :math:`[y e_1,\ \xi]` with noise on s coordinates drawn afresh, Gaussian, none of them the first.

    Parameters
    ----------
    n
        Training samples.
    d
        Dimension of a token.
    s
        Coordinates of a noise token that are not 0, fewer than d.
    sigma_xi
        Standard deviation of such a coordinate.

    Raises
    ------
    ValueError
        If a number is out of its domain, or the noise has no room.

    Examples
    --------
    >>> TwoTokens(n=4, d=50, s=5).draw(seed=0).x.shape
    torch.Size([4, 2, 50])
    """

    n: Count = 20
    d: Annotated[int, Range(2)] = 2000
    s: Count = 40
    sigma_xi: Positive = 2.0

    def __post_init__(self):
        super().__post_init__()
        if self.s >= self.d:
            raise ValueError(f"s must be below d = {self.d}, since the signal's coordinate has no noise; got {self.s}")

    @checked_arguments
    def draw(self, seed: Natural | tuple[Natural, ...] = 0) -> TwoTokenSample:
        """A training sample in float32."""
        return self._drawn(self.n, seed, "noise")

    @checked_arguments
    def draw_test(self, points: int, seed: Natural | tuple[Natural, ...] = 0) -> TwoTokenSample:
        """Fresh samples."""
        return self._drawn(points, seed, "test noise")

    def _drawn(self, n: int, seed: int | tuple[int, ...], role: str) -> TwoTokenSample:
        y = alternating_labels(n).float()

        def one(number: int) -> Tensor:
            generator = rng.generator(number, role)
            where = torch.rand(n, self.d - 1, generator=generator).topk(self.s).indices + 1
            x = torch.zeros(n, 2, self.d)
            x[:, 1].scatter_(-1, where, self.sigma_xi * torch.randn(n, self.s, generator=generator))
            x[:, 0, 0] = y
            return x

        x = rng.over_seeds(one, seed)
        return TwoTokenSample(x, y.expand(x.shape[:-2]))

    @property
    def sign_error(self) -> float:
        r"""Test error of :math:`\mathrm{sign}(\frac1n\sum_i y_i x_i)`, with fresh noise as if Gaussian."""
        touched = 1 - (1 - self.s / (self.d - 1)) ** self.n
        return float(ndtr(-1 / (self.sigma_xi * math.sqrt(self.s * touched))))

    @property
    def average_error(self) -> float:
        r"""Test error of :math:`\frac1n\sum_i y_i x_i`, with fresh noise as if Gaussian."""
        return float(ndtr(-math.sqrt(self.n * (self.d - 1)) / (self.sigma_xi**2 * self.s)))


class TwoTokenTransformer(VisionTransformer):
    r"""`VisionTransformer` as the literature scales it: a sum over both tokens, and a value that moves by 2 steps.

    The mean over two tokens becomes a sum, a factor 2. And the value is the mean row of one matrix less that of
    another, :math:`v = \bar w_{+1} - \bar w_{-1}`; all rows of a matrix get one sign, so sign descent moves v by twice
    its step, another factor 2: v = 2 ``v``.

    frozen: attention stays uniform, and :math:`f(x) = \langle v, x_1 + x_2\rangle` is a linear classifier.
    """

    @checked_arguments
    def __init__(self, d: Count, h: Count = 32, sigma_0: Positive = 0.002, seed=0, frozen: bool = False):
        super().__init__(d, h, sigma_0, sigma_0 / 2, seed)
        self.frozen = frozen
        if frozen:
            self.q = self.k = None

    def attention(self, x: Float[Tensor, "*#E n L d"]) -> Float[Tensor, "*E n L L"]:
        """Who looks at whom."""
        if not self.frozen:
            return super().attention(x)
        return x.new_full((*x.shape[:-1], x.shape[-2]), 1 / x.shape[-2])

    def forward(self, x: Float[Tensor, "*#E n L d"]) -> Float[Tensor, "*E n"]:
        """Outputs."""
        return 4 * super().forward(x)
