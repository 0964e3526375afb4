r"""Samples that share one feature, with different margins: two patches, the feature times the label and noise.

Jelassi and Li (2022) devised it; here with one noise patch, and noise of any length.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.data.signal_noise import PatchSize, alternating_labels
from flbook.domains import Checked, Count, Fraction, Positive, Range, Seeds, checked_arguments


class MarginSample(NamedTuple):
    """Training data of `Margins`."""

    x: Float[Tensor, "*E n 2 d"]  # patches [margin y v, xi], the input of a network
    y: Float[Tensor, " n"]  # labels
    margin: Float[Tensor, " n"]  # 1, or the small one
    xi: Float[Tensor, "*E n d"]  # noise patches


@dataclass(frozen=True)
class Margins(Checked):
    r"""Patches :math:`x = [\theta y v, \xi]`, margin :math:`\theta = 1` or :math:`\beta`, noise orthogonal to v.

    The feature is :math:`v = e_1`. Labels alternate, and the first ``round(q n)`` samples have the small margin: the
    noise patches are exchangeable, so fixing the places loses nothing.

    Parameters
    ----------
    n, d
        Samples; dimension of a patch.
    small
        :math:`\beta`, the small margin.
    share
        q, of samples with the small margin.
    sigma_xi
        Standard deviation of the noise's coordinates.

    Raises
    ------
    ValueError
        If a number is out of its domain.

    Examples
    --------
    >>> data = Margins(n=6, d=50, small=0.1, share=1 / 3)
    >>> data.draw(seed=(0, 1)).x.shape, data.margins().tolist()
    (torch.Size([2, 6, 2, 50]), [0.1, 0.1, 1.0, 1.0, 1.0, 1.0])
    """

    n: Count = 60
    d: PatchSize = 200
    small: Annotated[float, Range(0, 1, "(]")] = 0.1
    share: Fraction = 0.2
    sigma_xi: Positive = 0.1

    def margins(self) -> Float[Tensor, " n"]:
        """Margin of each sample."""
        theta = torch.ones(self.n, dtype=torch.float64)
        theta[: round(self.share * self.n)] = self.small
        return theta

    @checked_arguments
    def draw(self, seed: Seeds = 0) -> MarginSample:
        """Training data; a tuple of seeds gives one leading axis."""
        y, theta = alternating_labels(self.n), self.margins()
        xi = self.sigma_xi * rng.normal((self.n, self.d), seed, "noise")
        xi[..., 0] = 0.0
        shared = torch.zeros_like(xi)
        shared[..., 0] = theta * y
        return MarginSample(torch.stack([shared, xi], -2), y, theta, xi)
