"""A figure of any Dataset, for a first look: its variables as small panels over the longest axis that each has."""

import warnings
from collections.abc import Sequence
from itertools import product
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook.plots.curves import BAND, mean_and_band
from flbook.plots.look import SIZE, geometric, label, log_ticks, looks, shared_legend, styled
from flbook.plots.phase import phase_diagram

MOST = 4  # panels
LINES = 6  # a panel; of more, some at equal distances
LONG = 5  # values of a second axis from which on a map shows more than lines
SMALL = {"font.size": 9.5, "axes.titlesize": 10, "axes.labelsize": 9.5, "xtick.labelsize": 8.5, "ytick.labelsize": 8.5}


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

    Raises
    ------
    ValueError
        If there is no such variable of numbers, or more than four are asked for.

    Examples
    --------
    >>> run = xr.Dataset({"loss": (("lr", "step"), [[1.0, 0.5, 0.2], [1.0, 0.2, 0.1]])}, {"step": [1, 2, 4]})
    >>> figure = overview(run)
    >>> figure.axes[0].get_title(), len(figure.axes[0].lines), plt.close(figure)
    ('loss', 2, None)
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
        for ax, name in zip(axes, names, strict=False):
            _panel(ax, ds[name], over)
        if any(ax.get_legend_handles_labels()[0] for ax in fig.axes):
            shared_legend(axes[:len(names)], ncols=3)
    return fig


def _names(ds: xr.Dataset, variable: str | Sequence[str] | None) -> list[str]:
    numbers = [str(name) for name, da in ds.data_vars.items() if da.dtype.kind in "iufb"]
    names = numbers[:MOST] if variable is None else [variable] if isinstance(variable, str) else list(variable)
    if not 1 <= len(names) <= MOST or set(names) - set(numbers):
        raise ValueError(f"variable must be one to {MOST} of {', '.join(numbers)}; got {variable!r}")
    return names


def _panel(ax: plt.Axes, da: xr.DataArray, over: str) -> None:
    """One variable."""
    da = da.astype(float).isel({dim: 0 for dim, size in da.sizes.items() if size == 1}, drop=True)
    axes = [dim for dim in sorted(da.dims, key=lambda dim: -da.sizes[dim]) if dim != over]
    numbers = [dim for dim in axes if da[dim].dtype.kind in "iuf"]
    if len(numbers) > 1 and da.sizes[numbers[1]] >= LONG:
        _map(ax, da, *numbers[:2], over)
    elif numbers:
        _lines(ax, da, numbers[0], over)
    elif axes:
        _beside_words(ax, da, axes[0], over)
    else:
        _seeds(ax, da, over)
    ax.set_title(label(da))


def _map(ax: plt.Axes, da: xr.DataArray, x: str, y: str, over: str) -> None:
    """Colours over two axes, at the first value of any other."""
    phase_diagram(da.isel({dim: 0 for dim in da.dims if dim not in (x, y, over)}), x, y, over=over, ax=ax)
    ax.figure.axes[-1].set_ylabel("")  # the title says what the colours are


def _lines(ax: plt.Axes, da: xr.DataArray, x: str, over: str) -> None:
    """A line for every value of the other axes."""
    lines = _apart(da, [dim for dim in da.dims if dim not in (x, over)])
    place = da[x].to_numpy().astype(float)
    log_x = geometric(place[place > 0]) and (place > 0).sum() >= len(place) - 1  # a step 0 has no place there
    means = np.stack([(part.mean(over) if over in part.dims else part).to_numpy() for part in lines.values()])
    found = means[np.isfinite(means)]
    log_y = found.size > 0 and found.min() > 0 and found.max() >= 100 * found.min()
    ax.set(xscale="log" if log_x else "linear", yscale="log" if log_y else "linear", xlabel=label(da[x]))
    paint = looks(list(lines))
    for name, part in lines.items():
        mean_and_band(ax, part, x, over, BAND, *paint[name], "x" if log_x else "")
        ax.lines[-1].set_label(name or "_")
    if found.size and not found.any():
        ax.set_ylim(-0.05, 1)  # no errors at all: not a line in the middle of nothing
    log_ticks(ax)


def _apart(da: xr.DataArray, dims: list[str]) -> dict[str, xr.DataArray]:
    """The parts of the data at each value of some axes, by what to call them; at most so many as can be told apart."""
    every = list(product(*(range(da.sizes[dim]) for dim in dims)))
    some = dict.fromkeys(np.linspace(0, len(every) - 1, min(LINES, len(every))).round().astype(int))
    return {", ".join(_named(da[dim], k) for dim, k in zip(dims, every[i], strict=True)):
            da.isel(dict(zip(dims, every[i], strict=True)), drop=True) for i in some}


def _named(coordinate: xr.DataArray, k: int) -> str:
    """A value of an axis, with the axis' own name if it is a number."""
    value = coordinate.to_numpy()[k]
    return f"{coordinate.name} = {value:g}" if coordinate.dtype.kind in "iuf" else str(value)


def _beside_words(ax: plt.Axes, da: xr.DataArray, words: str, over: str) -> None:
    """Means as dots, a row for each word, and bars between the quantiles of the seeds."""
    others = _apart(da, [dim for dim in da.dims if dim not in (words, over)])
    paint, rows = looks(list(others)), np.arange(da.sizes[words])
    for k, (name, part) in enumerate(others.items()):
        height = rows + 0.5 * (k + 0.5) / len(others) - 0.25
        mean, low, high = part, part, part
        if over in part.dims:
            mean, (low, high) = part.mean(over), (part.quantile(q, over) for q in BAND)
        ax.hlines(height, low, high, color=paint[name][0], linewidth=2, alpha=0.5)
        ax.plot(mean, height, paint[name][1], color=paint[name][0], markeredgecolor="white", label=name or "_")
    ax.set_yticks(rows, [fill(str(word), 16) for word in da[words].to_numpy()])
    ax.set_ylim(len(rows) - 0.5, -0.5)


def _seeds(ax: plt.Axes, da: xr.DataArray, over: str) -> None:
    """A dot for each seed, and their mean as a line."""
    values = np.atleast_1d(da.to_numpy())
    ax.plot(np.arange(values.size), values, "o", color=looks([str(da.name)])[str(da.name)][0], markeredgecolor="white")
    ax.axhline(values.mean(), color="#555555", linestyle=":", linewidth=1.3)
    ax.set(xticks=[], xlabel=f"a dot for each {over}; dotted: mean {values.mean():.3g}" if values.size > 1 else "")
    ax.margins(x=0.1)
