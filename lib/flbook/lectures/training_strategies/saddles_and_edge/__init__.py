r"""One mode after another: when a linear network of two layers learns each mode, and how near the saddles it comes.

Claim (Saxe, McClelland and Ganguli 2014; here for a random start and for steps of any size): the mode of strength s
grows logistically and is half learned at the time :math:`\frac{\ln(s/u_0-1)}{2s}\cdot\frac{\eta s}{\ln(1+\eta s)}`,
where :math:`u_0` is the squared length of the part of the two layers that grows.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from flbook.domains import Count, Natural, Positive
from flbook.lectures.training_strategies.saddles_and_edge.linear_network import (
    LinearNetworkTraining,
    Numbers,
    course,
    first_time,
    initial_strength,
    random_layers,
)
from flbook.runs import Experiment, Grid, axis, labelled
from flbook.shapes import Quantity


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    sigma: tuple[Positive, ...] = axis([1e-5, 1e-4, 1e-3], "standard deviation of the start σ")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    s: tuple[Positive, ...] = axis([4.0, 2.0, 1.0, 0.5], "strength of the mode s")
    lr: Positive = 0.1
    m: Count = 32
    centred: bool = False  # is the output at the start subtracted?
    time: Positive = 30.0  # step size times steps

    def check(self) -> None:
        """Refuse modes in another order, which ranks would not follow."""
        if len(self.s) < 2 or list(self.s) != sorted(self.s, reverse=True):
            raise ValueError(f"s must name two strengths or more, the strongest first; got {self.s}")


experiment = Experiment(
    Setting, version=1,
    beside={"rank": (lambda s: range(1, len(s.s)), "modes learned", "count")},
    gives={
        "half": ("time at which half of the mode is learned", "1"),
        "width": ("time from a tenth to nine tenths of it", "1"),
        "u_0": ("the part at the start that grows, squared", "1"),
        "distance": ("least distance of the product from the saddle", "1", ("sigma", "seed", "rank")),
        "gradient": ("least gradient between two modes", "1", ("sigma", "seed", "rank")),
    },
    presets={
        "tiny": ("A blink: what the tests run", dict(sigma=(1e-2, 1e-3), seed=(0, 1), s=(2.0, 1.0), m=8, time=12.0)),
        "flow": ("Small steps: how near the saddles", dict(
            sigma=(1e-2, 1e-3, 1e-4, 1e-5, 1e-6), lr=0.02)),
        "lazy": ("From a small start to a lazy one", dict(
            sigma=(1e-3, 1e-2, 5e-2, 1e-1, 2e-1), m=256, lr=0.02, centred=True, time=20.0)),
    },
    missing=("half", "width"),
)  # fmt: skip


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Times, (sigma, seed, s), and distances, (sigma, seed, rank), of all networks at once."""
    share, distances, slopes, layers = _train(s, device)
    times = {level: first_time(share, level, s.lr) for level in (0.1, 0.5, 0.9)}
    return {
        "half": torch.from_numpy(times[0.5]),
        "width": torch.from_numpy(times[0.9] - times[0.1]),
        "u_0": initial_strength(layers),
        "distance": torch.from_numpy(distances.min(0)),
        "gradient": torch.from_numpy(_between(slopes, times[0.5] / s.lr)),
    }


def _train(s: Setting, device: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[Tensor, ...]]:
    """After each step the shares learned, the distances from the saddles and the gradient; and the start."""
    sizes = torch.tensor(s.sigma, dtype=torch.float64)[:, None, None, None]
    layers = tuple(sizes * w for w in random_layers(len(s.s), s.m, 1.0, s.seed))
    strength = torch.tensor(s.s, dtype=torch.float64)
    training = LinearNetworkTraining(torch.diag(strength), layers).to(device)
    begin = training.product(training.start())
    if s.centred:  # the output less that at the start is to be the target
        training = LinearNetworkTraining(training.target + begin, training.layers)
    offset = begin.diagonal(dim1=-2, dim2=-1) if s.centred else torch.zeros_like(strength)
    saddles = torch.stack([torch.diag(strength * (strength > low)) for low in strength[1:]]).to(begin)

    def away(w):
        return (training.product(w)[..., None, :, :] - saddles).flatten(-2).norm(dim=-1)

    far = Quantity("far", away, ("rank",))
    steep = Quantity("steep", lambda w: training.norm(training.slope(w)))
    modes, distances, slopes = course(training, s.lr, math.ceil(s.time / s.lr), far, steep)
    return (modes - offset.cpu().numpy()) / strength.numpy(), distances, slopes, layers


@experiment.also
def paths(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """The course of the same networks: shares learned, distances from the saddles and the gradient, over the time."""
    share, distances, slopes, _ = _train(setting, device)
    time = np.arange(len(share)) * setting.lr
    dims = ("time", "sigma", "seed")
    values = {
        "share": ((*dims, "s"), share, "share of the mode that is learned", "1"),
        "distance": ((*dims, "rank"), distances, "distance of the product from the saddle", "1"),
        "gradient": (dims, slopes, "length of the gradient", "1"),
    }
    ranks, *about = experiment.beside["rank"]
    beside = {"time": ("time", time, "step size times steps"), "rank": ("rank", list(ranks(setting)), *about)}
    return labelled(values, setting.coordinates("sigma", "seed", "s") | beside)


def _between(slopes: np.ndarray, half: np.ndarray) -> np.ndarray:
    """The least gradient, (*E, rank), between the steps at which two modes in succession are half learned."""
    step = np.arange(len(slopes)).reshape(-1, *[1] * half.ndim)
    inside = (step >= half[..., :-1]) & (step <= half[..., 1:])
    return np.where(inside, slopes[..., None], np.inf).min(0)


def stretch(lr: float, s: Numbers) -> Numbers:
    r"""By how much steps of the size lr are slower than a flow, :math:`\eta s/\ln(1 + \eta s)`."""
    return lr * s / np.log1p(lr * s)


def half_time(u_0: Numbers, s: Numbers, lr: float = 0.0) -> Numbers:
    """The time at which the mode of strength s is half learned, from the part u_0 that grows; of a flow at lr = 0."""
    flow = np.log(s / u_0 - 1) / (2 * s)
    return flow * stretch(lr, s) if lr else flow


def growth(found: xr.Dataset, s: float) -> np.ndarray:
    """Of each seed, 2s times the slope of a mode's half time over ln(1/u_0), across the sizes of the start."""
    one = found.sel(s=s)
    pairs = zip(np.log(1 / one.u_0).transpose("seed", "sigma").values, one.half.transpose("seed", "sigma").values,
                strict=True)  # fmt: skip
    return np.array([2 * s * np.polyfit(x, half, 1)[0] for x, half in pairs])


run = experiment.run
