r"""Two environments that agree on one feature and disagree on how far another one can be trusted.

.. math:: x_i = [\,y_i a_i v_1 + y_i b_i v_2,\ \xi_i\,], \qquad P(a_i = -1) = \alpha, \quad P(b_i = -1) = \beta_e

The label is y, the invariant feature :math:`v_1`, the spurious feature :math:`v_2`, and e the sample's environment.

Differs from Chen et al. (2023), Section 3: each combination of y, a and b is drawn exactly as often as its probability
says, unless ``counted=False``.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.domains import Checked, Count, NonNegative, Probability, Range, Seeds, checked_arguments

SIGNS = ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0))  # of the two features in a patch


class EnvironmentSample(NamedTuple):
    """Training data of `Environments`, those of the first environment first."""

    x: Float[Tensor, "*E n 2 d"]  # patches, the input of a network
    y: Float[Tensor, "*E n"]  # labels


@dataclass(frozen=True)
class Environments(Checked):
    r"""Features :math:`v_1 = e_1` (invariant) and :math:`v_2 = e_2` (spurious) in one patch, Gaussian noise in another.

    Parameters
    ----------
    n
        Samples of each environment.
    d
        Dimension of a patch.
    alpha
        Probability that the invariant feature contradicts the label, the same everywhere.
    betas
        Probability that the spurious feature does, one for each environment.
    sigma_xi
        Standard deviation of a noise coordinate.
    counted
        Every combination of label and features exactly as often as its probability says, or drawn independently?

    Raises
    ------
    ValueError
        If a number is out of its domain, or a combination would not occur a whole number of times.

    Examples
    --------
    >>> data = Environments(d=10)
    >>> sample = data.draw(seed=(0, 1))
    >>> sample.x.shape, round((sample.y * sample.x[..., 0, 1]).mean().item(), 3)
    (torch.Size([2, 320, 2, 10]), 0.7)
    """

    n: Count = 160
    d: Annotated[int, Range(2)] = 20
    alpha: Probability = 0.25
    betas: tuple[Probability, ...] = (0.1, 0.2)
    sigma_xi: NonNegative = 0.03
    counted: bool = True

    def __post_init__(self):
        super().__post_init__()
        if self.counted:
            for beta in self.betas:
                for share in self.shares(beta):
                    if abs(self.n / 2 * share - round(self.n / 2 * share)) > 1e-6:
                        raise ValueError(f"n must make every combination of label and features occur a whole number of "
                                         f"times, {share:g} n/2 is none at n = {self.n}; or set counted=False")

    def shares(self, beta: float) -> list[float]:
        """How probable the signs (a, b) are, in the order of `SIGNS`."""
        return [(1 - self.alpha if a > 0 else self.alpha) * (1 - beta if b > 0 else beta) for a, b in SIGNS]

    def _signs(self, beta: float, generator: torch.Generator) -> Float[Tensor, "n 3"]:
        """Label, a and b of the samples of one environment."""
        if self.counted:
            rows = [[(y, a, b)] * round(self.n / 2 * share) for y in (1.0, -1.0)
                    for (a, b), share in zip(SIGNS, self.shares(beta), strict=True)]
            return torch.tensor(sum(rows, []), dtype=torch.float64)
        unit = torch.rand(self.n, 3, generator=generator, dtype=torch.float64)
        return 1 - 2 * (unit < torch.tensor([0.5, self.alpha, beta])).double()

    @checked_arguments
    def draw(self, seed: Seeds = 0) -> EnvironmentSample:
        """Training data; a tuple of seeds gives one leading axis."""

        def one(seed: int) -> Tensor:
            generator = rng.generator(seed, "signs")
            return torch.cat([self._signs(beta, generator) for beta in self.betas])

        y, a, b = rng.over_seeds(one, seed).unbind(-1)
        first = torch.zeros(*y.shape, self.d, dtype=torch.float64)
        first[..., 0], first[..., 1] = y * a, y * b
        noise = self.sigma_xi * rng.normal((y.shape[-1], self.d), seed, "noise")
        return EnvironmentSample(torch.stack([first, noise], -2), y)
