"""Clusters that nobody names: a label along a direction of its cluster, and a patch that tells the cluster."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook import rng
from flbook.domains import Checked, Count, NonNegative, Positive, Range, Seeds, checked_arguments

AtLeastTwo = Annotated[int, Range(2)]


class Clustered(NamedTuple):
    """Samples of `ExpertClusters`, the hidden truth beside what is observed."""

    x: Float[Tensor, "*E n 4 d"]  # patches, in an order of their own in every sample
    observed: Float[Tensor, "*E n"]  # labels
    cluster: Int[Tensor, "*E n"]  # k: whose centre the sample has
    other: Int[Tensor, "*E n"]  # k': whose signal stands in the misleading patch
    sign: Float[Tensor, "*E n"]  # the sign of that patch


@dataclass(frozen=True)
class ExpertClusters(Checked):
    r"""Patches :math:`y\alpha v_k,\ \beta c_k,\ \epsilon\gamma v_{k'},\ \xi` in random order, with :math:`k' \ne k`.

    The label y is +1 or -1, the cluster k and the other one k' are uniform, :math:`\epsilon` is a fair sign, and
    :math:`\alpha, \beta, \gamma` are uniform between their ends. The signals :math:`v_k` and the centres :math:`c_k`
    are the first 2 K axes, and :math:`\xi \sim N(0, \sigma^2 I/d)`. All patches are multiplied by `size`.

    Parameters
    ----------
    n
        Samples.
    d, clusters
        Dimension of a patch, at least 2 K; clusters K.
    alpha, beta, gamma
        Ends of the uniform laws.
    sigma
        Length of a noise patch, about.
    size
        Of all patches; 10 in the official code.

    Raises
    ------
    ValueError
        If a field is outside its domain, d is too small, or the ends of a law are not in order.

    Source: Chen et al. (2022), Definition 3.1; the numbers are those of setting 3 of the official code.

    Examples
    --------
    >>> sample = ExpertClusters(n=5).draw(seed=(0, 1, 2))
    >>> sample.x.shape, bool((sample.cluster != sample.other).all())
    (torch.Size([3, 5, 4, 50]), True)
    """

    n: Count = 1000
    d: Count = 50
    clusters: AtLeastTwo = 4
    alpha: tuple[Positive, Positive] = (0.5, 2.0)
    beta: tuple[Positive, Positive] = (1.0, 2.0)
    gamma: tuple[Positive, Positive] = (0.5, 2.0)
    sigma: NonNegative = 1.0
    size: Positive = 10.0

    def __post_init__(self):
        super().__post_init__()
        if self.d < 2 * self.clusters:
            raise ValueError(f"d must be at least 2 K = {2 * self.clusters}, one axis for each signal and centre; "
                             f"got {self.d}")
        for name in ("alpha", "beta", "gamma"):
            low, high = getattr(self, name)
            if low > high:
                raise ValueError(f"{name} must name the lower end first; got {(low, high)}")

    @property
    def signals(self) -> Float[Tensor, "K d"]:
        """The vectors v_k, of length 1."""
        return torch.eye(self.d, dtype=torch.float64)[: self.clusters]

    @property
    def centres(self) -> Float[Tensor, "K d"]:
        """The vectors c_k, of length 1."""
        return torch.eye(self.d, dtype=torch.float64)[self.clusters : 2 * self.clusters]

    @checked_arguments
    def draw(self, seed: Seeds = 0) -> Clustered:
        """A training sample in float64 on the CPU; a tuple of seeds gives one leading ensemble axis."""
        return self._draw(self.n, seed, "clusters")

    @checked_arguments
    def draw_test(self, points: int, seed: Seeds = 0) -> Clustered:
        """Fresh samples, as many as `points`."""
        return self._draw(points, seed, "fresh clusters")

    def _draw(self, n: int, seed: int | tuple[int, ...], role: str) -> Clustered:
        unit = rng.over_seeds(
            lambda one: torch.rand((n, 11), generator=rng.generator(one, role), dtype=torch.float64), seed)
        y, eps = 1 - 2 * (unit[..., 0] < 0.5).double(), 1 - 2 * (unit[..., 1] < 0.5).double()
        k = (unit[..., 2] * self.clusters).long()
        other = (k + 1 + (unit[..., 3] * (self.clusters - 1)).long()) % self.clusters
        alpha, beta, gamma = (low + (high - low) * unit[..., 4 + i]
                              for i, (low, high) in enumerate((self.alpha, self.beta, self.gamma)))
        xi = self.sigma / self.d**0.5 * rng.normal((n, self.d), seed, f"noise of {role}")
        patches = torch.stack([(y * alpha)[..., None] * self.signals[k], beta[..., None] * self.centres[k],
                               (eps * gamma)[..., None] * self.signals[other], xi], -2)
        order = unit[..., 7:].argsort(-1)[..., None]
        return Clustered(self.size * patches.take_along_dim(order, -2), y, k, other, eps)
