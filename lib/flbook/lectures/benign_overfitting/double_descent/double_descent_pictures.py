"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Callable, Mapping

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.plots.schematic import Schematic, curve, op, out, stack, strip

MODEL = Schematic(
    "A two-layer network with random features",
    [
        ("input", {"x": strip("$x$", "$d$ coordinates", "signal*4", alt="the input, d coordinates")}),
        ("first layer", {"w": stack("$w_j$", "drawn, then fixed", faint=True, alt="N vectors, drawn and then fixed")}),
        ("activation", {"s": curve(r"$\tanh$", holds="tanh", alt="tanh")}),
        ("features", {"phi": strip(r"$\phi(x)$", "$N$ features", "context*5", alt="N features")}),
        ("fitted weights", {"a": op(r"$\hat a$", "least squares", alt="N weights, fitted by least squares")}),
        ("output", {"f": out("$f(x)$", alt="the sum of the weighted features")}),
    ],
    ["x > w > s > phi > a > f"],
    says="Only the last weights are fitted.",
)  # fmt: skip


def one_dimension(fitted: xr.Dataset, width: int) -> Figure:
    """The shortest fit of a few samples of a wave by this many random sine waves. fitted: `curves`."""
    fig, ax = plt.subplots(figsize=(5.2, 3.0))
    ax.plot(fitted.x, fitted.target, "--", color=plots.THEORY, lw=1.4, label="target")
    ax.plot(fitted.x, fitted.fit.sel(width=width), color=plots.TEST, lw=2, label="fit")
    ax.plot(fitted["at"], fitted.y, "o", color=plots.TRAIN, ms=6, label="samples")
    ax.set(xlim=(-1, 1), ylim=(-3, 3), xlabel="x", ylabel="y")
    ax.set_title(f"{width} features, {fitted.sizes['sample']} samples")
    plots.shared_legend((ax,), ncols=3)
    return fig


@plots.look.styled
def risk_and_length(book: xr.Dataset, line: tuple[np.ndarray, np.ndarray], n: int = 200) -> Figure:
    """Test risk and length of the solution against the number of features. line: the closed form of the risk."""
    fig, (left, right) = plots.panels(2, sharex=True)
    paint = {"random features": plots.TEST, "length": plots.SIGNAL}
    plots.series({"random features": book.risk}, "width", paint=paint, lines={"closed form": line},
                 levels={"predict 0": 1.0}, ylim=(0.1, 1e4), title="Down, up, and down again", legend=False, ax=left)
    plots.series({"length": book.norm}, "width", paint=paint, title="Where the solution is long", legend=False,
                 ax=right)
    for ax in (left, right):
        ax.axvline(n, color=plots.THEORY, ls=":")
    return fig


@plots.look.styled
def ridges(none: xr.DataArray, small: xr.DataArray, best: xr.DataArray,
           lines: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """Test risk against the number of features without a ridge, with a small one and with the best at each width."""
    measured = {"no ridge": none, "ridge 0.001": small, "best ridge": best}
    paint = dict(zip(measured, (plots.TRAIN, plots.NOISE, plots.TEST), strict=True))
    return plots.series(measured, "width", paint=paint, lines=lines, ylim=(0.1, 30),
                        title="The best ridge leaves no peak")


@plots.look.styled
def digits(few: xr.DataArray, many: xr.DataArray) -> Figure:
    """Test error on 200 and on 800 digits against the number of features. few, many: over (ridge, width, seed)."""
    fig, axes = plots.panels(2, sharey=True)
    for ax, error, n in zip(axes, (few, many), (200, 800), strict=True):
        least, ridge = error.ridge.values
        measured = {"no ridge": error.sel(ridge=least, drop=True), "with a ridge": error.sel(ridge=ridge, drop=True)}
        paint = dict(zip(measured, (plots.TEST, plots.NOISE), strict=True))
        plots.series(measured, "width", paint=paint, levels={"chance": 0.9}, title=f"{n} digits", legend=False, ax=ax)
        ax.axvline(n, color=plots.THEORY, ls=":")
        below = measured["no ridge"].median("seed").sel(width=slice(None, n - 1)).min()
        ax.axhline(float(below), color=plots.TEST, lw=1)
    plots.shared_legend(axes, ncols=2)
    return fig


@plots.look.styled
def trained(runs: xr.Dataset, threshold: float) -> Figure:
    """Test risk of networks trained in all weights against their neurons, with and without wrong labels.

    runs: `trained_networks`, over (wrong, width, seed). threshold: neurons with as many weights as there are numbers to
    fit.
    """
    fig, axes = plots.panels(2, sharex=True, sharey=True)
    for ax, wrong, title in zip(axes, (0.2, 0.0), ("A fifth of the labels wrong", "All labels right"), strict=True):
        part = runs.sel(wrong=wrong, drop=True)
        measured = {"trained to the end": part.risk, "stopped at the best step": part.least_risk}
        paint = dict(zip(measured, (plots.TEST, plots.SIGNAL), strict=True))
        plots.series(measured, "width", paint=paint, joined=True, title=title, legend=False, ax=ax)
        ax.axvline(threshold, color=plots.THEORY, ls=":")
    plots.shared_legend(axes, ncols=2)
    return fig


def closed_form(limit: Callable[[float], float], n: int = 200, last: float = 3000) -> tuple[np.ndarray, np.ndarray]:
    """Positions and heights of a closed form of the risk, dense about its pole at n."""
    at = np.unique(np.r_[np.geomspace(20, last, 150), np.linspace(0.75 * n, 1.3 * n, 60)])
    return at, np.array([limit(width) for width in at])
