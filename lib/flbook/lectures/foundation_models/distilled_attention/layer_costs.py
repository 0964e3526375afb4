r"""What a network loses when one of its layers alone attends by M features per head.

Claim (derived on the page from this measurement): the loss above softmax attention is :math:`A_s/M` in every layer s,
and the losses of all layers add up. Then the best shares of a budget are in proportion to :math:`\sqrt{A_s}`.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
import xarray as xr

from flbook import devices
from flbook.domains import Count, Natural, Positive, Range
from flbook.lectures.foundation_models.distilled_attention.distillation import divergence, kernel_error
from flbook.lectures.foundation_models.distilled_attention.linear_layers import (
    Distilling,
    attended,
    linear_layer,
    test_nats,
)
from flbook.lectures.foundation_models.distilled_attention.pixel_training import NETWORKS, SHAPE, opened
from flbook.runs import Grid, axis, labelled, single_precision, sweeps

VERSION = 1

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

    @classmethod
    def tiny(cls) -> "Setting":
        """Two layers after two steps."""
        return cls(layer=(1, 4), features=(2, 3), seed=(0, 1), steps=2, pictures=3)

    @classmethod
    def paper(cls) -> "Setting":
        """Three networks, a finer grid of features."""
        return cls(network=(0, 1, 2), features=(2, 4, 8, 16, 32, 64))


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Errors of attention's rows, and the loss, with one layer linear; dimensions (network, layer, features, seed).
    """
    devices.device(device)
    how, cells = Distilling(setting.steps, setting.batch, setting.lr), []
    for number in setting.network:
        network = opened(number)
        softmax = test_nats(network, setting.pictures, device)
        for layer in setting.layer:
            some = [part[:100].to(device) for part in attended(number)[layer - 1]]
            for features in setting.features:
                attend = linear_layer(how, layer - 1, features, number, setting.seed, device)
                alone = network.attending([attend if k == layer - 1 else None for k in range(LAYERS)])
                excess = test_nats(alone, setting.pictures, device) - softmax
                cells.append([divergence(attend, *some), kernel_error(attend, *some), excess])
    kl, l2, excess = (torch.stack(column) for column in zip(*cells, strict=True))
    dims = ("network", "layer", "features", "seed")
    return labelled({"divergence": (dims, kl, "divergence of the rows from softmax", "nats"),
                     "kernel_error": (dims, l2, "squared error of a row"),
                     "excess": (dims, excess, "loss above softmax", "nats per pixel")}, setting.coordinates())


run = sweeps(measure, chunk={"network": 1, "layer": 1})
stored = single_precision


def constants(costs: xr.Dataset) -> np.ndarray:
    r""":math:`A_s` of each layer: the mean over draws and features of M times the excess; (network, layer)."""
    return (costs.excess * costs.features).mean(("features", "seed")).transpose("network", "layer").values
