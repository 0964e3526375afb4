r"""The best rate of networks with two hidden layers on digits, over their width, parametrisation, rule and loss.

Claims: the best rate of gradient descent on squared loss is the same from width 256 on under the neural tangent and the
maximal update parametrisation, and falls like 1/n under the standard one (measured; for one step derived in the
lecture); with cross-entropy it falls more slowly (Haas et al. 2025, read in the abstract).
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from flbook.data.ten_digits import ten_digits
from flbook.domains import Count, Natural
from flbook.lectures.representation.rate_transfer.three_layers import Loss, ThreeLayers
from flbook.runs import Experiment, Grid, among, axis, single_precision
from flbook.training.parametrisation import MAXIMAL_UPDATE, NEURAL_TANGENT, STANDARD, Parametrisation, Rule


class Tuning(NamedTuple):
    """A kind of training, and where the window of its rates lies: log2 at the base width, and its slope."""

    parametrisation: Parametrisation
    rule: Rule
    loss: Loss
    at_base: float
    slope: float
    orthogonal: bool = False


SERIES = {
    "standard": Tuning(STANDARD, "gradient descent", "squared", -5.0, -1.0),
    "tangent": Tuning(NEURAL_TANGENT, "gradient descent", "squared", -5.0, 0.0),
    "maximal": Tuning(MAXIMAL_UPDATE, "gradient descent", "squared", -5.0, 0.0),
    "maximal, orthogonal start": Tuning(MAXIMAL_UPDATE, "gradient descent", "squared", -5.0, 0.0, True),
    "standard, cross-entropy": Tuning(STANDARD, "gradient descent", "cross-entropy", -0.5, 0.0),
    "maximal, cross-entropy": Tuning(MAXIMAL_UPDATE, "gradient descent", "cross-entropy", -0.5, 0.0),
    "standard, Adam": Tuning(STANDARD, "Adam", "squared", -8.0, -1.0),
    "maximal, Adam": Tuning(MAXIMAL_UPDATE, "Adam", "squared", -8.0, 0.0),
}
DIVERGED = 10.0  # losses beyond count as this
FIRST = ("standard", "tangent", "maximal")


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on."""

    series: tuple[str, ...] = axis(FIRST, "training")
    width: tuple[Count, ...] = axis([64, 128, 256], "neurons N of a layer")
    seed: tuple[Natural, ...] = axis(range(3), "seed")
    octave: tuple[float, ...] = axis([k / 2 for k in range(-4, 4)], "octave of the window")
    samples: Count = 100
    steps: Count = 40
    base: Count = 64  # width at which all parametrisations are one network

    def check(self) -> None:
        """Refuse training that is not known, and more samples than there are."""
        among("series", self.series, SERIES)
        if self.samples > 1796:
            raise ValueError(f"samples must be at most 1796, the digits that there are; got {self.samples}")


experiment = Experiment(
    Setting, version=1, loops=("series", "width", "seed"), stored="longer",
    gives={"loss": ("training loss at the end", "1", ("series", "width", "seed", "octave")),
           "rate": ("rate η at the base width", "1", ("series", "width", "octave"))},
    presets={
        "tiny": ("Two narrow networks, a few steps", dict(
            width=(8, 16), seed=(0, 1), octave=(-1.0, 0.0, 1.0), samples=20, steps=3, base=8)),
        "longer": ("Four widths, three losses and rules, sixteen seeds", dict(
            series=tuple(SERIES), width=(64, 128, 256, 512), seed=tuple(range(16)))),
    },
)
experiment.kept(single_precision)


def window(s: Setting, name: str, width: int) -> Tensor:
    """The rates tried at one width: around the best at the base width, moved by the slope that is expected."""
    return around(s.octave, SERIES[name].at_base, SERIES[name].slope, width / s.base)


def around(octave: tuple[float, ...], at_base: float, slope: float, ratio: float) -> Tensor:
    """Rates some octaves around a middle, whose log2 moves by a slope with that of the size over the base size."""
    middle = at_base + slope * torch.log2(torch.tensor(ratio)).item()
    return 2.0 ** (middle + torch.tensor(octave, dtype=torch.float64))


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Train one width at all rates of its window."""
    parametrisation, rule, loss, _, _, orthogonal = SERIES[s.series]
    digits = ten_digits(s.samples, s.seed)
    x, classes = digits.x.flatten(1).float().to(device), digits.y.to(device)
    net = ThreeLayers(s.width, parametrisation, rule, loss, s.base, orthogonal)
    start = [w.to(device) for w in net.start(x.shape[-1], 10, s.seed)]
    lr = window(s, s.series, s.width)
    weights = net.trained(start, x, classes, lr.float().to(device), s.steps)
    loss = net.value(net.outputs(weights, x) - net.outputs(start, x), classes)
    return {"loss": loss.clamp(max=DIVERGED), "rate": lr}


run = experiment.run
