"""Training of the networks that this lecture takes apart: three minutes on a core, kept as a checkpoint.

It is made again by ``python -c "from flbook.lectures.foundation_models.distilled_attention import keep; keep()"``.
"""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import torch

from flbook.domains import Natural, checked_arguments
from flbook.lectures.foundation_models.distilled_attention.pixel_sequences import PixelSequences
from flbook.lectures.foundation_models.distilled_attention.pixel_transformer import PixelTransformer
from flbook.runs import checkpoints
from flbook.training.pretrain import Recipe, pretrain

CHECKPOINT = Path(__file__).with_name("distilled_attention.safetensors")
NETWORKS = 3  # one ensemble
DATA = PixelSequences(n=1500)
SHAPE = {"width": 32, "layers": 4, "heads": 2}
RECIPE = Recipe(steps=1600, batch=32, lr=5e-3, warmup=100, beta_2=0.98, weight_decay=0.1)


def nats_of(network, batch):
    """The loss of training: nats per pixel, of each network."""
    return network.nats(batch.tokens).mean(-1)


def trained(recipe: Recipe = RECIPE, networks: int = NETWORKS, checkpoint: Path | None = None) -> PixelTransformer:
    """The networks, trained as an ensemble; a file keeps the run, from which it resumes."""
    seeds = tuple(range(networks))
    return pretrain(PixelTransformer(**SHAPE, seed=seeds), DATA, recipe, seeds, loss=nats_of, checkpoint=checkpoint,
                    every=100).model


def about() -> dict:
    """What the checkpoint depends on."""
    return {"experiment": "distilled_attention", "data": DATA, "recipe": RECIPE, "networks": NETWORKS, **SHAPE}


@lru_cache
@checked_arguments
def opened(network: Natural = 0, steps: Natural | None = None) -> PixelTransformer:
    """One of the trained networks. Its weights are stored as float16 and computed with as float32.

    steps: train another network of the recipe, with so many steps, in place of one of the checkpoint.
    """
    if steps is not None:
        one = pretrain(PixelTransformer(**SHAPE, seed=network), DATA, replace(RECIPE, steps=steps), network,
                       loss=nats_of).model
        return one.requires_grad_(False)
    kept = checkpoints.load(CHECKPOINT, about(), dtype=torch.float32)
    if network >= NETWORKS:
        raise ValueError(f"network must be below {NETWORKS}, the networks of the checkpoint; got {network}")
    model = PixelTransformer(**SHAPE)
    model.load_state_dict({name: tensor[network] for name, tensor in kept.items()})
    return model.requires_grad_(False)
