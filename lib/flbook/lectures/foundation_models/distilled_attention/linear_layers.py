"""Layers of the trained transformers as linear attention: distilled once, and kept for the next who asks."""

import copy
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.domains import Checked, Count, Natural, Positive, Seeds, checked_arguments
from flbook.lectures.foundation_models.distilled_attention.distillation import distil
from flbook.lectures.foundation_models.distilled_attention.pixel_training import DATA, SHAPE, opened
from flbook.lectures.foundation_models.distilled_attention.pixel_transformer import PixelTransformer
from flbook.lectures.foundation_models.distilled_attention.random_feature_attention import RandomFeatureAttention

_AT_ONCE = 8  # pictures


@dataclass(frozen=True)
class Distilling(Checked):
    """How a layer's features are trained."""

    steps: Natural = 200
    batch: Count = 4  # pictures of a step
    lr: Positive = 0.05
    lr_weight: Positive = 0.1


@lru_cache
def attended(network: int = 0, training: int | None = None) -> list[tuple[Tensor, Tensor]]:
    """Queries and keys of every layer on the training pictures, (n, h, L, k).

    training: steps of a network that is not in the checkpoint.
    """
    return opened(network, training).queries_and_keys(DATA.train)


@checked_arguments
def linear_layer(how: Distilling, layer: Natural, features: Count, network: Natural = 0, seed: Seeds = (0,),
                 device: str = "cpu", training: Natural | None = None) -> RandomFeatureAttention:
    """One layer's attention with so many features per head, an ensemble over the seeds of their draws."""
    return _kept(how, layer, features, network, tuple(seed), device, training)


@lru_cache(maxsize=256)
def _kept(how: Distilling, layer: int, features: int, network: int, seed: tuple[int, ...],
          device: str, training: int | None) -> RandomFeatureAttention:
    query, key = (part.to(device) for part in attended(network, training)[layer])
    start = RandomFeatureAttention.draw(features, SHAPE["heads"], query.shape[-1], seed, f"features of layer {layer}")
    return distil(start.to(device), query, key, how.steps, how.batch, how.lr, how.lr_weight)


@torch.no_grad()
def test_nats(network: PixelTransformer, pictures: int = 297, device: str = "cpu") -> Float[Tensor, " E"]:
    """Test loss per pixel, for every draw of the features; of softmax attention one number."""
    network = copy.deepcopy(network).to(device)  # the one given stays where it is, for others who opened it
    attends = [block.attend for block in network.gpt.blocks]
    members = max([len(one.z) for one in attends if isinstance(one, RandomFeatureAttention)], default=1)
    parts = DATA.test[:pictures].to(device).split(_AT_ONCE)  # what fits into a cache is much faster
    return torch.cat([network.nats(part.expand(members, *part.shape)) for part in parts], -1).mean(-1)
