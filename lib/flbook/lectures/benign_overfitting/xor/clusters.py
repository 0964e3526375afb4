r"""Exclusive or beside noise: four clusters, opposite ones of one label, so that nothing linear tells them apart."""

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook import rng
from flbook.data.signal_noise import flipped_labels
from flbook.domains import Checked, FlipProbability, Positive, Range

Angle = Annotated[float, Range(0, 180, "()")]  # between u and v, in degrees: at either end they share a direction


class XorSample(NamedTuple):
    """Data of `XorSignalNoise`, the hidden truth beside what is observed."""

    x: Float[Tensor, "*E n 2 d"]  # patches [cluster, xi], what a network sees
    observed: Float[Tensor, "*E n"]  # labels that training sees
    y: Float[Tensor, "*E n"]  # true labels
    cluster: Int[Tensor, "*E n"]  # which of +u, +v, -u, -v is the signal patch: 0, 1, 2, 3
    signals: Float[Tensor, "2 d"]  # u and v
    xi: Float[Tensor, "*E n d"]  # noise patches, orthogonal to both


@dataclass(frozen=True)
class XorSignalNoise(Checked):
    r"""Patches :math:`x = [\pm u, \xi]` of label +1 and :math:`[\pm v, \xi]` of label -1, all four equally likely.

    :math:`\|u\| = \|v\| = \|\mu\|`, the angle between u and v is :math:`\theta`, and the noise has no component in
    their plane: :math:`\xi \sim N(0, \sigma_\xi^2 (I - \Pi_{u,v}))`. Observed labels are flipped.

    Source: Meng et al. (2024), Definition 2.1, with u = a + b and v = a - b.
    """

    n: Annotated[int, Range(4)] = 80  # training samples, one of each cluster at least
    d: Annotated[int, Range(3)] = 6400  # dimension of a patch: the plane of the clusters and noise beside it
    mu_norm: Positive = 10.0  # |mu|, length of each cluster
    angle: Angle = 90.0
    sigma_xi: Positive = 1.0  # standard deviation of a noise coordinate
    flip_prob: FlipProbability = 0.1  # p: exactly round(p n), equally many in every cluster if 4 divides it

    @property
    def signals(self) -> Float[Tensor, "2 d"]:
        """The vectors u and v, in the plane of the first two coordinates."""
        plane = self.mu_norm * unit_signals(self.angle)
        return torch.cat([plane, torch.zeros(2, self.d - 2, dtype=torch.float64)], -1)

    def draw(self, seed: int | tuple[int, ...] = 0) -> XorSample:
        """A training sample in float64: clusters take turns; a tuple of seeds gives one leading ensemble axis."""
        y, observed = flipped_labels(self.n, self.flip_prob, seed)
        cluster = (torch.arange(self.n) % 4).expand(y.shape)
        return self._sample(cluster, y, observed, rng.normal((self.n, self.d), seed, "noise"))

    def draw_test(self, points: int, seed: int | tuple[int, ...] = 0) -> XorSample:
        """Fresh samples with independent clusters, flipped independently: the direct way to a test error."""
        def one(seed):
            return torch.randint(4, (points,), generator=rng.generator(seed, "test clusters"))

        def flips(seed):
            uniform = torch.rand(points, generator=rng.generator(seed, "test flips"), dtype=torch.float64)
            return torch.where(uniform < self.flip_prob, -1.0, 1.0).double()

        cluster = rng.over_seeds(one, seed)
        y = 1.0 - 2.0 * (cluster % 2).double()
        standard = rng.normal((points, self.d), seed, "test noise")
        return self._sample(cluster, y, y * rng.over_seeds(flips, seed), standard)

    def _sample(self, cluster: Tensor, y: Tensor, observed: Tensor, standard: Tensor) -> XorSample:
        xi = self.sigma_xi * torch.cat([torch.zeros_like(standard[..., :2]), standard[..., 2:]], -1)
        four = torch.cat([self.signals, -self.signals])
        return XorSample(torch.stack([four[cluster], xi], -2), observed, y, cluster, self.signals, xi)


def unit_signals(angle: float) -> Float[Tensor, "2 2"]:
    """The directions of u and v in their plane, symmetric about the first axis."""
    half = math.radians(angle) / 2
    return torch.tensor([[math.cos(half), math.sin(half)], [math.cos(half), -math.sin(half)]], dtype=torch.float64)
