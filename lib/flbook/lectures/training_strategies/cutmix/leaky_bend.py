"""The smoothed leaky ReLU of Oh and Yun (2024)."""

from dataclasses import dataclass

from torch import Tensor

from flbook.domains import Checked, Positive, Probability
from flbook.models.activations import Activation


@dataclass(frozen=True)
class LeakyBend(Checked, Activation):
    r"""A leaky ReLU whose slope climbs straight from :math:`\beta` at 0 to 1 at r.

    .. math:: \varphi(z) = \beta z\ (z < 0), \qquad \beta z + \tfrac{1-\beta}{2r} z^2\ (0\le z\le r), \qquad
              z - \tfrac{1-\beta}{2} r\ (z > r)

    Source: Oh and Yun (2024). The core's `SmoothLeakyReLU` bends by a softplus instead.

    Examples
    --------
    >>> bend = LeakyBend(0.1)
    >>> [round(v, 4) for v in bend(Tensor([-1.0, 0.5, 2.0])).tolist()], round(bend.slope(Tensor([0.5])).item(), 4)
    ([-0.1, 0.1625, 1.55], 0.55)
    """

    leak: Probability = 0.1  # β
    width: Positive = 1.0  # r

    def __call__(self, z: Tensor) -> Tensor:
        """The value."""
        inside = z.clamp(0, self.width)
        return self.leak * z + (1 - self.leak) * (inside * (z.clamp(min=0) - inside / 2)) / self.width

    def slope(self, z: Tensor) -> Tensor:
        """The derivative."""
        return self.leak + (1 - self.leak) * (z / self.width).clamp(0, 1)
