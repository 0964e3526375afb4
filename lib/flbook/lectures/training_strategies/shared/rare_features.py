r"""Samples with one of several features, some of them rare: a feature patch, one of strong noise, others of weak noise.

The data law of Oh and Yun (2024), as far as it could be read; what we fixed ourselves is said in `RareFeatures`.
"""

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook import rng
from flbook.data.signal_noise import alternating_labels
from flbook.domains import Checked, Count, Positive, Probability, Range, Seeds, checked_arguments

Frequency = Annotated[float, Range(0, 1, "(]")]


class RareSample(NamedTuple):
    """Training data of `RareFeatures`."""

    vectors: Float[Tensor, "*E N d"]  # the features of label +1, those of -1, then all noise patches, sample by sample
    mix: Float[Tensor, "n P N"]  # which combination of them each patch is
    y: Float[Tensor, " n"]  # labels
    kind: Int[Tensor, " n"]  # which feature, from the most frequent

    @property
    def x(self) -> Float[Tensor, "*E n P d"]:
        """The patches themselves, the input of a network."""
        return torch.einsum("nps,...sd->...npd", self.mix, self.vectors)


@dataclass(frozen=True)
class RareFeatures(Checked):
    r"""Patches :math:`x = [v_{y,k},\ \alpha u + \xi^{(2)},\ \xi^{(3)}, \dots, \xi^{(P)}]`.

    Each label has K features of its own, all orthonormal; a sample has the k-th with frequency :math:`\rho_k`. The
    second patch is dominant noise of standard deviation :math:`\sigma_d`, with a trace :math:`\alpha u` of the most
    frequent feature of either label; the others are background noise of :math:`\sigma_b`. Noise is orthogonal to
    features.

    Ours: labels alternate, frequencies and traces are exact in each label and stand at fixed places. The noise is
    exchangeable, so this loses nothing but the fluctuation of counts.

    Parameters
    ----------
    n, d, patches
        Samples; dimension of a patch; P.
    frequency
        :math:`\rho_k`, of sum 1.
    sigma_d, sigma_b, trace
        :math:`\sigma_d, \sigma_b, \alpha`.

    Raises
    ------
    ValueError
        If a number is out of its domain, frequencies do not add up to one, or a feature has no sample.

    Examples
    --------
    >>> data = RareFeatures(n=40, d=100)
    >>> data.draw(seed=(0, 1)).x.shape, data.kinds().bincount().tolist()
    (torch.Size([2, 40, 3, 100]), [32, 6, 2])
    """

    n: Count = 120
    d: Count = 2000
    patches: Annotated[int, Range(2)] = 3
    frequency: tuple[Frequency, ...] = (0.8, 0.15, 0.05)
    sigma_d: Positive = 0.25
    sigma_b: Positive = 0.15
    trace: Probability = 0.005

    def __post_init__(self):
        super().__post_init__()
        if not math.isclose(sum(self.frequency), 1):
            raise ValueError(f"frequency must be numbers of sum 1; got {self.frequency}")
        if self.n % 2 or (self.kinds().bincount(minlength=self.features) == 0).any():
            raise ValueError(f"n must be even, with a sample of every feature in each label; got {self.n}")
        if self.d <= 2 * self.features:
            raise ValueError(f"d must exceed the {2 * self.features} features; got {self.d}")

    @property
    def features(self) -> int:
        """K, of each label."""
        return len(self.frequency)

    def labels(self) -> Float[Tensor, " n"]:
        """They alternate."""
        return alternating_labels(self.n)

    def kinds(self) -> Int[Tensor, " n"]:
        """Which feature each sample has: the same in both labels."""
        ends = (torch.tensor(self.frequency).double().cumsum(0) * (self.n // 2)).round()
        return torch.searchsorted(ends, torch.arange(self.n).div(2, rounding_mode="floor").double(), right=True)

    @checked_arguments
    def draw(self, seed: Seeds = 0) -> RareSample:
        """Training data; a tuple of seeds gives one leading axis."""
        n, count, noisy = self.n, 2 * self.features, self.patches - 1
        sigma = torch.full((noisy, 1), self.sigma_b, dtype=torch.float64)
        sigma[0] = self.sigma_d
        noise = sigma * rng.normal((n, noisy, self.d), seed, "noise")
        noise[..., :count] = 0.0
        noise = noise.flatten(-3, -2)
        vectors = torch.cat([torch.eye(count, self.d).double().expand(*noise.shape[:-2], -1, -1), noise], -2)
        y, kind, at = self.labels(), self.kinds(), torch.arange(n)
        mix = torch.zeros(n, self.patches, count + n * noisy, dtype=torch.float64)
        mix[at, 0, kind + self.features * (y < 0)] = 1.0
        mix[at, 1, self.features * (at.div(2, rounding_mode="floor") % 2)] = self.trace
        mix[:, 1:, count:] = torch.eye(n * noisy, dtype=torch.float64).unflatten(0, (n, noisy))
        return RareSample(vectors, mix, y, kind)
