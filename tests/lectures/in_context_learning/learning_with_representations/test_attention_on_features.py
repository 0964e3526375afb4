"""One layer of attention on features: one gradient step, the levels of its risk, and spare features."""

import pytest
import torch

from flbook.estimators import GradientStep
from flbook.lectures.in_context_learning import learning_with_representations as lecture
from flbook.lectures.in_context_learning.learning_with_representations import attention_on_features as layers
from flbook.lectures.in_context_learning.learning_with_representations.attention_on_features import AttentionOnFeatures
from flbook.lectures.in_context_learning.learning_with_representations.feature_map import (
    FeatureMapPrompts,
    directions,
    features,
)
from flbook.shapes import Context


def test_with_the_true_rows_it_is_one_gradient_step_and_every_feature_twice_is_the_same():
    drawn = FeatureMapPrompts(6, 4).draw(5, 0)
    step = GradientStep(0.7)(Context(features(drawn.context.x), drawn.context.y), features(drawn.query))
    once = AttentionOnFeatures.with_start(directions(4), 0.7)(drawn.context, drawn.query)
    twice = AttentionOnFeatures.with_start(directions(4).repeat(2, 1), 0.35)(drawn.context, drawn.query)
    torch.testing.assert_close(once, step)
    torch.testing.assert_close(twice, step)


@pytest.mark.parametrize("found", [1, 2, 3])
def test_the_levels_are_the_risks_of_layers_that_found_so_many(found):
    drawn = FeatureMapPrompts(8, 3, noise=0.5).draw(200_000, 0)
    eta = layers.best_step(8, 3, 0.5)

    @torch.no_grad()
    def risk(step: float) -> float:
        answer = AttentionOnFeatures.with_start(directions(3)[:found], step)(drawn.context, drawn.query)
        return float((answer - drawn.target).square().mean())

    assert risk(eta) == pytest.approx(layers.rung(found, 8, 3, 0.5), rel=0.03)
    assert risk(eta) < min(risk(0.7 * eta), risk(1.4 * eta))


def test_the_risk_of_the_trained_layer_falls():
    early, late = (lecture.learned_attention(6, (0, 1), steps, batch=32, points=500).mean() for steps in (1, 150))
    assert late < early - 0.2
