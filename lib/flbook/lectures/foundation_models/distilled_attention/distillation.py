r"""Distillation: features of linear attention trained on the rows of softmax attention, a layer on its own.

.. math:: L(z, \alpha) = -\sum_{i \le t} p_{ti}\log\hat p_{ti}, \qquad
          p_{ti} \propto e^{\langle q_t, k_i\rangle/\sqrt k}, \quad \hat p_{ti} \propto \hat K(q_t, k_i)

averaged over tokens t, heads and pictures. Queries and keys are those of the network with softmax, so layers do not
see each other, and the result for a layer depends on its own number of features only.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook import rng
from flbook.domains import Count, Natural, Positive, checked_arguments
from flbook.lectures.foundation_models.distilled_attention.random_feature_attention import RandomFeatureAttention

_LEAST = 1e-9  # added to a weight before its logarithm


def softmax_rows(query: Float[Tensor, "*B L k"], key: Float[Tensor, "*B L k"]) -> Float[Tensor, "*B L L"]:
    """The weights of causal softmax attention, a row for each token."""
    scores = query @ key.mT / query.shape[-1] ** 0.5
    later = torch.ones_like(scores[..., :1, :]).expand_as(scores).triu(1) > 0
    return scores.masked_fill(later, -torch.inf).softmax(-1)


@checked_arguments
def distil(features: RandomFeatureAttention, query: Float[Tensor, "n h L k"], key: Float[Tensor, "n h L k"],
           steps: Natural = 200, batch: Count = 4, lr: Positive = 0.05, lr_weight: Positive = 0.1,
           seed: Natural = 0, places: Int[Tensor, "steps batch"] | None = None) -> RandomFeatureAttention:
    """Train features in place by Adam, its step falling to 0, on batches of the n pictures; returns them.

    All members of an ensemble of features see the same pictures. lr: step size of the features, lr_weight: of the
    logarithms of their weights. places: numbers of the pictures of each step, in place of draws.
    """
    rates = {"z": lr, "log_weight": lr_weight}
    groups = [{"params": [p], "lr": rates[name]} for name, p in features.named_parameters()]
    optimizer = torch.optim.Adam(groups, betas=(0.9, 0.98))
    generator = rng.generator(seed, "pictures to distil on")
    drawn = torch.randint(len(query), (steps, batch), generator=generator) if places is None else places
    steps, places = len(drawn), drawn.to(query.device)
    for step in range(steps):
        for group, rate in zip(groups, rates.values(), strict=True):
            group["lr"] = rate * (1 - step / steps)
        q, k = query[places[step]], key[places[step]]
        loss = -(softmax_rows(q, k) * (features.rows(q[None], k[None]) + _LEAST).log()).sum(-1)
        optimizer.zero_grad()
        loss.mean((-3, -2, -1)).sum().backward()
        optimizer.step()
    return features.requires_grad_(False)


@torch.no_grad()
def divergence(features: RandomFeatureAttention, query: Float[Tensor, "n h L k"],
               key: Float[Tensor, "n h L k"]) -> Float[Tensor, "*E"]:
    """Kullback-Leibler divergence of the rows from those of softmax, averaged over rows and heads: nats."""
    exact = softmax_rows(query, key)
    ratio = (exact + _LEAST).log() - (features.rows(query[None], key[None]) + _LEAST).log()
    return (exact * ratio).sum(-1).mean((-3, -2, -1))


@torch.no_grad()
def kernel_error(features: RandomFeatureAttention, query: Float[Tensor, "n h L k"],
                 key: Float[Tensor, "n h L k"]) -> Float[Tensor, "*E"]:
    """Mean squared difference of a row from that of softmax, summed over the row: the L2 error."""
    return (softmax_rows(query, key) - features.rows(query[None], key[None])).square().sum(-1).mean((-3, -2, -1))
