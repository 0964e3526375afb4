"""A figure of any Dataset, for a first look: its variables as small panels over the longest axis that each has."""

import warnings
from collections.abc import Sequence
from itertools import product
from math import prod
from textwrap import fill
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook.plots.curves import BAND, mean_and_band
from flbook.plots.look import CHANCE, SIGNAL, SIZE, geometric, label, log_ticks, looks, shared_legend, styled
from flbook.plots.phase import phase_diagram

MOST = 4  # panels
LINES = 6  # a panel; of more, some at equal distances
LONG = 5  # values of a second axis from which on a map shows more than lines
SMALL: dict[Any, Any] = {"font.size": 9.5, "axes.titlesize": 10, "axes.labelsize": 9.5, "xtick.labelsize": 8.5,
                         "ytick.labelsize": 8.5}


@styled
def overview(ds: xr.Dataset, variable: str | Sequence[str] | None = None, over: str = "seed") -> Figure:
    """The first four variables, or those named, each over its longest axis of numbers: means, and bands over the seeds.

    Other axes become lines with labels, two long ones a map. A variable over words only is drawn as dots beside them,
    one that has nothing but seeds as a dot for each.

    Parameters
    ----------
    ds
        Variables with ``long_name`` and ``units``; axes of one value are dropped.
    variable
        The name of one, or of up to four.
    over
        The dimension of the seeds.

    Returns
    -------
    Figure
        A new one, of one to four panels.

    Raises
    ------
    ValueError
        If there is no such variable of numbers, or more than four are asked for.

    Examples
    --------
    >>> run = xr.Dataset({"loss": (("lr", "step"), [[1.0, 0.5, 0.2], [1.0, 0.2, 0.1]])}, {"step": [1, 2, 4]})
    >>> figure = overview(run)
    >>> figure.axes[0].get_xlabel(), len(figure.axes[0].lines), plt.close(figure)
    ('step', 2, None)
    """
    names = _names(ds, variable)
    columns = min(len(names), 2)
    rows = -(-len(names) // columns)
    size = SIZE if len(names) == 1 else (6.6, (2.7, 4.6)[rows - 1])
    with plt.rc_context(SMALL if len(names) > 1 else {}), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # means of what no seed has
        fig, grid = plt.subplots(rows, columns, figsize=size, squeeze=False)
        axes = list(grid.flat)
        for ax in axes[len(names):]:
            ax.remove()
        panels = [_planned(ds[name], over) for name in names]
        labels = list(dict.fromkeys(part for panel in panels if len(panel.along) == 1 for part in panel.parts))
        paint = looks(labels)  # what is called alike looks alike in every panel
        for ax, panel in zip(axes, panels, strict=False):
            _draw(ax, panel, over, paint)
        if any(labels):
            longest = max(map(len, labels)) + 7  # with its line and a gap
            shared_legend(axes[:len(names)], ncols=min(3, max(1, int(13 * fig.get_figwidth()) // longest)))
    return fig


def _names(ds: xr.Dataset, variable: str | Sequence[str] | None) -> list[str]:
    numbers = [str(name) for name, da in ds.data_vars.items() if da.dtype.kind in "iufb"]
    names = numbers[:MOST] if variable is None else [variable] if isinstance(variable, str) else list(variable)
    if not 1 <= len(names) <= MOST or set(names) - set(numbers):
        raise ValueError(f"variable must be one to {MOST} of {', '.join(numbers)}; got {variable!r}")
    return names


class _Panel(NamedTuple):
    """One variable, the axes that it is drawn over (two of a map, none if it has seeds only), and its parts."""

    da: xr.DataArray
    along: list[str]
    parts: dict[str, xr.DataArray]


def _planned(da: xr.DataArray, over: str) -> _Panel:
    da = da.astype(float).isel({dim: 0 for dim, size in da.sizes.items() if size == 1}, drop=True)
    dims = [str(dim) for dim in da.dims]
    axes = [dim for dim in sorted(dims, key=lambda dim: -da.sizes[dim]) if dim != over]
    numbers = [dim for dim in axes if da[dim].dtype.kind in "iuf"]
    along = numbers[:2] if len(numbers) > 1 and da.sizes[numbers[1]] >= LONG else (numbers or axes)[:1]
    return _Panel(da, along, _apart(da, [dim for dim in dims if dim not in (*along, over)]))


def _draw(ax: plt.Axes, panel: _Panel, over: str, paint: dict[str, tuple[str, str]]) -> None:
    da, along, parts = panel
    if len(along) == 2:
        _map(ax, next(iter(parts.values())), along[0], along[1], over)
    elif not along:
        _seeds(ax, da, over)
    elif da[along[0]].dtype.kind in "iuf":
        _lines(ax, parts, da[along[0]], over, paint)
    else:
        _beside_words(ax, parts, da[along[0]], over, paint)
    ax.set_title(label(da))


def _map(ax: plt.Axes, da: xr.DataArray, x: str, y: str, over: str) -> None:
    """Colours over two axes."""
    phase_diagram(da, x, y, limits=None if bool(da.any()) else (0, 1), over=over, ax=ax)
    ax.figure.axes[-1].set_ylabel("")  # the title says what the colours are


def _lines(ax: plt.Axes, parts: dict[str, xr.DataArray], x: xr.DataArray, over: str,
           paint: dict[str, tuple[str, str]]) -> None:
    place, axis = x.to_numpy().astype(float), str(x.name)
    log_x = geometric(place[place > 0]) and (place > 0).sum() >= len(place) - 1  # a step 0 has no place there
    means = np.stack([(part.mean(over) if over in part.dims else part).to_numpy() for part in parts.values()])
    found = means[np.isfinite(means)]
    log_y = found.size > 0 and found.min() > 0 and found.max() >= 100 * found.min()
    ax.set(xscale="log" if log_x else "linear", yscale="log" if log_y else "linear")
    for name, part in parts.items():
        mean_and_band(ax, part, axis, over, BAND, *paint[name], "x" if log_x else "")
        ax.lines[-1].set_label(name or "_")
    ax.set_xlabel(label(next(iter(parts.values()))[axis]))
    if found.size and not found.any():
        ax.set_ylim(-0.05, 1)  # no errors at all: not a line in the middle of nothing
    log_ticks(ax)


def _beside_words(ax: plt.Axes, parts: dict[str, xr.DataArray], words: xr.DataArray, over: str, paint: dict) -> None:
    """Means as dots, a row for each word, and bars between the quantiles of the seeds."""
    rows = np.arange(words.size)
    for k, (name, part) in enumerate(parts.items()):
        height = rows + 0.5 * (k + 0.5) / len(parts) - 0.25
        mean, low, high = part, part, part
        if over in part.dims:
            mean, (low, high) = part.mean(over), (part.quantile(q, over) for q in BAND)
        colour, marker = paint[name]
        ax.hlines(height, low, high, color=colour, linewidth=2, alpha=0.5)
        ax.plot(mean, height, marker, color=colour, markeredgecolor="white", label=name or "_")
    ax.set_yticks(rows, [fill(str(word), 16) for word in words.to_numpy()])
    ax.set_ylim(len(rows) - 0.5, -0.5)


def _seeds(ax: plt.Axes, da: xr.DataArray, over: str) -> None:
    """A dot for each seed, and their mean as a line."""
    values = np.atleast_1d(da.to_numpy())
    ax.plot(np.arange(values.size), values, "o", color=SIGNAL, markeredgecolor="white")
    ax.axhline(values.mean(), color=CHANCE, linestyle=":", linewidth=1.3)
    ax.set(xticks=[], xlabel=f"a dot for each {over}; dotted: mean {values.mean():.3g}" if values.size > 1 else "")
    ax.margins(x=0.1)


def _apart(da: xr.DataArray, dims: list[str]) -> dict[str, xr.DataArray]:
    """The parts of the data at each value of some axes, by what to call them.

    Of more than can be told apart, the ends of the longest axes of numbers, then their first value, then the first.
    """
    some = {dim: list(range(da.sizes[dim])) for dim in dims}
    while prod(map(len, some.values())) > LINES:
        long = [dim for dim in dims if len(some[dim]) > 1 and da[dim].dtype.kind in "iuf"]
        if not long:
            break
        longest = max(long, key=lambda dim: len(some[dim]))
        some[longest] = some[longest][::len(some[longest]) - 1] if len(some[longest]) > 2 else [0]
    at = [dict(zip(dims, places, strict=True)) for places in product(*some.values())][:LINES]
    return {", ".join(_named(da[dim], k) for dim, k in one.items()): da.isel(one, drop=True) for one in at}


def _named(coordinate: xr.DataArray, k: int) -> str:
    """A value of an axis, with the axis' own name if it is a number."""
    value = coordinate.to_numpy()[k]
    return f"{coordinate.name} = {value:g}" if coordinate.dtype.kind in "iuf" else str(value)
