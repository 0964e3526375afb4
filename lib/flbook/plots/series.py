"""Measured series over one axis, with the closed forms and levels that they are held against."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure, SubFigure

from flbook.plots.look import THEORY, canvas, label, log_ticks, looks, styled, typeset

DASHES = ("--", "-.", ":", (0, (4, 1, 1, 1, 1, 1)))


@styled
def series(
    measured: Mapping[str, xr.DataArray],
    x: str,
    paint: Mapping[str, str] | None = None,
    lines: Mapping[str, tuple[np.ndarray, np.ndarray]] | None = None,
    levels: Mapping[str, float] | None = None,
    over: str = "seed",
    joined: bool = False,
    log: str = "xy",
    ylim: tuple[float, float] | None = None,
    title: str = "",
    legend: bool = True,
    ax: plt.Axes | None = None,
) -> Figure | SubFigure:
    """Measured series as dots: medians over the seeds, with bars from their 10 % to their 90 % quantile.

    Parameters
    ----------
    measured
        Label -> DataArray over `x` and perhaps `over`; the axis labels come from the first.
    x
        Name of the horizontal axis.
    paint
        Label -> colour; what is not named gets one of its own.
    lines
        Closed forms, label -> (positions, heights), black and dashed.
    levels
        Horizontal lines, label -> height, black and dotted.
    over
        The dimension of the seeds.
    joined
        Connect the dots by thin lines.
    log
        Which axes are logarithmic: "", "x", "y" or "xy".
    ylim
        Ends of the vertical axis.
    title
        Of the panel.
    legend
        Below the panel; False: none, where panels share one (`shared_legend`).
    ax
        Axes to draw in; None: a new figure.

    Returns
    -------
    Figure | SubFigure
        The new figure, or that of `ax`.

    Examples
    --------
    >>> risk = xr.DataArray([1.0, 0.5], {"n": [10, 20]}, ("n",), "risk")
    >>> figure = series({"ridge": risk}, "n", levels={"chance": 1.0})
    >>> figure.axes[0].get_ylabel(), plt.close(figure)
    ('risk', None)
    """
    ax = canvas(ax)
    look, paint = looks(list(measured)), paint or {}
    for name, da in measured.items():
        colour, marker = paint.get(name, look[name][0]), look[name][1]
        low, middle, high = (da.quantile(q, over) if over in da.dims else da for q in (0.1, 0.5, 0.9))
        ax.vlines(da[x], low, high, color=colour, linewidth=1.4, alpha=0.6)
        ax.plot(da[x], middle, marker, color=colour, markeredgecolor="white", markersize=7, zorder=3,
                linestyle="-" if joined else "none", linewidth=1.1, label=typeset(name))  # fmt: skip
    for k, (name, (place, height)) in enumerate((lines or {}).items()):
        ax.plot(place, height, color=THEORY, linestyle=DASHES[k % 4], linewidth=1.5, label=typeset(name))
    for k, (name, height) in enumerate((levels or {}).items()):
        spaced = (0, (1, 2 + 3 * k))
        ax.axhline(height, color=THEORY, linestyle=spaced, linewidth=1.5, label=typeset(name))
    first = next(iter(measured.values()))
    ax.set(xscale="log" if "x" in log else "linear", yscale="log" if "y" in log else "linear")
    ax.set(xlabel=label(first[x]), ylabel=label(first), title=title)
    if ylim:
        ax.set_ylim(ylim)
    log_ticks(ax)
    if legend:
        ax.figure.legend(loc="outside lower center", ncols=2, fontsize=9)
    return ax.figure
