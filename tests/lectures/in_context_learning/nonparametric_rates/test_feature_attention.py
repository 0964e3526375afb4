"""Attention on features: the formula by hand, ensembles, frozen features, gradients."""

import pytest
import torch

from flbook.lectures.in_context_learning.nonparametric_rates.feature_attention import FeatureAttention
from flbook.shapes import Context


def drawn(*lead, n=6, d=3):
    return Context(torch.rand(*lead, n, d), torch.randn(*lead, n)), torch.rand(*lead, 2, d)


def test_it_is_the_formula():
    model = FeatureAttention((3, 5, 4), seed=1)
    context, query = drawn(7)
    guess, phi = model(context, query), model.features
    for b in range(7):
        means = sum(y * phi(x[None])[0] for x, y in zip(context.x[b], context.y[b], strict=True)) / 6
        torch.testing.assert_close(guess[b], phi(query[b]) @ (model.gamma.mT @ means))
    h = (2 * context.x @ model.weights_0 - model.weights_0.sum(0) + model.offsets_0).relu()
    torch.testing.assert_close(phi(context.x), h @ model.weights_1 + model.offsets_1)


def test_an_ensemble_is_its_members():
    both, (context, query) = FeatureAttention((3, 5, 4), seed=(0, 1)), drawn(2, 7)
    for k in range(2):
        alone = FeatureAttention((3, 5, 4), seed=k)
        torch.testing.assert_close(both(context, query)[k], alone(Context(context.x[k], context.y[k]), query[k]))


def test_frozen_features_have_no_gradient():
    model = FeatureAttention((3, 5, 4), frozen=True)
    assert [name for name, p in model.named_parameters() if p.requires_grad] == ["gamma"]


def test_bad_input_is_one_sentence():
    with pytest.raises(ValueError, match="widths must hold at least inputs and features"):
        FeatureAttention((3,))
    with pytest.raises(ValueError, match="context must hold at least one example"):
        FeatureAttention((3, 4))(Context(torch.zeros(1, 0, 3), torch.zeros(1, 0)), torch.zeros(1, 1, 3))
