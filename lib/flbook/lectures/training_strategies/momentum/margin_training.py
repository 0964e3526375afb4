"""Samples of two margins in coefficients, and what a network has learned of their feature."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import measures
from flbook.dynamics.patches import PatchTraining
from flbook.lectures.training_strategies.shared.margins import Margins, MarginSample
from flbook.models.cnn import TwoLayerCNN
from flbook.training.losses import logistic
from flbook.training.problem import Params


def two_margin_training(data: Margins, sample: MarginSample, cnn: TwoLayerCNN) -> PatchTraining:
    """The training problem in coefficients: the same as ``Training(cnn, sample.x, sample.y)``."""
    mix = sample.y.new_zeros(data.n, 2, data.n + 1)
    mix[:, 0, 0] = sample.margin * sample.y
    mix[:, 1, 1:] = torch.eye(data.n)
    feature = torch.zeros_like(sample.xi[..., :1, :])
    feature[..., 0] = 1.0
    vectors = torch.cat([feature, sample.xi], -2)
    return PatchTraining.of(vectors, mix, sample.y, cnn, sigma_xi=data.sigma_xi, orthogonal=True)


class Fresh(NamedTuple):
    """What a network does on fresh samples of one margin, and on the training samples of that margin."""

    error: Float[Tensor, "*E"]  # share of fresh samples that are missed
    loss: Float[Tensor, "*E"]  # mean logistic loss on fresh samples
    feature: Float[Tensor, "*E"]  # output on the feature patch alone, times the label


def generalisation(problem: PatchTraining, params: Params, margin: float, points: int = 1024) -> Fresh:
    """Error and loss on fresh samples of this margin, from the exact law of what fresh noise patches meet.

    The activation is odd, so both labels give the same.
    """
    standard = measures.sobol_normal(points, problem.test_directions).to(problem.observed)
    noise = problem.fresh_outputs(params, standard)
    feature = problem.feature_outputs(params, standard.new_tensor([[margin]]))
    outputs = feature + noise
    loss = logistic(outputs, torch.ones_like(outputs))
    return Fresh(measures.error_rate(outputs), loss.mean(-1), feature[..., 0])


def feature_coefficient(problem: PatchTraining, params: Params) -> Float[Tensor, "*E"]:
    r""":math:`\|a\|`, with :math:`a_k = \langle w_k, v\rangle`: what all filters together see of the feature."""
    return problem.overlaps(params)[..., 0].norm(dim=-1)


def coasting_to(problem: PatchTraining, params: Params, velocity: Params, memory: float) -> Float[Tensor, "*E"]:
    r""":math:`\|a + \tau\dot a\|`: where the feature would come to rest if no loss pulled any more.

    velocity: the state of averaged momentum, an average of gradients.
    """
    ahead = {name: p - memory * velocity[name] for name, p in params.items()}
    return feature_coefficient(problem, ahead)
