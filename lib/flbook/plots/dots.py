"""Measured dots beside the closed forms of what they measure, one marker a predictor."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure, SubFigure

from flbook.plots.look import MARKERS, THEORY, averaged, canvas, label, log_ticks, styled, typeset


@styled
def dots(
    da: xr.DataArray,
    x: str,
    groups: str,
    names: Mapping[object, tuple[str, str]],
    theory: Mapping[object, Callable[[np.ndarray], np.ndarray]] | None = None,
    over: str = "seed",
    log: str = "xy",
    hollow: Sequence[object] = (),
    lowest: float = 0.0,
    title: str = "",
    legend: str | None = "lower left",
    size: tuple[float, float] | None = None,
    ax: plt.Axes | None = None,
) -> Figure | SubFigure:
    """Means over the seeds as dots, bars of one standard deviation, and a dashed closed form for each group.

    Parameters
    ----------
    da
        Dimensions `x`, `groups` and perhaps `over`.
    x
        Name of the horizontal axis.
    groups
        Name of the dimension of the predictors.
    names
        Value of `groups` -> its words in the legend and its colour, in the order of drawing.
    theory
        Value of `groups` -> function of x.
    over
        The dimension of the seeds.
    log
        Which axes are logarithmic.
    hollow
        Groups drawn as large open markers, so that others may lie inside.
    lowest
        Groups whose mean over x is not above it are left out, such as zeros on a logarithmic axis.
    title
        Of the panel.
    legend
        Where it stands; None for no legend.
    size
        Inches of a new figure.
    ax
        Axes to draw in; None: a new figure.

    Returns
    -------
    Figure | SubFigure
        The new figure, or that of `ax`.

    Examples
    --------
    >>> risk = xr.DataArray([[1.0, 0.5]], {"model": ["ridge"], "n": [10, 20]}, ("model", "n"), "risk")
    >>> figure = dots(risk, "n", "model", {"ridge": ("ridge regression", "black")}, theory={"ridge": lambda n: 10 / n})
    >>> figure.axes[0].get_ylabel(), plt.close(figure)
    ('risk', None)
    """
    ax = plt.subplots(figsize=size)[1] if size else canvas(ax)
    ax.set(xscale="log" if "x" in log else "linear", yscale="log" if "y" in log else "linear")
    grid = da[x].to_numpy().astype(float)
    line = np.geomspace(grid.min(), grid.max(), 80) if "x" in log else np.linspace(grid.min(), grid.max(), 80)
    for k, (group, (text, colour)) in enumerate(names.items()):
        part = da.sel({groups: group})
        mean = averaged(part, over, x).to_numpy()
        if theory and group in theory:
            ax.plot(line, [float(theory[group](at)) for at in line], "--", color=THEORY, linewidth=1.2)
        if float(mean.mean()) <= lowest:
            continue
        bars = part.std(over).transpose(x).to_numpy() if over in part.dims else None
        filled = {"markeredgecolor": "white", "markeredgewidth": 0.6, "markersize": 8}
        look = {"markerfacecolor": "none", "markersize": 13} if group in hollow else filled
        marker = MARKERS[k % len(MARKERS)]
        ax.errorbar(grid, mean, bars, fmt=marker, color=colour, label=typeset(text), zorder=3, **look)
    ax.set(xlabel=label(da[x]), ylabel=label(da), title=title)
    log_ticks(ax)
    if legend:
        ax.legend(loc=cast(Any, legend))
    return ax.figure
