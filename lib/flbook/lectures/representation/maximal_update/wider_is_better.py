r"""What features buy: test error after one step and after many, each parametrisation at its own best rate.

Claim (ours, measured): after one step all parametrisations are equally good; after many, error falls with the width
where features move, and rises where they do not. The target :math:`\tanh(2x_1)` looks at one direction.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from flbook import devices, rng
from flbook.domains import Count, Natural
from flbook.lectures.representation import maximal_update as lecture
from flbook.lectures.representation.maximal_update import two_hidden_layers as network
from flbook.runs import Experiment, Grid, axis, single_precision

TUNED = ("standard", "neural tangent", "maximal update")  # what the others of the table differ in, tuning removes


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    parametrisation: tuple[Literal[TUNED], ...] = axis(TUNED, "parametrisation")
    width: tuple[Count, ...] = axis([16, 64], "width n")
    octave: tuple[float, ...] = axis([-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5], "rate, log₂ η")
    step: tuple[Count, ...] = axis([1, 30], "step")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    base: Count = 16
    n: Count = 150  # training samples
    d: Count = 10
    points: Count = 300  # fresh samples

    def check(self) -> None:
        """Refuse a width below the base."""
        lecture.above_base(self.width, self.base)


DIMS = ("parametrisation", "width", "octave", "step", "seed")
experiment = Experiment(
    Setting, version=1, loops=("parametrisation", "width"), chunk={"width": 1, "seed": 5}, stored="longer",
    gives={"train_error": ("training error", "fraction", DIMS), "test_error": ("test error", "fraction", DIMS)},
    presets={
        "tiny": ("Two small networks", dict(
            width=(4, 8), base=4, octave=(-1.0, 0.0), seed=(0, 1), step=(1, 3), n=12, d=3, points=20)),
        "longer": ("Widths up to 256", dict(
            width=(16, 32, 64, 128, 256), octave=(-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0), step=(1, 10, 30))),
        "fitted": ("Until all have fitted the training set: minutes on a GPU", dict(
            width=(64, 256), octave=(-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0), step=(30, 100, 300, 1000))),
    },
)  # fmt: skip
experiment.kept(single_precision)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Train one parametrisation at all rates; the axes are rate, step, seed. An error that is no number counts as 100.

    In the standard parametrisation the rates are those of the base width over n: elsewhere it explodes.
    """
    slow = s.parametrisation == "standard"
    which = lecture.NAMES["standard, rate/n" if slow else s.parametrisation]
    found = [_errors(s, which, seed, device) for seed in s.seed]
    train, test = (torch.stack(part, -1).nan_to_num(100.0, 100.0).clamp(max=100.0) for part in zip(*found, strict=True))
    return {"train_error": train, "test_error": test}


run = experiment.run


def sample(s: Setting, seed: int, device: str = "cpu") -> tuple[Tensor, Tensor]:
    """Inputs, training ones first, and the target at them, in single precision."""
    x = rng.normal((s.n + s.points, s.d), seed, "inputs").to(devices.device(device), torch.float32)
    return x, torch.tanh(2 * x[:, 0])


def _errors(s: Setting, which: lecture.known.Parametrisation, seed: int, device: str) -> tuple[Tensor, Tensor]:
    """Training and test error of one seed, relative to predicting 0, shape (rate, step)."""
    x, y = sample(s, seed, device)
    begin = network.start(s.width, s.base, x[: s.n], seed, [which])
    at_base = 2.0 ** torch.tensor(s.octave, dtype=torch.float64)
    lr = (at_base * one for one in network.rates(s.width, s.base, 1.0, [which], "gradient descent"))
    before, found = network.outputs(begin, x).f, []
    for t, w in enumerate(network.descend(begin, x[: s.n], y[: s.n] + before[..., : s.n],
                                          network.Weights(*(one.to(x) for one in lr))), 1):
        if t in s.step:
            square = (network.outputs(w, x).f - before - y).square() / y.square().mean()
            found.append((square[:, : s.n].mean(-1), square[:, s.n :].mean(-1)))
        if t == max(s.step):
            break
    train, test = (torch.stack(part, -1) for part in zip(*found, strict=True))
    return train, test
