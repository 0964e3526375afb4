r"""Sparse noise: a feature of one coordinate, beside a patch of noise on s coordinates that holds a bit of -feature.

.. math:: x = [\,y v,\ \xi - \alpha y v\,], \qquad v = e_1, \qquad \xi \sim N(0, \sigma_\xi^2 I) \text{ on } s
          \text{ coordinates}

Each sample draws its s coordinates afresh, without replacement, from all but the first. Fresh noise is no Gaussian
vector, so a test error is measured on samples that are drawn.

Source: Zou et al. (2023), Section 3, as restated in Tang et al. (2025), Definition 3.1.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.data.signal_noise import PatchSize, Sample, flipped_labels
from flbook.domains import Checked, Count, Fraction, Positive, Seeds, checked_arguments


@dataclass(frozen=True)
class SparseNoise(Checked):
    r"""Patches :math:`[yv, \xi]` with masked Gaussian noise, and :math:`-\alpha yv` in the noise patch.

    Labels alternate. The noise patch, as ``sample.xi`` holds it, contains :math:`-\alpha yv`.

    Parameters
    ----------
    n, d
        Training samples; dimension of a patch.
    s
        Coordinates of the noise of a sample, from 1 to d - 1.
    sigma_xi
        Standard deviation of such a coordinate (:math:`\sigma_p` in the paper).
    alpha
        :math:`\alpha`, in [0, 1): how much of the feature the noise patch holds, with the wrong sign.
    disjoint
        Do no two training samples share a coordinate of noise? Then sample i has the i-th s of them. (Theory takes
        n s far below d, where independent masks hardly meet.) Fresh samples have independent masks always.

    Raises
    ------
    ValueError
        If a number is out of its domain.

    Examples
    --------
    >>> sample = SparseNoise(n=4, d=50, s=5).draw(seed=(0, 1))
    >>> sample.x.shape, (sample.xi[..., 1:] != 0).sum(-1).unique().tolist(), sample.xi[0, :, 0].tolist()
    (torch.Size([2, 4, 2, 50]), [5], [-0.2, 0.2, -0.2, 0.2])
    """

    n: Count = 200
    d: PatchSize = 1000
    s: Count = 100
    sigma_xi: Positive = 0.1
    alpha: Fraction = 0.2
    disjoint: bool = False

    def __post_init__(self):
        super().__post_init__()
        if self.s >= self.d:
            raise ValueError(f"s must be at most d - 1 = {self.d - 1}, coordinates other than the first; got {self.s}")
        if self.disjoint and self.n * self.s >= self.d:
            raise ValueError(f"d must be above n s = {self.n * self.s} if samples share no coordinate; got {self.d}")

    @property
    def mu(self) -> Float[Tensor, " d"]:
        """The feature v."""
        return torch.eye(1, self.d, dtype=torch.float64)[0]

    @checked_arguments
    def draw(self, seed: Seeds = 0) -> Sample:
        """Training data in float64 on the CPU; a tuple of seeds gives one leading axis."""
        y, _ = flipped_labels(self.n, 0.0, seed)
        return self._sample(y, seed, "", self.disjoint)

    @checked_arguments
    def draw_test(self, points: int, seed: Seeds = 0) -> Sample:
        """Fresh samples, their labels +1 or -1 with probability 1/2."""
        y, _ = flipped_labels(points, 0.0, seed, exact=False, role="test labels")
        return self._sample(y, seed, "test ", False)

    def _sample(self, y: Tensor, seed: int | tuple[int, ...], which: str, disjoint: bool) -> Sample:
        points = y.shape[-1]

        def masked(one: int) -> Tensor:
            if disjoint:
                places = 1 + torch.arange(points * self.s).unflatten(0, (points, self.s))
            else:
                unit = torch.rand(points, self.d - 1, generator=rng.generator(one, f"{which}mask"))
                places = 1 + unit.topk(self.s, largest=False, sorted=False).indices
            values = self.sigma_xi * rng.normal((points, self.s), one, f"{which}noise")
            return values.new_zeros(points, self.d).scatter_(-1, places, values)

        xi = rng.over_seeds(masked, seed)
        xi[..., 0] = -self.alpha * y
        x = torch.zeros(*xi.shape[:-1], 2, self.d, dtype=xi.dtype)
        x[..., 0, 0], x[..., 1, :] = y, xi
        return Sample(x, y, y, self.mu, xi)

