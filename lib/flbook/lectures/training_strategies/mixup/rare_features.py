r"""Samples with a common or a rare feature: patches [feature, ξ], where the feature is that of the label.

The data law is this book's. It has the parts that Zou et al. (2023) name, common features, rare features and noise;
their own definition was not at hand.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from flbook import measures, rng
from flbook.domains import Checked, Count, Positive, Probability, Range, Seeds
from flbook.dynamics.patches import PatchTraining
from flbook.models.activations import Power
from flbook.models.cnn import TwoLayerCNN
from flbook.training.losses import Weighted, logistic
from flbook.training.problem import Params, Problem

FEATURES = 4  # v_+, v_-, u_+, u_-: the common one of either label, then the rare ones
PLACES = {"common": 0, "rare": 2}
Kind = Literal["common", "rare"]


class RareSample(NamedTuple):
    """Training data of `RareFeatures`."""

    x: Float[Tensor, "*E n 2 d"]  # patches, the input of a network
    y: Float[Tensor, " n"]  # labels
    rare: Bool[Tensor, " n"]  # which samples carry the rare feature
    xi: Float[Tensor, "*E n d"]  # noise patches


@dataclass(frozen=True)
class RareFeatures(Checked):
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
    >>> data = RareFeatures(n=20, d=50, share=0.2)
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
        return 1.0 - 2.0 * (torch.arange(self.n) % 2).double()

    def rare(self) -> Bool[Tensor, " n"]:
        """Which samples carry the rare feature."""
        return torch.arange(self.n) < round(self.share * self.n)

    def noise(self, seed: Seeds) -> Float[Tensor, "*E n d"]:
        """Noise patches."""
        xi = self.sigma_xi * rng.normal((self.n, self.d), seed, "noise")
        xi[..., :FEATURES] = 0.0
        return xi

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

    def draw(self, seed: Seeds = 0) -> RareSample:
        """Training data in float64; a tuple of seeds gives one leading axis."""
        xi = self.noise(seed)
        return RareSample(torch.einsum("...nps,...sd->...npd", self.mix(seed), self._vectors(xi)), self.labels(),
                          self.rare(), xi)

    def _vectors(self, xi: Tensor) -> Float[Tensor, "*E N d"]:
        features = torch.eye(FEATURES, self.d, dtype=xi.dtype).expand(*xi.shape[:-2], FEATURES, self.d)
        return torch.cat([features, xi], -2)

    def training(self, seed: Seeds = 0, m: int = 10, sigma_0: float = 0.01) -> PatchTraining:
        """The training problem in coefficients: the same as ``Training(cnn, sample.x, sample.y)``."""
        cnn = TwoLayerCNN(self.d, m, sigma_0, activation=Power(2), seed=seed, dtype=torch.float64)
        return PatchTraining.of(self._vectors(self.noise(seed)), self.mix(seed), self.labels(), cnn,
                                features=FEATURES, sigma_xi=self.sigma_xi, orthogonal=True)


def weighted(problem: PatchTraining, rare: Bool[Tensor, " n"], times: float) -> PatchTraining:
    """The same problem with every rare sample counted several times: oversampling, or a loss balanced by feature.

    Weights have the mean 1.
    """
    weight = torch.where(rare, times, 1.0).to(problem.observed)
    return replace(problem, loss=Weighted(logistic, weight / weight.mean()))


def on_feature(problem: Problem, params: Params, kind: Kind) -> Float[Tensor, "*E 2"]:
    """Outputs on the feature of either label alone, times the label."""
    first = PLACES[kind]
    strength = torch.eye(FEATURES)[first : first + 2]
    return problem.feature_outputs(params, strength) * problem.a.new_tensor([1.0, -1.0])


_standard = lru_cache(maxsize=4)(measures.even_normal)  # asked for at every recorded step


def test_error(problem: Problem, params: Params, kind: Kind, points: int = 512) -> Float[Tensor, "*E"]:
    """Share of wrong signs on fresh samples that carry this feature, the mean over both labels."""
    standard = _standard(points, problem.test_directions).to(problem.observed)
    noise = problem.noise_outputs(problem.fresh(params, standard))
    margin = on_feature(problem, params, kind)
    wrong = torch.stack([margin[..., :1] + noise <= 0, margin[..., 1:] - noise <= 0])
    return wrong.to(noise.dtype).mean((0, -1))
