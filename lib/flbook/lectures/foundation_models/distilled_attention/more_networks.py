"""The rule on more networks of the recipe, which are trained here: how often it wins, and whether costs foretell it.

Networks 0 to 2 are those of the checkpoint; the others are not kept, only what is measured of them.
"""

from dataclasses import dataclass

import numpy as np
import torch

from flbook.domains import Count, Natural, Positive
from flbook.lectures.foundation_models import distilled_attention as one_network
from flbook.lectures.foundation_models.distilled_attention.linear_layers import Distilling, linear_layer, test_nats
from flbook.lectures.foundation_models.distilled_attention.pixel_training import RECIPE, SHAPE, opened
from flbook.lectures.foundation_models.distilled_attention.sharing import cheapest, shared
from flbook.runs import Experiment, Grid, axis, single_precision

LAYERS, RULES = SHAPE["layers"], ("equal", "rule", "measured")


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on."""

    network: tuple[Natural, ...] = axis((3, 4), "network")
    seed: tuple[Natural, ...] = axis(range(5), "seed")  # of the features that shares are tested with
    first: Natural = 100  # seed of the features that costs are measured with
    budget: Count = 16
    measured: tuple[Count, ...] = axis((4, 16), "features that costs are measured with")
    lam: Positive = 2.0**-8
    points: Count = 1000
    training: Count = RECIPE.steps  # of a network
    steps: Natural = 200  # of distillation
    pictures: Count = 297


experiment = Experiment(
    Setting, version=1, loops=("network",), chunk={"network": 1}, stored="longer",
    gives={
        "nats": ("test loss", "nats per pixel", ("network", "rule", "seed")),
        "features": ("features per head", "1", ("network", "rule", "layer")),
        "softmax": ("test loss with softmax", "nats per pixel", ("network",)),
        "dof": ("degrees of freedom of a layer", "1", ("network", "layer")),
        "cost": ("cost of a layer alone, times its features", "nats per pixel", ("network", "layer")),
    },
    beside={"layer": (range(1, LAYERS + 1), "layer"), "rule": (RULES, "how features are shared among the layers")},
    presets={
        "tiny": ("Two networks after two steps", dict(
            network=(3, 4), seed=(0, 1), points=40, training=2, steps=2, pictures=3)),
        "longer": ("Two networks: four minutes of one core", {}),
    },
)  # fmt: skip
experiment.kept(single_precision)


@experiment.cell
def cell(s: Setting, device: str) -> dict:
    """What one network costs by layers, and loses under three ways to share."""
    network, how = opened(s.network, s.training), Distilling(steps=s.steps)
    first = tuple(range(s.first, s.first + len(s.seed)))
    softmax = test_nats(network, s.pictures, device)[0]

    def loss(given, seeds):
        attends = [None if m is None else linear_layer(how, layer, int(m), s.network, seeds, device, s.training)
                   for layer, m in enumerate(given)]
        return test_nats(network.attending(attends), s.pictures, device)

    def cost_of(layer, features):
        alone = [features if at == layer else None for at in range(LAYERS)]
        return features * float((loss(alone, first) - softmax).mean())

    cost = np.array([np.mean([cost_of(layer, m) for m in s.measured]) for layer in range(LAYERS)])
    needs = one_network.dof(s.network, s.lam, s.points, s.training).max(-1)
    given = {"equal": np.full(LAYERS, s.budget), "rule": shared(needs, s.budget),
             "measured": cheapest(cost.clip(min=1e-6), s.budget)}
    return {"nats": torch.stack([loss(given[rule], s.seed) for rule in RULES]),
            "features": np.stack([given[rule] for rule in RULES]), "softmax": softmax, "dof": needs, "cost": cost}


run = experiment.run
