r"""Samples with one of several features, some of them rare: a feature patch, then one of strong noise, then weak.

The data law of Oh and Yun (2024), as far as it could be read; what we fixed ourselves is said in `RareFeatures`.
"""

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook import measures, rng
from flbook.domains import Checked, Count, Positive, Probability, Range, Seeds
from flbook.dynamics.patches import LazyPatchTraining, PatchTraining
from flbook.training.problem import Params

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
        return 1.0 - 2.0 * (torch.arange(self.n) % 2).double()

    def kinds(self) -> Int[Tensor, " n"]:
        """Which feature each sample has: the same in both labels."""
        ends = (torch.tensor(self.frequency).double().cumsum(0) * (self.n // 2)).round()
        return torch.searchsorted(ends, torch.arange(self.n).div(2, rounding_mode="floor").double(), right=True)

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


def feature_parts(problem: PatchTraining, params: Params) -> Float[Tensor, "*E K"]:
    """z_k: half the difference between what the network says to the k-th feature of either label."""
    count = problem.features
    said = problem.feature_outputs(params, torch.eye(count))
    return (said[..., : count // 2] - said[..., count // 2 :]) / 2


def errors(problem: PatchTraining, params: Params, data: RareFeatures, points: int = 1024) -> Float[Tensor, "*E K"]:
    """Test error on fresh samples of each feature, from the exact law of what filters see of fresh noise."""
    count, noisy = data.features, data.patches - 1
    standard = measures.even_normal(points, noisy * problem.test_directions).to(problem.observed)
    ends = (params, problem.start()) if isinstance(problem, LazyPatchTraining) else (params,)
    seen = torch.cat([problem.overlaps(end) for end in ends], -2)[..., [0, count]]  # of the two common features
    noise = [0, 0]  # with a trace of either label
    for patch, part in enumerate(standard.chunk(noisy, -1)):
        z = problem.fresh(params, part) * (data.sigma_b if patch else data.sigma_d)
        for label in (0, 1):
            here = z if patch else z + data.trace * seen[..., None, :, label]
            noise[label] = noise[label] + problem.noise_outputs(here)
    noise = torch.cat(noise, -1)
    said = problem.feature_outputs(params, torch.eye(2 * count))[..., None, :]
    wrong = ((said[..., :count] + noise[..., None] <= 0).double() + (said[..., count:] + noise[..., None] >= 0)) / 2
    return wrong.mean(-2)
