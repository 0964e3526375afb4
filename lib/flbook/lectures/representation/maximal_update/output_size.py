r"""Across the border: output weights of the size :math:`n^{-p}`, and rates that keep the output's speed at every width.

Claim (derived in the lecture): with the rates :math:`\eta n^{2p - 1}, \eta n^{2p - 2}, \eta n^{-1}` the function moves
alike at every width, and both hidden layers move like :math:`n^{p - 1}` while the output weights are near their start:
p = 1/2 is the neural tangent parametrisation, p = 1 maximal update.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from flbook import devices
from flbook.domains import Count, Natural, Positive
from flbook.lectures.representation import maximal_update as lecture
from flbook.lectures.representation.maximal_update import two_hidden_layers as network
from flbook.runs import Experiment, Grid, axis
from flbook.training.parametrisation import Parametrisation


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    p: tuple[float, ...] = axis([0.5, 0.75, 1.0, 1.125], "output size p")
    width: tuple[Count, ...] = axis([64, 128, 256], "width n")
    step: tuple[Count, ...] = axis([1, 20], "step")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    base: Count = 64
    samples: Count = 64
    lr: Positive = 0.03

    def check(self) -> None:
        """Refuse a width below the base; an exponent that is no number is outside its domain."""
        lecture.above_base(self.width, self.base)


DIMS = ("layer", "p", "width", "step", "seed")
experiment = Experiment(
    Setting, version=1, loops=("width",), chunk={"width": 1, "seed": 4}, stored="longer",
    gives={"moved": ("root mean square change Δ", "1", DIMS)},
    beside={"layer": (network.LAYERS, "layer")},
    presets={
        "tiny": ("Three small networks", dict(
            p=(0.5, 1.0), width=(16, 32, 64), base=16, samples=10, seed=(0, 1, 2), step=(1, 3))),
        "longer": ("Six sizes, widths up to 512, and 80 steps", dict(
            p=(0.5, 0.625, 0.75, 0.875, 1.0, 1.125), width=(64, 128, 256, 512), step=(1, 10, 40, 80))),
    },
)  # fmt: skip


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Train the networks of one width; the axes are layer, p, step, seed."""
    chosen, found = [of_size(p) for p in s.p], []
    for seed in s.seed:
        x, y = (part.to(devices.device(device)) for part in lecture.parity(s.samples, seed))
        begin = network.start(s.width, s.base, x, seed, chosen)
        steps = network.rates(s.width, s.base, s.lr, chosen, "gradient descent")
        found.append(network.moved(begin, x, y, network.Weights(*(lr.to(x) for lr in steps)), s.step))
    return {"moved": torch.stack(found, -1)}


run = experiment.run


def of_size(p: float) -> Parametrisation:
    """Output weights of the size n^-p, and the largest rates at which no layer makes the output grow with the width."""
    return Parametrisation((0.0, -0.5, -p), (2 * p - 1, 2 * p - 2, -1.0))
