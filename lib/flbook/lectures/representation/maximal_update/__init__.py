r"""Coordinate check: by how much do the layers of a network of two hidden layers move, as a power of the width?

Claim (derived in the lecture; Yang and Hu 2021, Definition 5.1): with output weights of the size :math:`n^{-p}` and
rates :math:`\eta n^{r_l}` the layers move in a step of gradient descent like :math:`n^{r_1 - p}`,
:math:`n^{r_2 + 1 - p}` and :math:`n^{r_3 + 1}`. All of them move alike at every width, and the output stays bounded,
for p = 1 and r = (1, 0, -1) only: maximal update.

Differs from the paper: digits, tanh, one output that tells even digits from odd ones; a few steps.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import xarray as xr
from torch import Tensor

from flbook import devices, fits
from flbook.data.ten_digits import ten_digits
from flbook.domains import Count, Natural, Positive
from flbook.lectures.representation.maximal_update import two_hidden_layers as network
from flbook.runs import Experiment, Grid, axis
from flbook.training import parametrisation as known

NAMES = {
    "standard": known.STANDARD,
    "standard, rate/n": known.STANDARD_SLOW,
    "neural tangent": known.NEURAL_TANGENT,
    "maximal update": known.MAXIMAL_UPDATE,
    "no multiplier": known.NO_MULTIPLIER,
}
STABLE = ("standard, rate/n", "neural tangent", "maximal update")
RULES = ("gradient descent", "Adam")


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    rule: tuple[Literal[RULES], ...] = axis(["gradient descent"], "rule")
    parametrisation: tuple[Literal[tuple(NAMES)], ...] = axis(tuple(NAMES), "parametrisation")
    width: tuple[Count, ...] = axis([64, 128, 256, 512, 1024], "width n")
    step: tuple[Count, ...] = axis([1], "step")
    seed: tuple[Natural, ...] = axis(range(16), "seed")
    base: Count = 64  # the width at which all of them are the same network
    samples: Count = 64  # digits
    lr: Positive = 0.01  # of gradient descent, at the base width
    adam: Positive = 5e-4  # of Adam, there

    def check(self) -> None:
        """Refuse a width below the base."""
        above_base(self.width, self.base)


def above_base(widths: tuple[int, ...], base: int) -> None:
    """Refuse networks that are narrower than the one they are compared with."""
    if min(widths) < base:
        raise ValueError(f"width must be at least base = {base}, the width that the others are compared with; "
                         f"got {min(widths)}")


DIMS = ("layer", "rule", "parametrisation", "width", "step", "seed")
experiment = Experiment(
    Setting, version=1, loops=("rule", "width"), chunk={"rule": 1, "width": 1, "seed": 4}, stored="longer",
    gives={"moved": ("root mean square change Δ", "1", DIMS)},
    beside={"layer": (network.LAYERS, "layer")},
    presets={
        "tiny": ("Three small networks, two steps", dict(
            width=(16, 32, 64), base=16, samples=10, seed=(0, 1, 2), step=(1, 2), rule=RULES)),
        "longer": ("Widths up to 2048, and Adam", dict(
            rule=RULES, width=(64, 128, 256, 512, 1024, 2048), seed=tuple(range(12)))),
        "ten": ("Ten steps of those that do not explode", dict(
            rule=RULES, parametrisation=STABLE, step=(10,), seed=tuple(range(10)))),
    },
)  # fmt: skip


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Train the networks of one width by one rule; the axes are layer, parametrisation, step, seed."""
    chosen = [NAMES[name] for name in s.parametrisation]
    rate = s.adam if s.rule == "Adam" else s.lr
    found = []
    for seed in s.seed:  # one at a time: the hidden weights of the widest network fill the cache
        x, y = (part.to(devices.device(device)) for part in parity(s.samples, seed))
        begin = network.start(s.width, s.base, x, seed, chosen)
        steps = network.Weights(*(lr.to(x) for lr in network.rates(s.width, s.base, rate, chosen, s.rule)))
        found.append(network.moved(begin, x, y, steps, s.step, s.rule))
    return {"moved": torch.stack(found, -1)}


run = experiment.run


def exponents(moved: xr.DataArray) -> dict[tuple[str, str], fits.Fit]:
    """Exponents in the width, by (parametrisation, layer). moved: (layer, parametrisation, width, seed)."""
    return {(str(name), str(layer)): fits.exponent(moved.sel(parametrisation=name, layer=layer, drop=True), "width")
            for name in moved.parametrisation.values for layer in moved.layer.values}


def parity(samples: int, seed: int) -> tuple[Tensor, Tensor]:
    """Digits of mean square length 1, shape (samples, 64), and +1 for even ones, -1 for odd ones."""
    split = ten_digits(samples, seed)
    return split.x.flatten(1) / split.x[0].numel() ** 0.5, 1 - 2 * (split.y % 2).double()
