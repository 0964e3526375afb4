"""Linear attention: merged, in layers, with features; gradient descent by construction; the warning about length."""

import warnings

import pytest
import torch

from flbook import rng
from flbook.data.prompts import LinearPrompts
from flbook.estimators import GradientStep
from flbook.lectures.in_context_learning.shared.attention import LinearAttention, LinearTransformer
from flbook.models.layers import MLP
from flbook.shapes import Context

COVARIANCE = torch.tensor([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 0.3]]).double()
PROMPTS = LinearPrompts(n=6, d=3, covariance=COVARIANCE, noise=0.2, queries=4)
GAMMA = rng.normal((3, 3), 1, "gamma")


def test_the_merged_layer_is_its_formula():
    context, query, *_ = PROMPTS.draw(5, 0)
    expected = sum(context.y[:, i, None] * torch.einsum("bd,de,bqe->bq", context.x[:, i], GAMMA, query)
                   for i in range(6)) / 6
    torch.testing.assert_close(LinearAttention(GAMMA)(context, query), expected)
    many = LinearAttention(torch.stack([GAMMA, 2 * GAMMA])[:, None])(context, query)
    torch.testing.assert_close(many, torch.stack([expected, 2 * expected]))


def test_one_layer_of_the_transformer_is_the_merged_one():
    context, query, *_ = PROMPTS.draw(5, 0)
    model = LinearTransformer.descent(GAMMA[None])
    torch.testing.assert_close(model(context, query), LinearAttention(GAMMA)(context, query))


def test_layers_are_gradient_steps():
    context, query, *_ = PROMPTS.draw(5, 0)
    etas = (0.3, 0.1, 0.5)
    model = LinearTransformer.descent(torch.stack([eta * torch.eye(3).double() for eta in etas]))
    torch.testing.assert_close(model(context, query), GradientStep(etas)(context, query))


def test_bent_layers_are_gradient_steps_on_moved_inputs():
    context, query, *_ = PROMPTS.draw(5, 0)
    gamma, bend = rng.normal((2, 3, 3), 2, "gamma"), rng.normal((2, 3, 3), 3, "bend")
    second = torch.einsum("bnd,bne->bde", context.x, context.x) / 6
    residual = context.y - LinearAttention(gamma[0])(context, context.x)
    move = torch.eye(3).double() - bend[0] @ second @ gamma[0]
    moved = Context(torch.einsum("bnd,bed->bne", context.x, move), residual)
    shifted = torch.einsum("bqd,bed->bqe", query, move)
    expected = LinearAttention(gamma[0])(context, query) + LinearAttention(gamma[1])(moved, shifted)
    torch.testing.assert_close(LinearTransformer.descent(gamma, bend)(context, query), expected)


@pytest.mark.parametrize("masked", [True, False])
def test_tokens_one_by_one(masked):
    context, query, *_ = LinearPrompts(n=4, d=2).draw(1, 0)
    model = LinearTransformer(2, 2, start=0.5, masked=masked, seed=1, dtype=torch.float64)
    z = torch.cat([torch.cat([context.x[0], context.y[0][:, None]], 1),
                   torch.cat([query[0], torch.zeros(1, 1).double()], 1)])
    for p, q in zip(model.p, model.q, strict=True):
        read = z[:4] if masked else z
        z = torch.stack([one + p @ sum(other * (other @ q @ one) for other in read) / 4 for one in z])
    torch.testing.assert_close(model(context, query)[0, 0], -z[4, 2])


def test_an_ensemble_is_its_members():
    context, query, *_ = PROMPTS.draw(5, (0, 1))
    model = LinearTransformer(3, 2, start=0.4, seed=(7, 8), dtype=torch.float64)
    model.p, model.q = (torch.nn.Parameter(part[:, None]) for part in (model.p, model.q))
    alone = LinearTransformer(3, 2, start=0.4, seed=8, dtype=torch.float64)
    one = alone(Context(context.x[1], context.y[1]), query[1])
    torch.testing.assert_close(model(context, query)[1], one)


def test_features_are_applied_to_examples_and_query():
    context, query, *_ = PROMPTS.draw(5, 0)
    features = MLP((3, 8, 5), seed=4, dtype=torch.float64)
    gamma = rng.normal((5, 5), 1, "gamma")
    found = LinearAttention(gamma, features=features)(context, query)
    mapped = LinearAttention(gamma)(Context(features(context.x), context.y), features(query))
    torch.testing.assert_close(found, mapped)
    found.sum().backward()
    assert all(part.grad.abs().sum() > 0 for part in features.parameters())


def test_another_length_warns_with_the_floor():
    context, query, *_ = PROMPTS.draw(5, 0)
    second = torch.einsum("bnd,bne->de", context.x, context.x) / 30
    missing = torch.eye(3).double() - second @ GAMMA
    floor = float(torch.trace(missing @ second @ missing.T))
    with pytest.warns(UserWarning, match=rf"trained on prompts of n = 20 .* n = 6: .* below {floor:.4g}"):
        LinearAttention(GAMMA, n=20)(context, query)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LinearAttention(GAMMA, n=6)(context, query)


@pytest.mark.parametrize("make, message", [
    (lambda: LinearAttention(torch.eye(4).double())(*PROMPTS.draw(2, 0)[:2]), "do not fit a gamma"),
    (lambda: LinearAttention(GAMMA)(Context(torch.ones(2, 0, 3).double(), torch.ones(2, 0).double()),
                                    torch.ones(2, 1, 3).double()), "at least one example"),
    (lambda: LinearTransformer(4)(*PROMPTS.draw(2, 0)[:2]), "do not fit layers"),
])
def test_bad_input_is_one_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()
