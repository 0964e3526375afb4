r"""A tanh network of three layers on the parity of digits: where its sharpness goes, in small steps and in large ones.

The loss is half the mean squared error against labels of size 1; weights start from N(0, 1/inputs). Sharpness is the
largest eigenvalue of the Hessian, by power iteration that goes on from the direction found before: the largest in size,
which is the largest as soon as the labels are nearly fitted.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.data.ten_digits import ten_digits
from flbook.domains import Count, Natural, Positive
from flbook.runs import Experiment, Grid, axis, single_precision

FEW, MANY = 6, 60  # products with the Hessian at a time, and at the start


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on."""

    lr: tuple[Positive, ...] = axis([0.06, 0.12], "step size η")
    seed: tuple[Natural, ...] = axis(range(2), "seed")
    samples: Count = 100
    width: Count = 32
    time: Positive = 48.0  # step size times steps
    points: Count = 48  # at which sharpness is measured, at equal distances, besides the start

    @property
    def times(self) -> list[float]:
        """When sharpness is measured."""
        return [self.time * k / self.points for k in range(self.points + 1)]


experiment = Experiment(
    Setting, version=1, loops=("lr",), chunk={"lr": 1}, stored="longer",
    beside={"time": (lambda s: s.times, "step size times steps", "1")},
    gives={
        "sharpness": ("sharpness λ", "1", ("lr", "seed", "time")),
        "loss": ("training loss", "1", ("lr", "seed", "time")),
    },
    presets={
        "tiny": ("A blink", dict(lr=(0.12,), samples=10, width=4, time=1.2, points=2)),
        "longer": ("Three step sizes, ten seeds, minutes", dict(
            lr=(0.015, 0.06, 0.12), seed=tuple(range(10)), time=360.0, points=120)),
    },
)  # fmt: skip
experiment.kept(single_precision)


def weights(width: int, inputs: int, seed: tuple[int, ...]) -> list[Tensor]:
    """The start of the three layers, each with the ensemble axis first."""
    shapes = [(width, inputs), (width, width), (1, width)]
    return [rng.normal(shape, seed, f"layer {k}").float() / shape[1] ** 0.5 for k, shape in enumerate(shapes)]


def loss(w: list[Tensor], x: Float[Tensor, "S n f"], y: Float[Tensor, "S n"]) -> Float[Tensor, " S"]:
    """Half the mean squared error of each member."""
    hidden = torch.tanh(torch.tanh(x @ w[0].mT) @ w[1].mT)
    return ((hidden @ w[2].mT)[..., 0] - y).square().mean(-1) / 2


def gradient(w: list[Tensor], x: Tensor, y: Tensor, graph: bool = False) -> tuple[list[Tensor], tuple[Tensor, ...]]:
    """Leaves at the weights, and the gradient there."""
    leaves = [part.detach().requires_grad_() for part in w]
    return leaves, torch.autograd.grad(loss(leaves, x, y).sum(), leaves, create_graph=graph)


def largest(w: list[Tensor], x: Tensor, y: Tensor, v: list[Tensor], times: int) -> tuple[Tensor, list[Tensor]]:
    """The eigenvalue of largest size of each member's Hessian, (S,), and its direction, from so many products."""
    leaves, slope = gradient(w, x, y, graph=True)
    value = torch.zeros(len(y))
    for k in range(times):
        image = torch.autograd.grad(slope, leaves, v, retain_graph=k + 1 < times)
        value = sum((a * b).sum((-2, -1)) for a, b in zip(image, v, strict=True))
        v = _unit(image)
    return value, v


def _unit(v: list[Tensor] | tuple[Tensor, ...]) -> list[Tensor]:
    """Each member's direction, at length 1."""
    length = sum(part.square().sum((-2, -1)) for part in v).sqrt()
    return [part / length[:, None, None] for part in v]


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Sharpness and loss along the training with one step size, (seed, time)."""
    digits = ten_digits(s.samples, s.seed)
    x, y = digits.x.flatten(2).float().to(device), (1 - 2 * (digits.y % 2)).float().to(device)
    w = [part.to(device) for part in weights(s.width, x.shape[-1], s.seed)]
    v = _unit([part.to(device) for part in weights(s.width, x.shape[-1], tuple(one + 10**6 for one in s.seed))])
    sharp, losses, step = [], [], 0
    for time in s.times:
        while step < round(time / s.lr):
            w = [part - s.lr * slope for part, slope in zip(w, gradient(w, x, y)[1], strict=True)]
            step += 1
        value, v = largest(w, x, y, v, FEW if sharp else MANY)
        sharp.append(value)
        losses.append(loss(w, x, y))
    return {"sharpness": torch.stack(sharp, -1).double(), "loss": torch.stack(losses, -1).double()}


run = experiment.run
