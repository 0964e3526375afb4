"""Two noisy clusters: one patch that holds the signal and the noise together, some labels flipped."""

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.data.signal_noise import flipped_labels
from flbook.domains import Checked, Count, FlipProbability, Range


class MixtureSample(NamedTuple):
    """Training data of `Mixture`, the hidden truth beside what is observed."""

    x: Float[Tensor, "*E n d"]  # y mu + xi, what a network sees
    observed: Float[Tensor, "*E n"]  # labels that training sees, some of them flipped
    y: Float[Tensor, "*E n"]  # true labels
    mu: Float[Tensor, " d"]  # half the difference of the cluster means
    xi: Float[Tensor, "*E n d"]  # noise


@dataclass(frozen=True)
class Mixture(Checked):
    r"""Samples of one patch around two opposite centres, exactly ``round(flip_prob n)`` labels observed flipped.

    .. math:: x_i = \sqrt{\gamma}\, y_i v + \sqrt{1 - \gamma}\, n_i, \qquad n_i \sim N(0, (I - vv^\top)/d)

    with :math:`v = e_1`, so that :math:`\|x_i\| \approx 1` at every dimension and `gamma` is the share of the signal in
    :math:`\|x_i\|^2`. In the words of `flbook.data.signal_noise`: :math:`\mu = \sqrt\gamma\, v`,
    :math:`\sigma_\xi = \sqrt{(1 - \gamma)/d}`, and the two patches added up.

    Source: Karhadkar et al. (2024), Section 2.
    """

    n: Count = 60  # training samples
    d: Annotated[int, Range(2)] = 240  # dimension
    gamma: Annotated[float, Range(0, 1, "()")] = 0.08  # signal strength, the share of the signal in |x|^2
    flip_prob: FlipProbability = 0.1  # share of flipped labels

    @property
    def sigma_xi(self) -> float:
        """Standard deviation of a noise coordinate."""
        return math.sqrt((1 - self.gamma) / self.d)

    @property
    def mu(self) -> Float[Tensor, " d"]:
        """Half the difference of the cluster means."""
        return math.sqrt(self.gamma) * torch.eye(1, self.d, dtype=torch.float64)[0]

    def draw(self, seed: int | tuple[int, ...] = 0) -> MixtureSample:
        """A training sample in float64 on the CPU; a tuple of seeds gives one leading ensemble axis."""
        return self._sample(*flipped_labels(self.n, self.flip_prob, seed), self.n, seed, "noise")

    def draw_test(self, points: int, seed: int | tuple[int, ...] = 0) -> MixtureSample:
        """Fresh samples with independent labels, observed flipped with probability `flip_prob`."""
        labels = flipped_labels(points, self.flip_prob, seed, exact=False, role="test labels")
        return self._sample(*labels, points, seed, "test noise")

    def _sample(self, y: Tensor, observed: Tensor, count: int, seed, role: str) -> MixtureSample:
        xi = self.sigma_xi * rng.normal((count, self.d), seed, role)
        xi = torch.cat([torch.zeros_like(xi[..., :1]), xi[..., 1:]], dim=-1)
        return MixtureSample(y[..., None] * self.mu + xi, observed, y, self.mu, xi)
