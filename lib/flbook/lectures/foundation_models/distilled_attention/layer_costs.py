r"""What a network loses when one of its layers alone attends by M features per head.

Claim (derived on the page from this measurement): the loss above softmax attention is :math:`A_s/M` in every layer s,
and the losses of all layers add up. Then the best shares of a budget are in proportion to :math:`\sqrt{A_s}`.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
import xarray as xr

from flbook.domains import Count, Natural, Positive, Range
from flbook.lectures.foundation_models.distilled_attention.distillation import divergence, kernel_error
from flbook.lectures.foundation_models.distilled_attention.linear_layers import (
    Distilling,
    attended,
    linear_layer,
    test_nats,
)
from flbook.lectures.foundation_models.distilled_attention.pixel_training import CHECKPOINT, NETWORKS, SHAPE, opened
from flbook.runs import Experiment, Grid, axis, single_precision

LAYERS = SHAPE["layers"]


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    network: tuple[Annotated[int, Range(0, NETWORKS - 1)], ...] = axis((0,), "network")
    layer: tuple[Annotated[int, Range(1, LAYERS)], ...] = axis(range(1, LAYERS + 1), "layer")
    features: tuple[Count, ...] = axis((4, 16, 64), "features per head M")
    seed: tuple[Natural, ...] = axis(range(100, 110), "seed")  # of the features; not those that shares are tested with
    steps: Natural = 200  # of distillation
    batch: Count = 4  # pictures of a step
    lr: Positive = 0.05
    pictures: Annotated[int, Range(1, 297)] = 297  # test pictures


experiment = Experiment(
    Setting, version=1, loops=("network", "layer", "features"), chunk={"network": 1, "layer": 1}, stored="longer",
    reads=(CHECKPOINT.name,),
    gives={
        "divergence": ("divergence of the rows from softmax", "nats"),
        "kernel_error": ("squared error of a row", "1"),
        "excess": ("loss above softmax", "nats per pixel"),
    },
    presets={
        "tiny": ("Two layers after two steps", dict(layer=(1, 4), features=(2, 3), seed=(0, 1), steps=2, pictures=3)),
        "longer": ("Three networks, a finer grid of features", dict(network=(0, 1, 2), features=(2, 4, 8, 16, 32, 64))),
    },
)
experiment.kept(single_precision)


@experiment.shared("network")
def with_softmax(s: Setting, device: str) -> torch.Tensor:
    """Test loss of the whole network."""
    return test_nats(opened(s.network), s.pictures, device)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Errors of attention's rows, and the loss, with one layer linear."""
    how, at = Distilling(s.steps, s.batch, s.lr), s.layer - 1
    network, some = opened(s.network), [part[:100].to(device) for part in attended(s.network)[at]]
    attend = linear_layer(how, at, s.features, s.network, s.seed, device)
    alone = network.attending([attend if k == at else None for k in range(LAYERS)])
    return {"divergence": divergence(attend, *some), "kernel_error": kernel_error(attend, *some),
            "excess": test_nats(alone, s.pictures, device) - with_softmax(s, device)}


run = experiment.run


def constants(costs: xr.Dataset) -> np.ndarray:
    r""":math:`A_s` of each layer: the mean over draws and features of M times the excess; (network, layer)."""
    return (costs.excess * costs.features).mean(("features", "seed")).transpose("network", "layer").values
