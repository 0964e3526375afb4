r"""The loss path kernel's bound for a small convolutional network, beside the gap, with true labels and with coins.

Claims: what the page finds in two layers is found here: on few images the bound is larger for coins, on many it is
smaller, and the gap is larger for coins in either case.

The network: two layers of 3 x 3 filters with tanh, without pooling, all weights trained, the read-out from 0.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from flbook import devices
from flbook.domains import Count, Natural, Positive, Probability, Range
from flbook.lectures.representation.loss_path_kernel.path_kernel import ball_bound, loss_path
from flbook.lectures.representation.loss_path_kernel.redrawn_labels import RedrawnLabels, even_or_odd
from flbook.models import tanh
from flbook.models.convnet import ConvNet
from flbook.models.start import with_start
from flbook.runs import Experiment, Grid, axis, single_precision
from flbook.training.losses import logistic
from flbook.training.network import Training


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: a glance at few images."""

    portion: tuple[Probability, ...] = axis([0.0, 1.0], "portion of redrawn labels")  # in the test set, too
    n: tuple[Annotated[int, Range(1, 1796)], ...] = axis([60], "training images n")
    seed: tuple[Natural, ...] = axis(range(2), "seed")
    filters: Count = 8  # of the first layer; twice as many in the second
    time: Positive = 20.0  # of the gradient flow in all weights
    steps: Count = 60


experiment = Experiment(
    Setting, version=1, loops=("n",), chunk={"n": 1, "seed": 2}, stored="longer",
    gives={"train_error": ("training error", "fraction"), "gap": ("gap: test less training loss", "nats"),
           "own": ("own work tr K / n²", "nats"), "lpk": ("loss path kernel's bound", "nats")},
    presets={
        "tiny": ("Two filters a layer, a short path", dict(
            portion=(1.0,), n=(8, 12), seed=(0, 1), filters=2, time=2.0, steps=3)),
        "longer": ("Few and many images; samples that nobody had seen when the claim was written", dict(
            n=(60, 480), seed=tuple(range(10, 30)))),
    },
)  # fmt: skip
experiment.kept(single_precision)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Follow one network after the other; all of them start from the same weights."""
    rows = [[end(s, portion, seed, device) for seed in s.seed] for portion in s.portion]
    return {name: torch.stack([torch.stack([one[name] for one in row]) for row in rows]) for name in rows[0][0]}


run = experiment.run


def end(s: Setting, portion: float, seed: int, device: str) -> dict[str, Tensor]:
    """Gap, own work and bound of one network at the end of its path."""
    data = RedrawnLabels(even_or_odd(), s.n)
    train, fresh = (draw((portion,), seed) for draw in (data.draw, data.draw_test))
    model = ConvNet((1, 8, 8), (s.filters, 2 * s.filters), classes=1, activation=tanh, pool="none", gain=1.0, padding=0)
    model = with_start(model, a=torch.zeros_like(model.a)).to(devices.device(device))
    training = Training(model, train.x.unflatten(-1, (1, 8, 8)).float(), train.y[0], logistic)
    times = [s.time * (k / s.steps) ** 1.5 for k in range(s.steps + 1)]
    *_, last = loss_path(training, times, diagonal=True)
    train_loss, start = training.train_loss(last.params), training.train_loss(training.start())
    test = training.predict(last.params, fresh.x.unflatten(-1, (1, 8, 8)).to(training.x))
    return {
        "train_error": (training.predict(last.params) * training.observed <= 0).double().mean(),
        "gap": (training.loss(test, fresh.y[0].to(test)).mean() - train_loss).double(),
        "own": (last.kernel.sum() / s.n**2).double(),
        "lpk": ball_bound(start - train_loss, last.kernel).double(),
    }
