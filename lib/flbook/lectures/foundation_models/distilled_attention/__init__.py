r"""A small transformer over pixels, its softmax attention distilled to linear attention under a budget of features.

Claim (Nishikawa, Higuchi and Suzuki 2025, Section 5; an observation): at the same number of features, sharing them
among the layers in proportion to their degrees of freedom gives a better network than equal shares. The rivals are
the rule reversed or shuffled, the root of it, and the best shares by what each layer was measured to cost.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal, get_args

import numpy as np
import torch

from flbook import rng
from flbook.domains import Count, Natural, Positive, Range
from flbook.lectures.foundation_models.distilled_attention import layer_costs, sharing
from flbook.lectures.foundation_models.distilled_attention.linear_layers import (
    Distilling,
    attended,
    linear_layer,
    test_nats,
)
from flbook.lectures.foundation_models.distilled_attention.pixel_training import (
    CHECKPOINT,
    NETWORKS,
    SHAPE,
    about,
    opened,
    trained,
)
from flbook.lectures.foundation_models.distilled_attention.pixel_transformer import PixelTransformer
from flbook.lectures.foundation_models.shared.degrees_of_freedom import (
    attention_gram,
    degrees_of_freedom,
    drawn_tokens,
    gram_spectrum,
)
from flbook.runs import Experiment, Grid, axis, checkpoints, single_precision

Rule = Literal["equal", "rule", "rule, larger λ", "root", "reversed", "shuffled", "measured"]
LAYERS = SHAPE["layers"]
LARGER = 2.0**-4  # the other λ
Network = Annotated[int, Range(0, NETWORKS - 1)]


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep. In the book: what a page computes."""

    rule: tuple[Rule, ...] = axis(("equal", "rule"), "how features are shared among the layers")
    budget: tuple[Count, ...] = axis((16,), "features per head, averaged over layers")
    network: tuple[Network, ...] = axis((0,), "network")
    seed: tuple[Natural, ...] = axis(range(10), "seed")  # of the features
    lam: Positive = 2.0**-8  # λ of the degrees of freedom
    points: Count = 1000  # J, tokens of a Gram matrix
    steps: Natural = 200  # of distillation
    batch: Count = 4  # pictures of a step
    lr: Positive = 0.05
    pictures: Annotated[int, Range(1, 297)] = 297  # test pictures

    @property
    def how(self) -> Distilling:
        """How features are trained."""
        return Distilling(self.steps, self.batch, self.lr)


LOOPS = ("rule", "budget", "network")
GIVES = {
    "nats": ("test loss", "nats per pixel"),
    "features": ("features per head", "1", (*LOOPS, "layer")),
    "softmax": ("test loss with softmax", "nats per pixel", ("network",)),
}
BESIDE = {"layer": (range(1, LAYERS + 1), "layer")}

experiment = Experiment(
    Setting, version=1, loops=LOOPS, chunk={"rule": 1, "budget": 1, "network": 1}, stored="longer", gives=GIVES,
    beside=BESIDE, reads=(CHECKPOINT.name,),
    presets={
        "tiny": ("Every way to share, after two steps", dict(
            rule=get_args(Rule), budget=(2, 3), network=(0, 1), seed=(0, 1), points=60, steps=2, pictures=3)),
        "longer": ("Every way to share, three budgets", dict(rule=get_args(Rule), budget=(8, 16, 32))),
    },
)
experiment.kept(single_precision)


@experiment.shared("network")
def with_softmax(s: Setting, device: str) -> torch.Tensor:
    """Test loss of the network that is distilled."""
    return test_nats(opened(s.network), s.pictures, device)[0]


@experiment.cell
def cell(s: Setting, device: str) -> dict:
    """Test loss of one way to share a budget on one network, and what it gives each layer."""
    numbers = shares(s, s.rule, s.budget, s.network, device)
    loss = (shuffled(s, numbers, s.network, device) if s.rule == "shuffled" else
            test_nats(distilled(s, numbers, s.network, device), s.pictures, device))
    return {"nats": loss, "features": numbers, "softmax": with_softmax(s, device)}


run = experiment.run


def dof(network: int = 0, lam: float = 2.0**-8, points: int = 1000, training: int | None = None) -> np.ndarray:
    """Degrees of freedom of each head, (layers, heads), from a Gram matrix over so many of its queries and keys."""
    return degrees_of_freedom(_spectra(network, points, training), lam)


@lru_cache
def _spectra(network: int, points: int, training: int | None) -> np.ndarray:
    """Eigenvalues of the Gram matrices over J, (layers, heads, J)."""
    found = []
    for query, key in attended(network, training):
        tokens = torch.cat([query, key]).transpose(0, 1).flatten(1, 2)  # (h, 2 n L, k)
        found.append([gram_spectrum(attention_gram(drawn_tokens(head.numpy(), points))) for head in tokens])
    return np.array(found)


def shares(setting: Setting, rule: str, budget: int, network: int = 0, device: str = "cpu") -> np.ndarray:
    """Features per head of each layer under one way to share; their sum is the budget times the layers."""
    if rule == "equal":
        return np.full(LAYERS, budget)
    if rule == "measured":
        costs = layer_costs.Setting(network=(network,), steps=setting.steps, batch=setting.batch, lr=setting.lr,
                                    pictures=setting.pictures)
        constants = layer_costs.constants(layer_costs.run(costs, device, progress=False))[0]
        return sharing.cheapest(constants, budget)
    needs = dof(network, LARGER if rule == "rule, larger λ" else setting.lam, setting.points).max(-1)
    found = sharing.shared(np.sqrt(needs) if rule == "root" else needs, budget)
    if rule == "reversed":
        found[np.argsort(needs)] = np.sort(found)[::-1]
    return found


def distilled(setting: Setting, numbers, network: int = 0, device: str = "cpu") -> PixelTransformer:
    """The network with linear attention in every layer, of these numbers of features, for every draw of them."""
    return opened(network).attending([linear_layer(setting.how, layer, int(features), network, setting.seed, device)
                                      for layer, features in enumerate(numbers)])


def shuffled(setting: Setting, numbers, network: int = 0, device: str = "cpu") -> torch.Tensor:
    """Test loss where each draw of features has the numbers in an order of its own."""
    found = []
    for seed in setting.seed:
        order = rng.numpy_generator(seed, f"order of the layers, {sum(numbers)}").permutation(numbers)
        attends = [linear_layer(setting.how, layer, int(features), network, (seed,), device)
                   for layer, features in enumerate(order)]
        found.append(test_nats(opened(network).attending(attends), setting.pictures, device))
    return torch.cat(found)


def keep() -> None:
    """Train the networks, and store the checkpoint; a run that was killed goes on."""
    weights = trained(checkpoint=experiment.training_file(about())).state_dict()
    checkpoints.save(CHECKPOINT, weights, about(), torch.float16)
