"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.fits import Fit
from flbook.plots.schematic import Schematic, curve, op, out, stack, strip

MODEL = Schematic(
    "A two-layer network with an output scale",
    [
        ("input", {"x": strip("$x$", "$d$ coordinates", "signal*4", alt="the input, d coordinates")}),
        ("neurons", {"w": stack("$w_i$", "trained", alt="N neurons, trained")}),
        ("activation", {"s": curve(r"$\tanh$", holds="tanh", alt="tanh")}),
        ("signs", {"a": strip("$a_i$", "fixed", "label*2 -label*2", alt="signs, half of them minus, fixed")}),
        ("sum", {"sum": op(r"$\Sigma$")}),
        ("scale", {"c": op("$c$", "$N^{-\\kappa}$", alt="the scale c, N to the minus kappa")}),
        ("output", {"f": out("$f(x)$", alt="the scaled sum")}),
    ],
    ["x > w > s > a > sum > c > f"],
    says="Only the neurons are trained.",
)  # fmt: skip

NAMES = {"lazy": 0.5, "mean_field": 1.0}  # variable of a Dataset -> power κ
LABELS = {"lazy": "lazy, κ = 1/2", "mean_field": "mean field, κ = 1"}


@plots.look.styled
def race(racing: xr.Dataset) -> Figure:
    """Test error and movement of the kernel over flow time at two scalings, with the tangent model's error."""
    fig, (left, right) = plots.panels(2, sharex=True)
    time, tangent = racing.time.values, racing.tangent.mean("seed").values
    curves = {name: racing.sel(power=power, drop=True) for name, power in NAMES.items()}
    errors = xr.Dataset({name: part.test_error for name, part in curves.items()})
    plots.learning_curves(errors, LABELS, x="time", log="xy", title="Same start, two futures",
                          theory={"tangent model": lambda x: np.interp(x, time, tangent)},
                          ylabel="test error [fraction]", ax=left)  # fmt: skip
    moved = xr.Dataset({name: part.kernel_change.where(part.time > 0) for name, part in curves.items()})
    plots.learning_curves(moved, LABELS, x="time", log="xy", title="The kernel moves, or stays",
                          ylabel="kernel, relative movement [1]", ax=right)  # fmt: skip
    return fig


def neurons(paths: xr.Dataset, time: float, directions: np.ndarray) -> Figure:
    """All neurons of both networks in the plane at one flow time. directions: rows, those of the target."""
    fig, ax = plt.subplots(figsize=(4.2, 4.2))
    for u in directions:
        ax.plot([0, 3.6 * u[0]], [0, 3.6 * u[1]], "--", color=plots.THEORY, lw=1)
    lazy, mean_field = (paths.w.sel(time=time, power=power) for power in (0.5, 1.0))
    colours = {name: look[0] for name, look in plots.looks(["lazy", "mean field"]).items()}
    ax.plot(*lazy.T, "o", ms=3, color=colours["lazy"], label="lazy")
    for sign, marker in ((1, "^"), (-1, "v")):
        ax.plot(*mean_field[paths.sign.values == sign].T, marker, ms=4, color=colours["mean field"],
                label=f"mean field, a = {sign:+d}")  # fmt: skip
    error = paths.train_error.sel(time=time)
    ax.set(xlim=(-3.7, 3.7), ylim=(-3.7, 3.7), xticks=[], yticks=[], aspect="equal")
    ax.set_title(f"error: lazy {float(error.sel(power=0.5)):.2f}, mean field {float(error.sel(power=1.0)):.2f}")
    fig.legend(loc="outside lower center", ncols=3, handletextpad=0.1, columnspacing=0.8)
    return fig


@plots.look.styled
def movements(weights: Mapping[str, tuple[xr.DataArray, Fit]], kernel: Mapping[str, tuple[xr.DataArray, Fit]],
              powers: Mapping[str, float]) -> Figure:
    """Relative movement of weights and of the kernel against the width. powers: κ of each law."""
    fig, axes = plots.panels(2)
    for ax, laws, times, what in ((axes[0], weights, 1, "Weights"), (axes[1], kernel, 2, "Kernel")):
        slopes = {name: -times * (1 - power) for name, power in powers.items()}
        title = f"{what}: −{times if times > 1 else ''}(1 − κ)"
        plots.exponents(laws, "width", slopes, ylabel=f"{what.lower()}, relative movement", title=title, ax=ax)
    return fig


@plots.look.styled
def kernels(laws: Mapping[str, tuple[xr.DataArray, Fit]], flips: xr.DataArray) -> Figure:
    """Movement of the lazy kernel with tanh and with ReLU, and the ReLU network's surplus of closing gates."""
    fig, axes = plots.panels(2)
    plots.exponents(laws, "width", {"tanh": -1.0}, ylabel="kernel, relative movement", title="The lazy kernel",
                    ax=axes[0])  # fmt: skip
    plots.series({"closed less opened": flips}, "width", title="More gates close than open",
                 lines={"N^(-1/2)": _root(flips)}, ax=axes[1])  # fmt: skip
    return fig


def _root(flips: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """A line of slope -1/2 through the last mean."""
    at = flips.width.values.astype(float)
    return at, float(flips.isel(width=-1).mean()) * (at / at[-1]) ** -0.5
