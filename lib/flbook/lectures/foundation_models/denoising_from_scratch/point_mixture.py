r"""Mixtures of Gaussians of one width about given points, and their Bayes denoiser in closed form.

.. math:: x_0 = b_k + \sigma_b z, \qquad
   \hat x_0(x) = \sum_k w_k(x)\Big[b_k + \frac{\sqrt{\bar\alpha} \sigma_b^2}{v}(x - \sqrt{\bar\alpha} b_k)\Big], \qquad
   w(x) = \mathrm{softmax}_k\Big(-\frac{\|x - \sqrt{\bar\alpha} b_k\|^2}{2 v}\Big),

with :math:`v = \bar\alpha \sigma_b^2 + 1 - \bar\alpha`. Points that are training pictures and a width 0 make the exact
minimiser of the training loss, which memorises; a width above 0 smooths it. Derived on this lecture's page.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.domains import Checked, Count, NonNegative, Seeds, checked_arguments


@dataclass(frozen=True, eq=False)
class PointMixture(Checked):
    """Gaussians of standard deviation `width` about `centres`, shape ``(k, d)``, equally often.

    Raises
    ------
    ValueError
        If the width is negative, or the centres are no points.

    Examples
    --------
    >>> PointMixture.two_modes().draw(5, seed=(0, 1)).shape
    torch.Size([2, 5, 2])
    """

    centres: Float[Tensor, "k d"]
    width: NonNegative = 0.0

    def __post_init__(self):
        super().__post_init__()
        if self.centres.ndim != 2 or not self.centres.numel():
            raise ValueError(f"centres must have the shape (points, coordinates); got {tuple(self.centres.shape)}")

    @classmethod
    def two_modes(cls, apart: float = 4.0, width: float = 0.3) -> "PointMixture":
        """Two modes in the plane, on the first axis."""
        return cls(torch.tensor([[-apart / 2, 0.0], [apart / 2, 0.0]], dtype=torch.float64), width)

    @checked_arguments
    def draw(self, batch: Count, seed: Seeds, step: int = 0) -> Float[Tensor, "*S batch d"]:
        """Points; a function of seed and step."""
        k, d = self.centres.shape
        places = rng.over_seeds(
            lambda one: torch.randint(k, (batch,), generator=rng.generator(one, f"modes {step}")), seed)
        return self.centres[places] + self.width * rng.normal((batch, d), seed, f"points {step}")

    def denoise(self, x: Float[Tensor, "*E n d"], kept: float) -> Float[Tensor, "*E n d"]:
        r""":math:`E[x_0 | x_t = x]`, where `kept` is :math:`\bar\alpha_t`, in (0, 1)."""
        centres, root = self.centres.to(x), math.sqrt(kept)
        v = kept * self.width**2 + 1 - kept
        share = torch.softmax(-torch.cdist(x, root * centres).square() / (2 * v), -1)
        return (1 - kept) / v * (share @ centres) + root * self.width**2 / v * x

    def noise(self, x: Float[Tensor, "*E n d"], kept: float) -> Float[Tensor, "*E n d"]:
        r"""The Bayes denoiser :math:`E[\epsilon | x_t = x]`: minus :math:`\sqrt{1 - \bar\alpha}` times the score."""
        return noise_of(x, self.denoise(x, kept), kept)


def noise_of(x: Tensor, clean: Tensor, kept: float) -> Tensor:
    r""":math:`(x - \sqrt{\bar\alpha}\,\hat x_0)/\sqrt{1 - \bar\alpha}`: the noise that a guess of the sample leaves."""
    return (x - math.sqrt(kept) * clean) / math.sqrt(1 - kept)


def two_mode_loss(kept: float | np.ndarray, apart: float = 4.0, width: float = 0.3) -> float | np.ndarray:
    r"""Bayes loss per coordinate of two modes in the plane, by one integral over the first coordinate.

    .. math:: \frac{\bar\alpha \sigma_b^2}{v} +
              \frac{\bar\alpha(1 - \bar\alpha) a^2}{8 v^2}\,E\,\mathrm{sech}^2\frac{\sqrt{\bar\alpha} a x_1}{2 v}
    """
    z, weight = np.polynomial.hermite_e.hermegauss(160)
    kept = np.asarray(kept, dtype=float)[..., None]
    v, half = kept * width**2 + 1 - kept, np.sqrt(kept) * apart / 2
    sech = 1 / np.cosh(half * (half + np.sqrt(v) * z) / v) ** 2
    between = (sech @ weight / weight.sum()) * (kept * (1 - kept) * apart**2 / (8 * v**2))[..., 0]
    return (kept * width**2 / v)[..., 0] + between
