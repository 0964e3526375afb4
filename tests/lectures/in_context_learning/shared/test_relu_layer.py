"""Attention over neurons: features by hand, prefixes of a prompt, one call for a batch, and what it refuses."""

import pytest
import torch

from flbook.lectures.in_context_learning.shared.attention import LinearAttention
from flbook.lectures.in_context_learning.shared.relu_layer import ReLULayer
from flbook.lectures.in_context_learning.shared.single_index_prompts import SingleIndexPrompts
from flbook.shapes import Context


def test_features_and_prediction_by_hand():
    layer = ReLULayer(torch.tensor([[1.0, 0.0], [0.0, -1.0]]).double(), torch.tensor([0.0, 1.0]).double())
    x = torch.tensor([[2.0, 3.0], [-1.0, 0.5]]).double()
    torch.testing.assert_close(layer(x), torch.tensor([[2.0, 0.0], [0.0, 0.5]]).double())
    context = Context(x, torch.tensor([1.0, -4.0]).double())
    c = layer.summary(context)
    torch.testing.assert_close(c, torch.tensor([1.0, -1.0]).double())
    gamma = torch.tensor([[1.0, 2.0], [3.0, 5.0]]).double()
    torch.testing.assert_close(LinearAttention(gamma, features=layer)(context, x[:1]), c @ gamma @ layer(x[:1]).T)


def test_drawn_neurons_are_unit_vectors_and_one_number_scales_them():
    layer = ReLULayer.draw(200, 6, seed=3, spread=1.5)
    torch.testing.assert_close(layer.w.square().sum(-1), torch.ones(200).double())
    assert layer.b.abs().max() <= 1.5 and layer.b.std() > 0.7
    assert torch.equal(layer.w, ReLULayer.draw(200, 6, seed=3).w) and not ReLULayer.draw(200, 6, seed=3).b.any()
    moved = layer.pointed(3 * layer.w + 1)
    assert moved.w.square().sum(-1).mean().item() == pytest.approx(1) and torch.equal(moved.b, layer.b)
    assert layer.alignment(6).item() == pytest.approx(1) and layer.alignment(3).item() == pytest.approx(0.5, abs=0.05)


def test_prefixes_of_a_prompt_are_prompts():
    layer, prompts = ReLULayer.draw(7, 4, spread=1.0), SingleIndexPrompts(n=9, d=4).draw(3, seed=1)
    every = layer.summaries(prompts.context, (2, 9))
    for place, n in enumerate((2, 9)):
        part = Context(prompts.context.x[:, :n], prompts.context.y[:, :n])
        torch.testing.assert_close(every[:, place], layer.summary(part))


def test_bad_input_is_one_sentence():
    layer, prompts = ReLULayer.draw(7, 4), SingleIndexPrompts(n=9, d=4).draw(3, seed=1)
    with pytest.raises(ValueError, match=r"inputs of shape \(3, 9, 3\) do not fit"):
        layer(prompts.context.x[..., :3])
    with pytest.raises(ValueError, match="lengths must lie between 1 and the prompt's n = 9"):
        layer.summaries(prompts.context, (3, 10))
