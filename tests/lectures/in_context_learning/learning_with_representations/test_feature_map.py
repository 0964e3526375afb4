"""The map: its moments, its evenness, and the covariance of labels over all maps of its class."""

import torch

from flbook.lectures.in_context_learning.learning_with_representations import attention_on_features as layers
from flbook.lectures.in_context_learning.learning_with_representations import feature_map
from flbook.lectures.in_context_learning.learning_with_representations.feature_map import (
    FeatureMapPrompts,
    class_kernel,
    directions,
    features,
)

exact = {"dtype": torch.float64}


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), **exact)


def test_features_are_independent_standardised_and_even():
    x = normal(400_000, 4)
    seen = features(x)
    torch.testing.assert_close(seen.mean(0), torch.zeros(4, **exact), atol=0.01, rtol=0)
    torch.testing.assert_close(seen.T @ seen / len(x), torch.eye(4, **exact), atol=0.015, rtol=0)
    torch.testing.assert_close((seen**4).mean(0), torch.full((4,), layers.FOURTH, **exact), rtol=0.03, atol=0)
    torch.testing.assert_close(features(-x), seen)
    torch.testing.assert_close(directions(5) @ directions(5).T, torch.eye(5, **exact))


def test_the_kernel_is_the_covariance_over_frames():
    x, z = normal(2, 1, 3)
    u = torch.nn.functional.normalize(
        torch.randn(1_000_000, 3, **exact, generator=torch.Generator().manual_seed(1)), dim=1
    )
    left, right = (((u @ one[0]).abs() - feature_map.MEAN) / feature_map.SPREAD for one in (x, z))
    torch.testing.assert_close((left * right).mean(), class_kernel(x, z)[0, 0], atol=0.005, rtol=0)
    torch.testing.assert_close((left**2).mean(), class_kernel(x, x)[0, 0], atol=0.005, rtol=0)


def test_inputs_and_noise_stay_whatever_the_prompt_holds():
    one, other = (FeatureMapPrompts(3, 2, given=given).draw(4, (0, 1)) for given in ("x", "features"))
    torch.testing.assert_close(one.context.y, other.context.y)
    torch.testing.assert_close(features(one.context.x), other.context.x)
