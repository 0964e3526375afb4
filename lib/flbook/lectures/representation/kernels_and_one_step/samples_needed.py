r"""How many samples each rule needs to see the bend: the best kernel, the network after one step, a line and a curve.

Claims: in d dimensions the best kernel without a preferred direction needs in proportion to :math:`d^3/6` samples, the
number of cubic harmonics; rules whose first sample chooses a direction need in proportion to d.

Student and target are erf, so that the risks of network and curve need no test points, and the kernel of infinitely
many erf neurons with ridge :math:`\sigma_\varepsilon^2` is the best linear rule for :math:`\beta \sim N(0, I/d)`.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from flbook import fits
from flbook.data.single_index import SingleIndex, SingleIndexSample
from flbook.domains import Count, Natural, NonNegative, Positive, Range
from flbook.estimators import kernel_ridge, ridge
from flbook.lectures.representation.kernels_and_one_step import harmonics
from flbook.models import activations, kernels
from flbook.models.random_features import RandomFeatures
from flbook.runs import Experiment, Grid, axis, single_precision

Rule = Literal["best kernel", "network", "line, then curve"]
LEVEL = 0.02  # half the risk of the best straight line
RIDGES = tuple(10.0 ** (k / 2) for k in range(-6, 1))
SLOPES = (0.5, 1.0, 2.0)  # of the three neurons along the line


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: the network, samples in units of the dimension."""

    d: tuple[Annotated[int, Range(4)], ...] = axis([8, 16, 32, 64], "dimension d")
    x: tuple[Positive, ...] = axis([6.0, 10.0, 16.0], "samples n in units")  # d, of the kernel D_3
    seed: tuple[Natural, ...] = axis(range(40), "seed")
    rule: Rule = "network"
    noise: NonNegative = 0.1  # standard deviation of the label noise
    psi_2: Positive = 4.0  # N/d of the network
    points: Count = 2048  # test points of the kernel


experiment = Experiment(
    Setting, version=1, loops=("d", "x"), chunk={"d": 1, "x": 1, "seed": 4}, stored="kernel",
    devices=("cpu",),  # the kernel is solved step by step, until its residual is small
    gives={"risk": ("risk R", "1")},
    presets={
        "tiny": ("Two small dimensions", dict(d=(8, 12), x=(1.0, 2.0), seed=(0, 1), points=100)),
        "curve": ("A line, then a curve along it", dict(rule="line, then curve")),
        "kernel": ("The best kernel, samples in units of the cubic harmonics", dict(
            rule="best kernel", d=(8, 12, 16, 24, 32), x=(0.25, 0.5, 1.0, 1.5), seed=tuple(range(10)))),
    },
)  # fmt: skip
experiment.kept(single_precision)


def samples(setting: Setting, d: int, x: float) -> int:
    """All samples of a cell, an even number."""
    unit = harmonics.dimension(d, 3) if setting.rule == "best kernel" else d
    return 2 * round(x * unit / 2)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Risk of a rule from n samples; the two rules with two moves spend half of them on each."""
    n = samples(s, s.d, s.x)
    if s.rule == "best kernel":
        return {"risk": torch.stack([best_kernel(SingleIndex(n, s.d, torch.erf, s.noise), seed, s.points)
                                     for seed in s.seed])}  # fmt: skip
    model = SingleIndex(n // 2, s.d, torch.erf, s.noise)
    first, fresh = model.draw(s.seed, "first"), model.draw(s.seed, "fresh")
    rule = {"network": one_step_risk, "line, then curve": curve_risk}[s.rule]
    return {"risk": rule(s, first, fresh, model.direction)}


run = experiment.run


def best_kernel(model: SingleIndex, seed: int, points: int) -> Tensor:
    """Risk of the kernel of infinitely many erf neurons."""
    sample, test = model.draw(seed), model.draw_test(points, seed)
    x, outside = (part / math.sqrt(model.d) for part in (sample.x, test.x))
    alpha = kernel_ridge(kernels.arcsine(x, x), sample.y, model.noise**2 / model.n, rtol=1e-5)
    return (kernels.arcsine(outside, x) @ alpha - test.target).square().mean()


def one_step_risk(s: Setting, first: SingleIndexSample, fresh: SingleIndexSample, direction: Tensor) -> Tensor:
    """Exact risk after a step of twice the square root of the width, at the best of seven ridges."""
    net = RandomFeatures.draw(s.d, round(s.psi_2 * s.d), activations.erf, s.seed)
    moved = net.step(first.x, first.y, 2 * math.sqrt(net.width))
    return kernels.erf_risk(moved, ridge(moved.features(fresh.x), fresh.y, RIDGES), direction).amin(-1)


def curve_risk(s: Setting, first: SingleIndexSample, fresh: SingleIndexSample, direction: Tensor) -> Tensor:
    """Exact risk of least squares on the first sample, then of three erf neurons along its direction on the other."""
    line = ridge(first.x, first.y, 1e-9)
    line = line / line.norm(dim=-1, keepdim=True)
    w = torch.tensor(SLOPES, dtype=line.dtype)[:, None] * line[..., None, :]
    neurons = RandomFeatures(w, torch.ones(w.shape[:-1], dtype=w.dtype), activations.erf)
    return kernels.erf_risk(neurons, ridge(neurons.features(fresh.x), fresh.y, RIDGES), direction).amin(-1)


def needed(dataset: xr.Dataset, rule: Rule) -> xr.DataArray:
    """Samples at which the risk is half that of the best straight line, for every d, seeds resampled."""
    where = fits.crossing(dataset.risk, "x", LEVEL)
    return (where * units(dataset, rule)).rename("n").assign_attrs(long_name="samples n", units="1")


def units(dataset: xr.Dataset, rule: Rule) -> xr.DataArray:
    """What x counts at each dimension."""
    sizes = [harmonics.dimension(int(d), 3) if rule == "best kernel" else int(d) for d in dataset.d]
    return xr.DataArray(np.array(sizes, float), {"d": dataset.d})


def exponent(dataset: xr.Dataset, rule: Rule) -> fits.Fit:
    """The exponent in d of the samples needed."""
    found = fits.boundary(dataset.risk, "x", "d", LEVEL)
    logs = [np.log(part.values) for part in (dataset.d, units(dataset, rule))]
    slope = float(np.polyfit(*logs, 1)[0])
    low, high = found.interval
    return fits.Fit(slope + found.value, (slope + low, slope + high), slope + found.per_seed)
