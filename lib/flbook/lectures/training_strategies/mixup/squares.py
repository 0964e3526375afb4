"""Squares on common and rare features in coefficients, and what they do on fresh samples of either kind."""

from dataclasses import replace
from functools import lru_cache

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from flbook import measures
from flbook.domains import Seeds, checked_arguments
from flbook.dynamics.patches import PatchTraining
from flbook.lectures.training_strategies.shared.common_and_rare import FEATURES, PLACES, CommonAndRare, Kind
from flbook.models.activations import Power
from flbook.models.cnn import TwoLayerCNN
from flbook.training.losses import Weighted, logistic
from flbook.training.problem import Params, Problem


@checked_arguments
def training(data: CommonAndRare, seed: Seeds = 0, m: int = 10, sigma_0: float = 0.01) -> PatchTraining:
    """The training problem in coefficients: the same as ``Training(cnn, sample.x, sample.y)``."""
    cnn = TwoLayerCNN(data.d, m, sigma_0, activation=Power(2), seed=seed, dtype=torch.float64)
    return PatchTraining.of(data.vectors(data.noise(seed)), data.mix(seed), data.labels(), cnn,
                            features=FEATURES, sigma_xi=data.sigma_xi, orthogonal=True)


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


_standard = lru_cache(maxsize=4)(measures.sobol_normal)  # asked for at every recorded step


def test_error(problem: Problem, params: Params, kind: Kind, points: int = 512) -> Float[Tensor, "*E"]:
    """Share of wrong signs on fresh samples that carry this feature, the mean over both labels."""
    standard = _standard(points, problem.test_directions).to(problem.observed)
    noise = problem.fresh_outputs(params, standard)
    margin = on_feature(problem, params, kind)
    plus, minus = margin[..., :1] + noise, margin[..., 1:] - noise
    return (measures.error_rate(plus) + measures.error_rate(minus)) / 2
