"""What a network has learned of each feature: its output on the feature alone, and its errors on fresh samples."""

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import measures
from flbook.dynamics.patches import LazyPatchTraining, PatchTraining
from flbook.lectures.training_strategies.shared.rare_features import RareFeatures
from flbook.training.problem import Params


def feature_parts(problem: PatchTraining, params: Params) -> Float[Tensor, "*E K"]:
    """z_k: half the difference between what the network says to the k-th feature of either label."""
    count = problem.features
    said = problem.feature_outputs(params, torch.eye(count))
    return (said[..., : count // 2] - said[..., count // 2 :]) / 2


def errors(problem: PatchTraining, params: Params, data: RareFeatures, points: int = 1024) -> Float[Tensor, "*E K"]:
    """Test error on fresh samples of each feature, from the exact law of what filters see of fresh noise."""
    count, noisy = data.features, data.patches - 1
    standard = measures.sobol_normal(points, noisy * problem.test_directions).to(problem.observed)
    ends = (params, problem.start()) if isinstance(problem, LazyPatchTraining) else (params,)
    seen = torch.cat([problem.overlaps(end) for end in ends], -2)[..., [0, count]]  # of the two common features
    noise = [0, 0]  # with a trace of either label
    for patch, part in enumerate(standard.chunk(noisy, -1)):
        z = problem.fresh(params, part) * (data.sigma_b if patch else data.sigma_d)
        for label in (0, 1):
            here = z if patch else z + data.trace * seen[..., None, :, label]
            noise[label] = noise[label] + problem.noise_outputs(here)
    noise = torch.cat(noise, -1)
    said = problem.feature_outputs(params, torch.eye(2 * count))[..., None, :]
    plus, minus = ((part + noise[..., None]).mT for part in said.split(count, -1))
    return (measures.error_rate(plus) + measures.error_rate(-minus)) / 2
