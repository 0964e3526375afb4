"""Two modalities that share a label: each sample is seen twice, with a signal and a noise of either modality."""

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.data.signal_noise import PatchSize, flipped_labels, noise_preactivations
from flbook.domains import Checked, Count, NonNegative, Positive


class Pairs(NamedTuple):
    """Training data of `TwoModalities`, the hidden truth beside what is observed."""

    x: Float[Tensor, "*E n 2 d"]  # the first modality, patches [y mu, xi]
    augmented: Float[Tensor, "*E n 2 d"]  # the same seen again, patches [y mu, xi + eps]
    second: Float[Tensor, "*E n 2 d"]  # the second modality, patches [y mu~, xi~]
    y: Float[Tensor, "*E n"]  # labels, which pre-training does not see but for the choice of negatives
    mu: Float[Tensor, "2 d"]  # the signal of either modality


class Shifted(NamedTuple):
    """Test data of `TwoModalities`: the first modality with a signal of another strength."""

    x: Float[Tensor, "*E points 2 d"]  # patches [y nu, zeta]
    y: Float[Tensor, "*E points"]


@dataclass(frozen=True)
class TwoModalities(Checked):
    r"""Pairs :math:`x = [y\mu, \xi]` and :math:`\tilde x = [y\tilde\mu, \tilde\xi]` with independent Gaussian noise.

    Each signal is along the first axis of its own space. An augmented view of x is :math:`[y\mu, \xi + \varepsilon]`.
    At the test :math:`x = [y\nu, \zeta]` with :math:`\nu` along :math:`\mu` and :math:`\zeta` distributed as
    :math:`\xi`. Classes are balanced: +1, -1, +1, ....

    Parameters
    ----------
    n, d
        Pairs, and the dimension of a patch in either modality.
    mu_norm, second_norm
        Signal strengths :math:`\|\mu\|` and :math:`\|\tilde\mu\|`.
    sigma_xi, sigma_eps
        Standard deviations of a coordinate of the noise in either modality, and of the augmentation.
    nu_norm
        Signal strength at the test.
    orthogonal
        Noise and augmentation without a component along the signal?

    Raises
    ------
    ValueError
        If a field is outside its domain.

    Source: Huang et al. (2024), section 3; the numbers are those of its experiment.

    Examples
    --------
    >>> data = TwoModalities(n=20, d=100, mu_norm=5.0, second_norm=10.0)
    >>> data.snr, data.second_snr, data.draw(seed=(0, 1, 2)).second.shape
    (0.5, 1.0, torch.Size([3, 20, 2, 100]))
    """

    n: Count = 100
    d: PatchSize = 2000
    mu_norm: Positive = 5.0
    second_norm: Positive = 15.0
    sigma_xi: Positive = 1.0
    sigma_eps: NonNegative = 0.1
    nu_norm: Positive = 2.0
    orthogonal: bool = False

    @property
    def snr(self) -> float:
        r"""Signal-to-noise ratio :math:`\|\mu\|/(\sigma_\xi\sqrt d)` of the first modality."""
        return self.mu_norm / (self.sigma_xi * math.sqrt(self.d))

    @property
    def second_snr(self) -> float:
        """The same of the second modality."""
        return self.second_norm / (self.sigma_xi * math.sqrt(self.d))

    @property
    def mu(self) -> Float[Tensor, "2 d"]:
        """The signal vectors of both modalities."""
        first = torch.eye(1, self.d, dtype=torch.float64)
        return torch.cat([self.mu_norm * first, self.second_norm * first])

    def noise(self, sigma: float, seed: int | tuple[int, ...], role: str, points: int) -> Float[Tensor, "*E points d"]:
        """Noise patches of standard deviation sigma."""
        xi = sigma * rng.normal((points, self.d), seed, role)
        return torch.cat([torch.zeros_like(xi[..., :1]), xi[..., 1:]], dim=-1) if self.orthogonal else xi

    def draw(self, seed: int | tuple[int, ...] = 0) -> Pairs:
        """Pairs in float64 on the CPU; a tuple of seeds gives one leading ensemble axis."""
        y, _ = flipped_labels(self.n, 0.0, seed)
        xi, other = (self.noise(self.sigma_xi, seed, role, self.n) for role in ("noise", "second noise"))
        eps = self.noise(self.sigma_eps, seed, "augmentation", self.n)
        signal, second = (y[..., None] * mu for mu in self.mu)
        views = (signal, xi), (signal, xi + eps), (second, other)
        return Pairs(*(torch.stack(patches, dim=-2) for patches in views), y, self.mu)

    @property
    def test_law(self):
        """The exact law of what fresh noise of either modality does to given weights."""
        return partial(noise_preactivations, sigma_xi=self.sigma_xi, orthogonal=self.orthogonal)

    def draw_test(self, points: int, seed: int | tuple[int, ...] = 0) -> Shifted:
        """Fresh samples of the first modality with the signal of the test; labels +1 or -1 with probability 1/2."""
        y, _ = flipped_labels(points, 0.0, seed, exact=False, role="test labels")
        nu = self.nu_norm / self.mu_norm * self.mu[0]
        zeta = self.noise(self.sigma_xi, seed, "test noise", points)
        return Shifted(torch.stack([y[..., None] * nu, zeta], dim=-2), y)
