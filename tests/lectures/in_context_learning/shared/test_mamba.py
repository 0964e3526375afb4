"""The layer against its recursion, one step by hand, ensembles, and the sentences for bad input."""

import math

import pytest
import torch

from flbook.lectures.in_context_learning.shared.mamba import Mamba, SelectiveLayer, half_life, tokens
from flbook.shapes import Context


def drawn(layer):
    """All parameters at random."""
    for parameter in layer.parameters():
        parameter.data.normal_()
    return layer


def same(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)


def test_one_channel_by_hand():
    layer = SelectiveLayer(1, 1)
    for name, value in dict(w_b=0.0, b_b=2.0, w_c=0.0, b_c=3.0, w_delta=0.0, b_delta=math.log(math.e - 1)).items():
        getattr(layer, name).data.fill_(value)  # softplus of the last is 1: every token is held for a time 1
    kept = math.exp(-1)
    first = (1 - kept) * 2 * 5
    second = kept * first + (1 - kept) * 2 * 7
    u = torch.tensor([[5.0], [7.0]], dtype=torch.float64)
    torch.testing.assert_close(layer(u)[:, 0].tolist(), [3 * first, 3 * second])


def test_zero_order_hold_is_the_differential_equation():
    layer = SelectiveLayer(1, 1, a=0.7)
    layer.b_b.data.fill_(1.0)
    layer.b_delta.data.fill_(0.3)
    u = torch.full((1, 1), 2.0, dtype=torch.float64)
    time, state, steps = math.log1p(math.exp(0.3)), 0.0, 20000
    for _ in range(steps):  # h' = -a h + u
        state += time / steps * (-0.7 * state + 2.0)
    assert layer.states(u).item() == pytest.approx(state, rel=1e-4)


def test_weights_are_the_recursion_with_steps_that_depend_on_the_tokens():
    layer = drawn(SelectiveLayer(4, 6))
    u = torch.randn(3, 9, 4, dtype=torch.float64)
    states = layer.states(u)
    same(layer.last_state(u), states[:, -1])
    same(layer.read(states[:, -2], u[:, -1:])[:, 0], layer(u)[:, -1])


def test_long_prompts_neither_overflow_nor_vanish():
    layer = drawn(SelectiveLayer(3, 2))
    u = 30 * torch.randn(4000, 3, dtype=torch.float64)
    weights = layer.weights(u)
    assert weights.isfinite().all() and (weights >= 0).all() and weights.sum() > 0


def test_the_prediction_is_the_label_channel_at_the_query():
    model = drawn(Mamba(3, 5, n=7))
    context = Context(torch.randn(2, 7, 3, dtype=torch.float64), torch.randn(2, 7, dtype=torch.float64))
    query = torch.randn(2, 4, 3, dtype=torch.float64)
    asked = torch.cat([query, torch.zeros_like(query[..., :1])], -1)
    each = [SelectiveLayer.forward(model, torch.cat([tokens(context), asked[:, q : q + 1]], 1))[:, -1, -1] for q in
            range(4)]  # fmt: skip
    same(model(context, query), torch.stack(each, -1))


def test_a_token_counts_half_after_n_more():
    model = Mamba(2, 3, n=10)
    u = torch.zeros(11, 3, dtype=torch.float64)
    assert (model.weights(u)[0] / model.weights(u)[10]).item() == pytest.approx(0.5, rel=1e-10)
    assert math.log1p(math.exp(half_life(10))) == pytest.approx(math.log(2) / 10, rel=1e-12)


def test_made_by_hand_it_is_a_weighted_sum():
    gamma, alpha = torch.randn(3, 3, dtype=torch.float64), 0.8
    context = Context(torch.randn(5, 3, dtype=torch.float64), torch.randn(5, dtype=torch.float64))
    query = torch.randn(2, 3, dtype=torch.float64)
    omega = (1 - alpha) * alpha ** torch.arange(5, 0, -1, dtype=torch.float64)
    expected = torch.einsum("qd,dc,n,n,nc->q", query, gamma, omega, context.y, context.x)
    model = Mamba.of(gamma, alpha)
    same(model(context, query), expected)
    same(model.merged(), gamma)


def test_bad_input_gets_a_sentence():
    context = Context(torch.zeros(4, 3, dtype=torch.float64), torch.zeros(4, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"queries of shape \(1, 2\) do not fit a layer for d = 3"):
        Mamba(3, 5, n=4)(context, torch.zeros(1, 2, dtype=torch.float64))
