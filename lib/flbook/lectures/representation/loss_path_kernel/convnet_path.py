r"""The loss path kernel's bound for a four-layer ConvNet on colour crops of two photographs, beside the measured gap.

Claim (ours): what the page finds for two layers on digits is found here. With its term of confidence the bound
certifies no more than the loss before training, though errors are rare.

The network: four layers of 3 x 3 filters, each followed by ReLU and the largest of 2 x 2 pixels, all weights trained
from a small start. Gradient flow leaves that start slowly and then moves fast, so steps have the length that the
identity of the loss path kernel allows: a Runge-Kutta step counts if the training loss falls by the mean of the kernel.

The gap is that to fresh crops from the columns of the photographs that training crops are drawn from: the theorem is
about one distribution. Beside it: the same for crops from columns that no training crop shows.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from flbook import devices
from flbook.data.crops import TwoClassPictures
from flbook.domains import Count, Natural, Positive, Range
from flbook.lectures.representation.loss_path_kernel.path_kernel import ball_bound, rates
from flbook.models.convnet import ConvNet
from flbook.runs import Experiment, Grid, axis, single_precision
from flbook.training.losses import logistic
from flbook.training.network import Training
from flbook.training.problem import Params

OTHERS = 100_000  # added to a seed: fresh crops from the columns that training crops are drawn from
SHORTEST = 0.01  # a step; where the flow slides along a kink of ReLU no length satisfies the identity
ROUNDING = 1e-5  # of a training loss in float32, generously


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: a glance at few crops."""

    n: tuple[Annotated[int, Range(2, 4000)], ...] = axis([30], "training crops n")
    seed: tuple[Natural, ...] = axis(range(2), "seed")
    filters: Count = 8  # of the first two layers; the other two have twice as many
    start: Positive = 0.3  # s: filters have variance 2 s²/fan-in
    time: Positive = 16.0  # of the gradient flow in all weights
    miss: Annotated[float, Range(0.001, 1.0)] = 0.02  # share of a step's fall by which the identity may be off
    fresh: Annotated[int, Range(2, 4000)] = 1000  # test crops


experiment = Experiment(
    Setting, version=2, loops=("n",), chunk={"n": 1, "seed": 2}, stored="longer",
    gives={"train_error": ("training error", "fraction"), "test_error": ("test error", "fraction"),
           "train_loss": ("training loss", "nats"), "gap": ("gap: test less training loss", "nats"),
           "elsewhere": ("loss on unseen columns less training loss", "nats"),
           "own": ("own work tr K / n²", "nats"), "lpk": ("loss path kernel's bound", "nats"),
           "missed": ("fall of the training loss less mean of the kernel", "nats")},
    presets={
        "tiny": ("Two filters a layer, a short path", dict(
            n=(8, 12), seed=(0, 1), filters=2, start=1.0, time=0.1, miss=0.1, fresh=20)),
        "longer": ("Few and many crops, ten networks each", dict(
            n=(60, 480), seed=tuple(range(10, 20)))),
    },
)  # fmt: skip
experiment.kept(single_precision)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Follow one network after the other, each with a start and crops of its own."""
    ends = [end(s, seed, device) for seed in s.seed]
    return {name: torch.stack([one[name] for one in ends]) for name in ends[0]}


run = experiment.run


def end(s: Setting, seed: int, device: str) -> dict[str, Tensor]:
    """Errors, gap, own work and bound of one network at the end of its path."""
    data, more = (TwoClassPictures("colour crops", n=n, flip_prob=0.0, fresh=s.fresh) for n in (s.n, s.fresh))
    train, fresh, other = data.draw(seed), more.draw(OTHERS + seed), data.draw_test(seed)
    training = problem(s, train.x.float(), train.y, seed, device)
    params, kernel, total = path(training, s.time, s.miss)
    start, train_loss = training.train_loss(training.start()), training.train_loss(params)
    test, unseen = (training.predict(params, part.x.to(training.x)).detach() for part in (fresh, other))
    found = {
        "train_error": (training.predict(params) * training.observed <= 0).double().mean(),
        "test_error": (test * fresh.y.to(test) <= 0).double().mean(), "train_loss": train_loss,
        "gap": training.loss(test, fresh.y.to(test)).mean() - train_loss,
        "elsewhere": training.loss(unseen, other.y.to(test)).mean() - train_loss,
        "own": kernel.sum() / s.n**2, "lpk": ball_bound(start - train_loss, kernel),
        "missed": start - train_loss - total,
    }  # fmt: skip
    return {name: value.detach().double() for name, value in found.items()}


def problem(s: Setting, x: Tensor, y: Tensor, seed: int, device: str = "cpu") -> Training:
    """The ConvNet's training problem; as in real training, the read-out starts at random, too."""
    m = s.filters
    model = ConvNet((3, 16, 16), (m, m, 2 * m, 2 * m), classes=1, gain=2 * s.start**2, seed=seed, dtype=x.dtype)
    return Training(model.to(devices.device(device)), x, y, logistic)


def path(training: Training, time: float, miss: float) -> tuple[Params, Tensor, Tensor]:
    """The end of the gradient flow, the diagonal of the kernel there, and the kernel's mean.

    A step is halved until the training loss falls by what the kernel's mean gains, up to a share `miss` of it, and
    longer again after one that was much more exact.
    """
    params, kernel, total, now, step = training.start(), torch.zeros(()), torch.zeros(()), 0.0, 0.1
    loss = training.train_loss(params)
    while now < time:
        step = min(step, time - now)
        moved, own, gain = runge_kutta(training, params, step)
        there = training.train_loss(moved)
        off = float(abs(loss - there - gain))
        if off > miss * float(gain) + ROUNDING and step > SHORTEST:
            step /= 2
            continue
        params, kernel, total, loss, now = moved, own + kernel, total + gain, there, now + step
        step *= 1.5 if off < miss * float(gain) / 4 + ROUNDING else 1.0
    return params, kernel, total


def runge_kutta(training: Training, params: Params, step: float) -> tuple[Params, Tensor, Tensor]:
    """Parameters after one step, and what the kernel's diagonal and its mean gain."""
    start, own, gain, at = params, 0.0, 0.0, params
    for weight, share in ((1, 0.5), (2, 0.5), (2, 1.0), (1, 0.0)):
        velocity, squares = rates(training, at, diagonal=True)
        fall = sum(v.square().sum() for v in velocity.values())
        own, gain = own + weight * step / 6 * squares, gain + weight * step / 6 * fall
        params = {name: p + weight * step / 6 * velocity[name] for name, p in params.items()}
        at = {name: p + share * step * velocity[name] for name, p in start.items()}
    return params, own, gain
