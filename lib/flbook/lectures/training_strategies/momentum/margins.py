r"""Samples that share one feature, with different margins: two patches, the feature times the label and noise.

Jelassi and Li (2022) devised it; here with one noise patch, and noise of any length.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import measures, rng
from flbook.data.signal_noise import PatchSize
from flbook.domains import Checked, Count, Fraction, Positive, Range, Seeds
from flbook.dynamics.patches import PatchTraining
from flbook.models.cnn import TwoLayerCNN
from flbook.training.losses import logistic
from flbook.training.problem import Params


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

    def draw(self, seed: Seeds = 0) -> MarginSample:
        """Training data; a tuple of seeds gives one leading axis."""
        y, theta = 1.0 - 2.0 * (torch.arange(self.n) % 2).double(), self.margins()
        xi = self.sigma_xi * rng.normal((self.n, self.d), seed, "noise")
        xi[..., 0] = 0.0
        shared = torch.zeros_like(xi)
        shared[..., 0] = theta * y
        return MarginSample(torch.stack([shared, xi], -2), y, theta, xi)

    def training(self, sample: MarginSample, cnn: TwoLayerCNN) -> PatchTraining:
        """The training problem in coefficients: the same as ``Training(cnn, sample.x, sample.y)``."""
        mix = sample.y.new_zeros(self.n, 2, self.n + 1)
        mix[:, 0, 0] = sample.margin * sample.y
        mix[:, 1, 1:] = torch.eye(self.n)
        feature = torch.zeros_like(sample.xi[..., :1, :])
        feature[..., 0] = 1.0
        vectors = torch.cat([feature, sample.xi], -2)
        return PatchTraining.of(vectors, mix, sample.y, cnn, sigma_xi=self.sigma_xi, orthogonal=True)


class Fresh(NamedTuple):
    """What a network does on fresh samples of one margin, and on the training samples of that margin."""

    error: Float[Tensor, "*E"]  # share of fresh samples that are missed
    loss: Float[Tensor, "*E"]  # mean logistic loss on fresh samples
    feature: Float[Tensor, "*E"]  # output on the feature patch alone, times the label


def on_fresh(problem: PatchTraining, params: Params, margin: float, points: int = 1024) -> Fresh:
    """Error and loss on fresh samples of this margin, from the exact law of what fresh noise patches meet.

    The activation is odd, so both labels give the same.
    """
    standard = measures.even_normal(points, problem.test_directions).to(problem.observed)
    noise = problem.noise_outputs(problem.fresh(params, standard))
    feature = problem.feature_outputs(params, standard.new_tensor([[margin]]))
    outputs = feature + noise
    loss = logistic(outputs, torch.ones_like(outputs))
    return Fresh((outputs <= 0).double().mean(-1), loss.mean(-1), feature[..., 0])


def feature_coefficient(problem: PatchTraining, params: Params) -> Float[Tensor, "*E"]:
    r""":math:`\|a\|`, with :math:`a_k = \langle w_k, v\rangle`: what all filters together see of the feature."""
    return problem.overlaps(params)[..., 0].norm(dim=-1)


def coasting_to(problem: PatchTraining, params: Params, velocity: Params, memory: float) -> Float[Tensor, "*E"]:
    r""":math:`\|a + \tau\dot a\|`: where the feature would come to rest if no loss pulled any more.

    velocity: the state of averaged momentum, an average of gradients.
    """
    ahead = {name: p - memory * velocity[name] for name, p in params.items()}
    return feature_coefficient(problem, ahead)
