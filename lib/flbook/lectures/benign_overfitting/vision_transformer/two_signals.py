"""Two orthogonal signals, one a class: the first token of a sample is its signal, all others are noise."""

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.data.signal_noise import flipped_labels
from flbook.domains import Checked, Count, FlipProbability, Positive, Range


class TwoSignalSample(NamedTuple):
    """Training or test data of `TwoSignals`."""

    x: Float[Tensor, "*E n L d"]  # tokens [mu_y, xi_2, ..., xi_L]
    observed: Float[Tensor, "*E n"]  # labels that training sees
    y: Float[Tensor, "*E n"]  # true labels
    mu: Float[Tensor, "2 d"]  # signals of the classes +1 and -1
    xi: Float[Tensor, "*E n K d"]  # the K = L - 1 noise tokens


@dataclass(frozen=True)
class TwoSignals(Checked):
    r"""Tokens :math:`x = [\mu_y, \xi_2, \dots, \xi_L]` with :math:`\mu_+ \perp \mu_-` and noise of length about 1.

    The noise is :math:`\xi_\ell \sim N(0, I/d)`, that is :math:`\sigma_\xi = 1/\sqrt d`, so that the signal-to-noise
    ratio :math:`\|\mu\|/(\sigma_\xi\sqrt d)` is the signal strength `snr`.

    Source: Jiang et al. (2024), Section 3, with two orthogonal signals in place of :math:`\pm\mu`.
    """

    n: Count = 16  # training samples
    d: Annotated[int, Range(2)] = 1000  # dimension of a token
    snr: Positive = 1.0  # |mu|, in units of the length of a noise token
    tokens: Annotated[int, Range(2)] = 6  # L: the signal and some noise
    flip_prob: FlipProbability = 0.0  # p, exactly pn labels flipped

    @property
    def sigma_xi(self) -> float:
        """Standard deviation of a noise coordinate."""
        return 1 / math.sqrt(self.d)

    @property
    def mu(self) -> Float[Tensor, "2 d"]:
        """The two signals, along the first two axes."""
        return self.snr * torch.eye(2, self.d, dtype=torch.float64)

    def draw(self, seed: int | tuple[int, ...] = 0) -> TwoSignalSample:
        """A training sample in float64 on the CPU; a tuple of seeds gives one leading ensemble axis."""
        return self._sample(*flipped_labels(self.n, self.flip_prob, seed), seed, "noise")

    def draw_test(self, points: int, seed: int | tuple[int, ...] = 0) -> TwoSignalSample:
        """Fresh samples, classes balanced, no label flipped."""
        return self._sample(*flipped_labels(points, 0.0, seed), seed, "test noise")

    def _sample(self, y: Tensor, observed: Tensor, seed: int | tuple[int, ...], role: str) -> TwoSignalSample:
        xi = self.sigma_xi * rng.normal((y.shape[-1], self.tokens - 1, self.d), seed, role)
        signal = self.mu[(y < 0).long()]
        return TwoSignalSample(torch.cat([signal[..., None, :], xi], dim=-2), observed, y, self.mu, xi)
