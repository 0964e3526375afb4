"""The transformer: a later token changes nothing before it, an ensemble is a loop, and its parameters are counted."""

import pytest
import torch

from flbook.data import LinearPrompts
from flbook.estimators import in_context
from flbook.models.transformer import GPT, PromptTransformer, small, standard, tiny
from flbook.shapes import Context

DATA = LinearPrompts(n=4, d=3)


def lively(**how):
    """A small network far from zero, so that everything matters."""
    return PromptTransformer(3, 4, 16, 2, 2, sigma_0=0.5, dtype=torch.float64, **how)


def prompt(batch=5, seed=0):
    drawn = DATA.draw(batch, seed)
    return drawn, torch.cat([drawn.context.x, drawn.query], -2), torch.cat([drawn.context.y, drawn.observed], -1)


@pytest.mark.parametrize("at", [0, 2, 4])
def test_a_later_token_does_not_change_an_earlier_prediction(at):
    model, (_, x, y) = lively(), prompt()
    before = model.predictions(x, y)
    other_y, other_x = y.clone(), x.clone()
    other_y[:, at] += 1.0
    after = model.predictions(x, other_y)
    assert torch.equal(after[:, : at + 1], before[:, : at + 1]), "a label is not seen by its own prediction"
    assert at == 4 or not torch.isclose(after[:, at + 1 :], before[:, at + 1 :]).any()
    other_x[:, at] += 1.0
    after = model.predictions(other_x, y)
    assert torch.equal(after[:, :at], before[:, :at]) and not torch.isclose(after[:, at:], before[:, at:]).any()


def test_called_as_a_predictor_it_gives_the_last_of_its_predictions():
    model, (drawn, x, y) = lively(), prompt()
    torch.testing.assert_close(model(drawn.context, drawn.query), model.predictions(x, y)[:, -1:])


def test_queries_do_not_see_each_other():
    drawn = LinearPrompts(n=4, d=3, queries=3).draw(2, seed=(0, 1))  # two leading axes, one network
    model = lively()
    both = model(drawn.context, drawn.query)
    assert both.shape == (2, 2, 3)
    torch.testing.assert_close(both[..., 1:2], model(drawn.context, drawn.query[..., 1:2, :]))
    assert both.shape == in_context.LeastSquares()(drawn.context, drawn.query).shape


def test_an_ensemble_is_the_loop():
    both, (drawn, x, y) = lively(seed=(3, 1)), prompt(seed=(0, 1))
    found, shared = both.predictions(x, y), both.predictions(x[:1], y[:1])
    for member, seed in enumerate((3, 1)):
        one = lively(seed=seed)
        torch.testing.assert_close(found[member], one.predictions(x[member], y[member]))
        torch.testing.assert_close(shared[member], one.predictions(x[0], y[0]))
        own = Context(drawn.context.x[member], drawn.context.y[member])
        torch.testing.assert_close(both(drawn.context, drawn.query)[member], one(own, drawn.query[member]))


def test_attention_by_hand():
    """One head, one layer, no MLP: a softmax average of values over what came before."""
    model = GPT(2, 1, 1, positions=3, sigma_0=0.7).double()
    block = model.blocks[0]
    torch.nn.init.zeros_(block.mlp_out.weight)
    x = torch.tensor([[[1.0, 2.0], [0.5, -1.0], [3.0, 0.0]]]).double()
    h = x[0] + model.position
    normed = torch.nn.functional.layer_norm(h, (2,))
    q, k, v = (normed @ block.query_key_value.weight).split(2, -1)
    weight = torch.softmax((q[2] * k).sum(-1) / 2**0.5, 0)
    expected = torch.nn.functional.layer_norm(h[2] + weight @ v @ block.output.weight, (2,))
    torch.testing.assert_close(model(x)[0, 2], expected)


@pytest.mark.parametrize(("make", "width", "layers"), [(tiny, 64, 3), (small, 128, 6), (standard, 256, 12)])
def test_parameters_are_counted(make, width, layers):
    model = make(20, 40)
    blocks = sum(p.numel() for p in model.gpt.blocks.parameters())
    assert blocks == layers * (12 * width**2 + 13 * width)
    rest = 81 * width + 2 * width + 22 * width + width + 1  # positions, last norm, read-in, read-out
    assert sum(p.numel() for p in model.parameters()) == blocks + rest


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: GPT(10, 1, 3, 5), "width must be a multiple of heads = 3; got 10"),
        (lambda: lively().predictions(torch.zeros(2, 6, 3).double(), torch.zeros(2, 6).double()), "at most 9 tokens"),
        (lambda: lively().predictions(torch.zeros(2, 4, 2).double(), torch.zeros(2, 4).double()), "d = 3 coordinates"),
    ],
)
def test_bad_input_is_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
