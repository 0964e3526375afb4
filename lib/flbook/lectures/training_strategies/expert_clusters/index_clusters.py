r"""Two clusters of single-index models: each has a direction of its own, and they share one with opposite signs.

A sample of cluster :math:`k = \pm 1` is :math:`x \sim N(k\|c\|\bar c, I_d)`, and its label

.. math:: y = \nu\,h_3(\langle w_k, x\rangle) + k\,h_3(\langle w_g, x\rangle) + \varepsilon .

Kawata et al. (2025) study clusters of this kind, any number of them and any links of one information exponent above 2.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float
from numpy.polynomial import hermite_e
from torch import Tensor

from flbook import hermite, rng
from flbook.domains import Checked, Count, NonNegative, Range, Seeds, checked_arguments

CENTRE, FIRST, SECOND, SHARED = 0, 1, 2, 3  # the coordinates along the centres, w_+1, w_-1 and w_g


class IndexSample(NamedTuple):
    """Data of `IndexClusters`: what is observed, and the hidden truth."""

    x: Float[Tensor, "*E n d"]
    y: Float[Tensor, "*E n"]
    cluster: Float[Tensor, "*E n"]  # k, +1 or -1
    shared: Float[Tensor, "*E n"]  # k h_3(<w_g, x>), the shared part of the label


@dataclass(frozen=True)
class IndexClusters(Checked):
    r"""Samples of equally likely clusters; :math:`\bar c, w_{+1}, w_{-1}, w_g` are the first four coordinate vectors.

    Parameters
    ----------
    d
        Dimension of an input.
    rho
        :math:`\|c\|`, how far the centres are from the origin.
    local
        :math:`\nu`, strength of the parts that a cluster has for itself.
    noise
        Standard deviation of the label noise.

    Raises
    ------
    ValueError
        If a number is out of its domain.

    Examples
    --------
    >>> sample = IndexClusters(d=8, local=0.0).draw(5, seed=0)
    >>> bool((sample.y == sample.shared).all())
    True
    """

    d: Annotated[int, Range(4)] = 24
    rho: NonNegative = 2.0
    local: NonNegative = 1.0
    noise: NonNegative = 0.0

    @checked_arguments
    def draw(self, n: Count, seed: Seeds = 0, role: str = "samples", device: str | torch.device = "cpu") -> IndexSample:
        """Samples in float64; a tuple of seeds gives one leading axis."""
        drawn = rng.normal((n, self.d + 2), seed, role, device)
        return self._labelled(drawn[..., : self.d].clone(), drawn[..., self.d].sign(), drawn[..., self.d + 1])

    @checked_arguments
    def exactly(self, count: Count = 10) -> tuple[IndexSample, Float[Tensor, " n"]]:
        """Points and weights by which means of polynomials in the first four coordinates are exact, up to degree
        2 count - 1 in each; the other coordinates are 0."""
        node, weight = hermite_e.hermegauss(count)
        grid = torch.cartesian_prod(*4 * [torch.from_numpy(node)])
        share = torch.cartesian_prod(*4 * [torch.from_numpy(weight / weight.sum())]).prod(-1)
        x = torch.zeros(2, len(grid), self.d, dtype=torch.float64)
        x[..., :4] = grid
        cluster = torch.tensor([1.0, -1.0], dtype=torch.float64)[:, None].expand(2, len(grid))
        sample = self._labelled(x, cluster, torch.zeros_like(cluster))
        return IndexSample(*(part.flatten(0, 1) for part in sample)), share.repeat(2) / 2

    def _labelled(self, x: Tensor, cluster: Tensor, noise: Tensor) -> IndexSample:
        x[..., CENTRE] += self.rho * cluster
        own = torch.where(cluster > 0, x[..., FIRST], x[..., SECOND])
        shared = cluster * hermite.polynomial(3, x[..., SHARED])
        y = self.local * hermite.polynomial(3, own) + shared + self.noise * noise
        return IndexSample(x, y, cluster, shared)
