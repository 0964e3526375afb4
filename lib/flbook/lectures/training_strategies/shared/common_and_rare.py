r"""Samples with a common or a rare feature: patches [feature, ξ], where the feature is that of the label.

The data law is this book's. It has the parts that Zou et al. (2023) name, common features, rare features and noise;
their own definition was not at hand.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from flbook import rng
from flbook.data.signal_noise import alternating_labels
from flbook.domains import Checked, Count, Positive, Probability, Range, Seeds, checked_arguments

FEATURES = 4  # v_+, v_-, u_+, u_-: the common one of either label, then the rare ones
PLACES = {"common": 0, "rare": 2}
Kind = Literal["common", "rare"]


class CommonAndRareSample(NamedTuple):
    """Training data of `CommonAndRare`."""

    x: Float[Tensor, "*E n 2 d"]  # patches, the input of a network
    y: Float[Tensor, " n"]  # labels
    rare: Bool[Tensor, " n"]  # which samples carry the rare feature
    xi: Float[Tensor, "*E n d"]  # noise patches


@dataclass(frozen=True)
class CommonAndRare(Checked):
    r"""Patches :math:`[v_y, \xi]`, or :math:`[u_y, \xi]` for a share of the samples; four orthonormal features.

    Labels alternate, and the first ``round(share n)`` samples carry the rare feature: the noise patches are
    exchangeable, so fixing the places loses nothing.

    Parameters
    ----------
    n, d
        Samples; dimension of a patch.
    share
        :math:`\rho`, of samples with the rare feature.
    noise_square
        S, the mean of :math:`|\xi|^2`: Gaussian noise, orthogonal to the features.
    signs
        Does every sample show its feature with a random sign? The square does not see it.
    places
        Does the feature stand in a random one of the two patches, and the noise in the other?

    Raises
    ------
    ValueError
        If a number is out of its domain, or the labels cannot be balanced.

    Examples
    --------
    >>> data = CommonAndRare(n=20, d=50, share=0.2)
    >>> sample = data.draw(seed=(0, 1))
    >>> sample.x.shape, sample.rare.sum().item(), sample.x[0, 0, 0, :4].tolist()
    (torch.Size([2, 20, 2, 50]), 4, [0.0, 0.0, 1.0, 0.0])
    """

    n: Count = 100
    d: Annotated[int, Range(FEATURES + 1)] = 2000
    share: Probability = 0.1
    noise_square: Positive = 20.0
    signs: bool = False
    places: bool = False

    def __post_init__(self):
        super().__post_init__()
        if self.n % 2 or round(self.share * self.n) % 2:
            raise ValueError("n and share n must be even, half of them of each label; got "
                             f"n = {self.n}, share n = {round(self.share * self.n)}")

    @property
    def sigma_xi(self) -> float:
        """Standard deviation of a coordinate of the noise."""
        return (self.noise_square / (self.d - FEATURES)) ** 0.5

    def labels(self) -> Float[Tensor, " n"]:
        """+1 and -1 by turns."""
        return alternating_labels(self.n)

    def rare(self) -> Bool[Tensor, " n"]:
        """Which samples carry the rare feature."""
        return torch.arange(self.n) < round(self.share * self.n)

    @checked_arguments
    def noise(self, seed: Seeds) -> Float[Tensor, "*E n d"]:
        """Noise patches."""
        xi = self.sigma_xi * rng.normal((self.n, self.d), seed, "noise")
        xi[..., :FEATURES] = 0.0
        return xi

    @checked_arguments
    def mix(self, seed: Seeds = 0) -> Float[Tensor, "*E n 2 N"]:
        """Coefficients of the patches on the four features and the n noise patches."""
        feature = (self.labels() < 0).long() + PLACES["rare"] * self.rare()
        shown = torch.nn.functional.one_hot(feature, FEATURES + self.n).double()
        noise = torch.eye(self.n, FEATURES + self.n, dtype=torch.float64).roll(FEATURES, -1)

        def one(single: int) -> Tensor:
            coin = torch.rand((2, self.n, 1), generator=rng.generator(single, "signs and places")) < 0.5
            seen = torch.where(coin[0] & self.signs, -shown, shown)
            swapped = coin[1] & self.places
            return torch.stack([torch.where(swapped, noise, seen), torch.where(swapped, seen, noise)], -2)

        return rng.over_seeds(one, seed)

    @checked_arguments
    def draw(self, seed: Seeds = 0) -> CommonAndRareSample:
        """Training data in float64; a tuple of seeds gives one leading axis."""
        xi = self.noise(seed)
        x = torch.einsum("...nps,...sd->...npd", self.mix(seed), self.vectors(xi))
        return CommonAndRareSample(x, self.labels(), self.rare(), xi)

    def vectors(self, xi: Tensor) -> Float[Tensor, "*E N d"]:
        """The basis of all patches: the features, then the noise patches."""
        features = torch.eye(FEATURES, self.d, dtype=xi.dtype).expand(*xi.shape[:-2], FEATURES, self.d)
        return torch.cat([features, xi], -2)
