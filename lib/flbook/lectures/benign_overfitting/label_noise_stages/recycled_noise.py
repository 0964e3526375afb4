r"""A test distribution that has seen the training set: fresh labels beside noise patches of the training samples.

.. math:: x = [y\mu,\ c\,\xi_i + s\,\zeta], \qquad y = \pm 1,\quad i \sim \mathrm{Unif}\{1, \dots, n\},\quad
          \zeta \sim N(0, \sigma_\xi^2 I)

The label is drawn independently of i. With c = 1 this models spurious features: something that occurs in training and
test pictures alike and has nothing to do with the label. With c = 0, s = 1 it is fresh noise.

Source: Han et al. (2025), the test distribution of Theorem 4.2 (c = 1).
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.data.signal_noise import Sample, check_noise, flipped_labels
from flbook.domains import Checked, NonNegative


@dataclass(frozen=True)
class RecycledNoise(Checked):
    """How much of a training noise patch a test sample repeats, and how much fresh noise comes on top."""

    keep: NonNegative = 1.0  # c
    extra: NonNegative = 0.0  # s, fresh noise in units of sigma_xi

    @classmethod
    def overlap(cls, cosine: float) -> "RecycledNoise":
        """Noise of the usual length whose cosine with a training patch is given: 1 repeats it, 0 is fresh."""
        if not 0 <= cosine <= 1:
            raise ValueError(f"cosine must lie in [0, 1], from fresh noise to repeated noise; got {cosine}")
        return cls(cosine, math.sqrt(1 - cosine**2))

    def preactivations(
        self, on_xi: Float[Tensor, "*#E n k"], fresh: Float[Tensor, "*#E points k"]
    ) -> Float[Tensor, "*E tests k"]:
        r"""What filters see of the test noise, from what they see of training noise and of fresh noise.

        Every training patch is used once if nothing is added (tests = n), else beside every fresh one (n points).
        """
        if self.extra == 0:
            return self.keep * on_xi
        return (self.keep * on_xi[..., :, None, :] + self.extra * fresh[..., None, :, :]).flatten(-3, -2)

    def draw_test(self, sample: Sample, points: int, sigma_xi: float = 1.0, seed: int | tuple[int, ...] = 0) -> Sample:
        """Test samples to one training sample, in d dimensions: the direct way. A tuple of seeds leads as an axis."""
        check_noise(sigma_xi)
        y, observed = flipped_labels(points, 0.0, seed, exact=False, role="recycled labels")
        n, d = sample.xi.shape[-2:]

        def one(seed):
            return torch.randint(n, (points,), generator=rng.generator(seed, "recycled places"))

        places = rng.over_seeds(one, seed)[..., None]
        xi = self.keep * torch.take_along_dim(sample.xi, places, dim=-2)
        xi = xi + self.extra * sigma_xi * rng.normal((points, d), seed, "recycled noise")
        return Sample(torch.stack([y[..., None] * sample.mu, xi], dim=-2), observed, y, sample.mu, xi)
