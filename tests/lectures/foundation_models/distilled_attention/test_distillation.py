"""Distillation: its measures by hand, a loss that falls, and members that do not feel each other."""

import numpy as np
import pytest
import torch

from flbook import rng
from flbook.lectures.foundation_models.distilled_attention import layer_costs
from flbook.lectures.foundation_models.distilled_attention.distillation import (
    distil,
    divergence,
    kernel_error,
    softmax_rows,
)
from flbook.lectures.foundation_models.distilled_attention.pixel_training import DATA, trained
from flbook.lectures.foundation_models.distilled_attention.random_feature_attention import RandomFeatureAttention
from flbook.models.transformer import softmax_attention
from flbook.training.pretrain import Recipe

Q, K = (rng.normal((6, 2, 12, 4), 0, role).float() for role in ("query", "key"))


def drawn(seed=(0, 1), features=5):
    return RandomFeatureAttention.draw(features, 2, 4, seed)


def test_rows_of_softmax_are_those_of_the_transformer():
    value = torch.eye(12).expand(6, 2, 12, 12)
    torch.testing.assert_close(softmax_rows(Q, K), softmax_attention(Q, K, value))


def test_measures_by_hand():
    one = drawn(seed=(0,)).requires_grad_(False)
    p, p_hat = softmax_rows(Q, K).double(), one.rows(Q[None], K[None])[0].double()
    kl = torch.special.xlogy(p, p) - torch.special.xlogy(p, p_hat)
    torch.testing.assert_close(divergence(one, Q, K)[0].double(), kl.sum(-1).mean(), rtol=1e-4, atol=0)
    torch.testing.assert_close(kernel_error(one, Q, K)[0].double(), ((p - p_hat) ** 2).sum(-1).mean())


def test_training_lowers_the_divergence_and_members_are_alone():
    before = divergence(drawn().requires_grad_(False), Q, K)
    both = distil(drawn(), Q, K, steps=40)
    assert (divergence(both, Q, K) < 0.5 * before).all()
    alone = distil(drawn((1,)), Q, K, steps=40)
    torch.testing.assert_close(both.z[1], alone.z[0], rtol=1e-3, atol=1e-4)
    still = distil(drawn(), Q, K, steps=0)
    assert torch.equal(still.z, drawn().z)


def test_constants_are_means_of_features_times_cost():
    costs = layer_costs.experiment.stored()
    by_hand = np.mean([[costs.excess.values[1, 2, m, s] * costs.features.values[m] for m in range(6)]
                       for s in range(10)])
    assert layer_costs.constants(costs)[1, 2] == pytest.approx(by_hand, rel=1e-5)
    with pytest.raises(ValueError, match=r"^layer must be a tuple .* in \[1, 4\]"):
        layer_costs.Setting(layer=(0,))


def test_training_lowers_the_loss_of_every_network():
    few = [trained(Recipe(steps=steps, batch=8, lr=5e-3, warmup=2), 2) for steps in (1, 12)]
    with torch.no_grad():
        before, after = (network.nats(DATA.test[:20][None]).mean(-1) for network in few)
    assert before.shape == (2,) and (after < before - 0.3).all()


def test_given_places_take_the_place_of_draws():
    """A loop of plain PyTorch from the same start and pictures ends at the same features and weights."""
    generator = torch.Generator().manual_seed(0)
    query, key = torch.randn(2, 9, 12, 4, generator=generator)
    z_0, places = torch.randn(5, 4, generator=generator), torch.randint(9, (20, 3), generator=generator)
    features = RandomFeatureAttention(z_0[None, None].clone())
    distil(features, query[:, None], key[:, None], places=places)
    z, weight = z_0.clone().requires_grad_(), torch.zeros(5, requires_grad=True)
    adam = torch.optim.Adam([{"params": [z], "lr": 0.05}, {"params": [weight], "lr": 0.1}], betas=(0.9, 0.98))
    for step, some in enumerate(places):
        q, k = query[some], key[some]
        for group, rate in zip(adam.param_groups, (0.05, 0.1), strict=True):
            group["lr"] = rate * (1 - step / 20)
        a, b = (x @ z.T / 4**0.25 - x.square().sum(-1, keepdim=True) / 4 for x in (q, k))
        kernel = (a.exp() @ (b + weight).exp().mT).tril()
        rows = kernel / kernel.sum(-1, keepdim=True)
        adam.zero_grad()
        (-(softmax_rows(q, k) * (rows + 1e-9).log()).sum(-1).mean()).backward()
        adam.step()
    torch.testing.assert_close(features.z[0, 0], z.detach(), rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(features.log_weight[0, 0], weight.detach(), rtol=1e-3, atol=1e-4)
