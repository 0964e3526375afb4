r"""Exclusive or in one patch: from how many samples on does the trained network need less signal than a fixed kernel?

In every cell the signal is the one at which the kernel :math:`\langle x, x'\rangle^2` errs on a quarter of fresh
samples, by its closed form. The network is ahead where it errs on less.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
import xarray as xr

from flbook import fits
from flbook.domains import Count, Natural, NonNegative, Positive, Range
from flbook.lectures.benign_overfitting.xor import angle_laws, quadratic_kernel, xor_one_patch
from flbook.runs import Experiment, Grid, axis, single_precision


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: four dimensions, cubes, so that d^(2/3) is whole."""

    d: tuple[Annotated[int, Range(3)], ...] = axis([64, 125, 216, 343], "dimension d")
    x: tuple[Positive, ...] = axis([4.0, 8.0, 12.0, 16.0], "$n/d^{2/3}$")
    seed: tuple[Natural, ...] = axis(range(20), "seed")
    m: Count = 10  # filters a sign
    start: NonNegative = 0.05  # sigma_0 sigma_xi sqrt(d)
    lr: Positive = 0.4  # step size, in units of m min(1, n/d)
    steps: Natural = 100
    points: Count = 500  # fresh samples


experiment = Experiment(
    Setting, version=1, loops=("d", "x"), chunk={"d": 1, "x": 1, "seed": 4}, stored="longer",
    gives={
        "test_error": ("test error of the network", "fraction"),
        "kernel_error": ("test error of the kernel", "fraction"),
    },
    presets={
        "tiny": ("Two small dimensions, few and many samples", dict(
            d=(27, 64), x=(4.0, 16.0), seed=(0, 1), steps=5, points=50)),
        "longer": ("Larger dimensions", dict(d=(64, 125, 216, 512, 1000, 1728, 2744), seed=tuple(range(16)))),
    },
)
experiment.kept(single_precision)


def samples(x: float, d: int) -> int:
    """The n of a cell: a multiple of 4, equally many samples of each cluster."""
    return max(4, 4 * round(x * d ** (2 / 3) / 4))


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Network and fitted kernel, at the kernel's own border."""
    n = samples(s.x, s.d)
    mu = float(angle_laws.one_patch_kernel_border(n, s.d))
    like = xor_one_patch.Setting(seed=s.seed, m=s.m, start=s.start, lr=s.lr, steps=s.steps, points=s.points)
    network = xor_one_patch.errors(like, "network", n, s.d, mu, device)["test_error"]
    return {"test_error": network, "kernel_error": quadratic_kernel.errors(n, mu, s.d, s.seed, points=s.points)}


run = experiment.run


def crossover(dataset: xr.Dataset) -> xr.DataArray:
    """The n from which on the network is ahead, for every d."""
    where = fits.crossing(dataset.test_error, "x", 0.25) * dataset.d ** (2 / 3)
    return where.rename("n").assign_attrs(long_name="samples n at which both err on 1/4", units="1")


def exponent(dataset: xr.Dataset) -> fits.Fit:
    """The exponent of that n in d."""
    found = fits.boundary(dataset.test_error, "x", "d", 0.25)
    low, high = found.interval
    return fits.Fit(2 / 3 + found.value, (2 / 3 + low, 2 / 3 + high), 2 / 3 + found.per_seed)
