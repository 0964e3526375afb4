r"""Loss over the rate of a two-layer linear network, at widths up to 65536 and in three parametrisations.

Claim (derived in the lecture): the width enters only through the inner products at the start, which converge, so the
best rate converges in the neural tangent and in the maximal update parametrisation; in the standard one it is of the
order 1/n.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from flbook.domains import Count, Natural, Positive
from flbook.lectures.representation.rate_transfer import width_moments
from flbook.lectures.representation.rate_transfer.width_moments import NAMES, Start
from flbook.runs import Experiment, Grid, among, axis

_LARGEST = 1e6  # losses beyond count as this


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on."""

    parametrisation: tuple[str, ...] = axis(NAMES, "parametrisation")
    width: tuple[Count, ...] = axis([4**k for k in range(2, 9)], "neurons N")
    rate: tuple[Positive, ...] = axis([2.0 ** (k / 8) for k in range(-144, 9)], "rate η")
    seed: tuple[Natural, ...] = axis(range(20), "seed")
    d: Count = 5
    length: Positive = 2.0  # |b_*|
    steps: Count = 10
    start: Start = "paired"

    def check(self) -> None:
        """Refuse parametrisations that are not known."""
        among("parametrisation", self.parametrisation, NAMES)

    @property
    def target(self) -> np.ndarray:
        """The target's weights; the law of the start has no preferred direction."""
        return np.eye(self.d)[0] * self.length


experiment = Experiment(
    Setting, version=1, loops=("parametrisation", "width"),
    gives={"loss": ("risk over its start", "1", ("parametrisation", "width", "rate", "seed"))},
    presets={
        "tiny": ("Two widths, few rates", dict(width=(16, 64), rate=(0.01, 0.1, 0.3, 1.0), seed=(0, 1), steps=3)),
        "single": ("One step only", dict(steps=1)),
        "orthogonal": ("Starts at which every width is the infinite one", dict(
            parametrisation=("tangent", "maximal"), start="orthogonal", seed=(0,))),
    },
    devices=("cpu",),  # a few numbers a run
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, np.ndarray]:
    """The risk after the last step at every rate, shape (rate, seed)."""
    return {"loss": losses(s, s.parametrisation, s.width)}


run = experiment.run


def losses(s: Setting, name: str, width: int) -> np.ndarray:
    """The risk over its start at one width; diverged runs have the largest that is told apart."""
    scale, rate = width_moments.scale(name, width), np.asarray(s.rate)[:, None]
    begin = width_moments.start(width, s.d, s.seed, s.start)
    state = width_moments.WidthMoments(*(np.broadcast_to(part, (len(rate), *part.shape)) for part in begin))
    g, g_v = (np.broadcast_to(part, (len(rate), len(s.seed))) for part in scale.rates(rate))
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(s.steps):
            state = width_moments.step(state, width_moments.error(state, s.target, scale.gamma), g, g_v)
        loss = (width_moments.error(state, s.target, scale.gamma) ** 2).sum(-1) / s.length**2
    return np.minimum(np.nan_to_num(loss, nan=_LARGEST, posinf=_LARGEST), _LARGEST)


def best_rate(loss: xr.DataArray, lr: xr.DataArray, over: str = "rate") -> xr.DataArray:
    """Where the loss is least: the lowest point of the parabola through three points of log loss over log rate.

    Refuses curves that are lowest at an end of their rates, in a sentence.
    """
    curve = np.log(loss.transpose(..., over))
    rates = np.log(lr.broadcast_like(loss).transpose(..., over)).to_numpy()
    values = curve.to_numpy()
    at = values.argmin(-1)
    if (at == 0).any() or (at == values.shape[-1] - 1).any():
        raise ValueError("the loss is least at an end of the rates; take a wider range of rates")
    (left, middle, right), (before, here, _) = (
        [np.take_along_axis(of, (at + shift)[..., None], -1)[..., 0] for shift in (-1, 0, 1)] for of in (values, rates))
    bend = left - 2 * middle + right
    shift = np.where(bend > 0, (left - right) / np.where(bend > 0, 2 * bend, 1), 0.0)
    found = curve.isel({over: 0}, drop=True).copy(data=np.exp(here + shift * (here - before)))
    return found.rename("best_rate").assign_attrs(long_name="best rate η*", units="1")


def first_step_distance(widths: Sequence[int], seeds: Sequence[int], setting: Setting = Setting()) -> xr.DataArray:
    """The squared distance from 1/2 of the best rate of a single step, with one rate for both layers."""
    found = []
    for width in widths:
        begin = width_moments.start(width, setting.d, tuple(seeds), setting.start)
        found.append((np.asarray(width_moments.best_single_step(begin, setting.target, 1.0)) - 0.5) ** 2)
    return xr.DataArray(np.stack(found), {"width": list(widths), "seed": list(seeds)})
