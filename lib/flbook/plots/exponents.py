"""Exponents: several power laws on the same axes, each with its fitted slope at the end of its line."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure, SubFigure

from flbook.fits import Fit
from flbook.plots.look import (
    THEORY,
    averaged,
    canvas,
    direct_labels,
    label,
    log_ticks,
    looks,
    styled,
)

BAND = (0.1, 0.9)


@styled
def exponents(
    laws: Mapping[str, tuple[xr.DataArray, Fit]],
    x: str,
    theory: Mapping[str, float] | None = None,
    over: str = "seed",
    title: str = "",
    ylabel: str = "",
    ax: plt.Axes | None = None,
) -> Figure | SubFigure:
    """Dots for each law, a dashed line of the predicted slope through the last of them, and the fitted slope beside it.

    Parameters
    ----------
    laws
        Label -> (data over `x` and perhaps `over`, whose 10 % to 90 % quantiles are bars; its fit, as ``fits.exponent``
        returns it, perhaps of a part of the data).
    x
        Name of the horizontal axis.
    theory
        Label -> predicted slope.
    over
        The dimension of the seeds.
    title
        Of the panel.
    ylabel
        Of the vertical axis; that of the data by default.
    ax
        Axes to draw in; None: a new figure.

    Returns
    -------
    Figure | SubFigure
        The new figure, or that of `ax`.
    """
    ax = canvas(ax)
    ax.set(xscale="log", yscale="log", title=title)
    ends, look, slopes = [], looks(list(laws)), theory or {}
    for name, (da, fit) in laws.items():
        mean, (colour, marker) = averaged(da, over, x), look[name]
        grid, heights = mean[x].to_numpy().astype(float), mean.to_numpy()
        if name in slopes:
            ax.plot(grid, heights[-1] * (grid / grid[-1]) ** slopes[name], color=THEORY, linestyle="--", linewidth=1.3)
        if over in da.dims:
            low, high = (da.quantile(q, over) for q in BAND)
            ax.vlines(grid, low, high, color=colour, linewidth=1.4, alpha=0.6)
        ax.plot(grid, heights, marker, color=colour, markersize=7, markeredgecolor="white", zorder=3)
        ends.append((float(heights[-1]), f"{name}: {_written(fit)}", colour))
    first = next(iter(laws.values()))[0]
    ax.set(xlabel=label(first[x]), ylabel=ylabel or label(first))
    log_ticks(ax)
    direct_labels(ax, ends, gap=0.17)
    return ax.figure


def _written(fit: Fit) -> str:
    """The slope, and below it its interval if that is known; no minus before a zero."""
    value, low, high = (f"{np.round(number, 2) + 0.0:.2f}" for number in (fit.value, *fit.interval))
    interval = f"\n[{low}, {high}]" if np.isfinite(fit.interval).all() else ""
    return f"{value}{interval}".replace("-", "\u2212")
