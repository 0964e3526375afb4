"""Two stages of pretraining: the first step is the gradient of the loss, and ridge in the dual is ridge in Gamma."""

import pytest
import torch

from flbook.lectures.in_context_learning.shared import attention_pretraining as pretraining
from flbook.lectures.in_context_learning.shared.attention_pretraining import Example
from flbook.lectures.in_context_learning.shared.relu_layer import ReLULayer
from flbook.lectures.in_context_learning.shared.single_index_prompts import SingleIndexPrompts

PROMPTS = SingleIndexPrompts(n=6, d=4, r=2, noise=0.3)


def example(count: int, step: int = 0) -> Example:
    batch = PROMPTS.draw(count, 0, step)
    return Example(batch.context, batch.query[:, 0], batch.observed[:, 0])


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_the_first_gradient_is_the_gradient_of_the_loss_at_small_gamma(spread):
    layer, (context, query, label) = ReLULayer.draw(5, 4, spread=spread), example(7)
    signs, size = torch.tensor([1.0, -1, 1, 1, -1]).double(), 1e-9
    w = layer.w.clone().requires_grad_()
    inside, asked = (torch.relu(x @ w.T + layer.b) for x in (context.x, query))
    c = torch.einsum("tn,tnm->tm", context.y, inside) / 6
    loss = (label - (c * size * signs * asked).sum(-1)).square().mean()
    (gradient,) = torch.autograd.grad(loss, w)
    pull = pretraining.first_gradient(layer, [example(7)])
    torch.testing.assert_close(-gradient / (2 * size * signs[:, None]), pull, rtol=1e-6, atol=1e-9)


def test_the_sign_of_a_task_drops_out_of_the_first_gradient():
    layer, (context, query, label) = ReLULayer.draw(5, 4), example(6)
    sign = torch.tensor([1.0, -1, -1, 1, -1, 1]).double()
    turned = Example(type(context)(context.x, sign[:, None] * context.y), query, sign * label)
    pulls = [pretraining.first_gradient(layer, [one]) for one in (Example(context, query, label), turned)]
    assert torch.equal(*pulls), "so a mean of zero of the link's coefficient does no harm"


def test_batches_add_up():
    layer, whole = ReLULayer.draw(5, 4), example(6)
    parts = [Example(type(whole.context)(*(p[k : k + 2] for p in whole.context)), whole.query[k : k + 2],
                     whole.label[k : k + 2]) for k in (0, 2, 4)]
    torch.testing.assert_close(pretraining.first_gradient(layer, parts), pretraining.first_gradient(layer, [whole]))
    (once,), (twice,) = (pretraining.summarise([layer], batches) for batches in ([whole], parts))
    for one, two in zip(once, twice, strict=True):
        torch.testing.assert_close(one, two)


def test_the_dual_is_ridge_regression_on_the_products():
    layer = ReLULayer.draw(5, 4, spread=1.0)
    (seen,) = pretraining.summarise([layer], [example(12)])
    alpha, lam = pretraining.dual_ridge(seen, 0.02), 0.02
    features = torch.einsum("tm,tl->tml", seen.c, seen.q).flatten(1)
    primal = torch.linalg.solve(features.T @ features / 12 + lam * torch.eye(25).double(), features.T @ seen.y / 12)
    torch.testing.assert_close(pretraining.gamma(seen, alpha).flatten(), primal)
    fresh = example(3, 1)
    c, q = layer.summary(fresh.context), layer(fresh.query)
    attention = pretraining.trained(layer, seen, lam * 12 / pretraining.unit_of_ridge(seen))
    predicted = pretraining.dual_prediction(seen, alpha)(c, q)
    torch.testing.assert_close(predicted, attention(fresh.context, fresh.query[:, None])[:, 0])
    torch.testing.assert_close(attention.gamma.flatten(), primal)
