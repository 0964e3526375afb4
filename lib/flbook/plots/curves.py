"""Curves over training time: means over seeds with the band in which most seeds lie."""

from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure, SubFigure

from flbook.plots.look import (
    CHANCE,
    NOISE,
    SIGNAL,
    THEORY,
    averaged,
    canvas,
    direct_labels,
    label,
    log_ticks,
    looks,
    panels,
    styled,
)

BAND = (0.1, 0.9)


@styled
def learning_curves(
    ds: xr.Dataset,
    names: Sequence[str] | Mapping[str, str],
    x: str = "step",
    over: str = "seed",
    log: str = "x",
    band: tuple[float, float] = BAND,
    theory: Mapping[str, Callable[[np.ndarray], np.ndarray]] | None = None,
    levels: Mapping[str, float] | None = None,
    title: str = "",
    ylabel: str = "",
    ax: plt.Axes | None = None,
) -> Figure | SubFigure:
    """Variables of a Dataset against `x`: the mean over the seeds, and the band between two quantiles of the seeds.

    Parameters
    ----------
    ds
        Variables with the dimensions `x` and perhaps `over`.
    names
        Variables to draw, or a dict of their short labels, which stand at the ends of the lines.
    x
        Name of the horizontal axis.
    over
        The dimension of the seeds.
    log
        Which axes are logarithmic: "", "x", "y" or "xy". A step 0 cannot stand on a logarithmic axis.
    band
        The two quantiles over the seeds; the default holds eight seeds of ten.
    theory
        Dashed lines, label -> function of x.
    levels
        Dotted lines, label -> height (chance, Bayes).
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

    Examples
    --------
    >>> run = xr.Dataset({"loss": ("step", [1.0, 0.5, 0.2])}, {"step": [1, 2, 4]})
    >>> figure = learning_curves(run, ["loss"])
    >>> figure.axes[0].get_xlabel(), plt.close(figure)
    ('step', None)
    """
    ax = canvas(ax)
    labels = dict(names) if isinstance(names, Mapping) else {name: _name(ds[name]) for name in names}
    paint = looks(list(labels))
    _scales(ax, log)
    ends = []
    for name, text in labels.items():
        curve = mean_and_band(ax, ds[name], x, over, band, *paint[name], log)
        ends.append((float(curve[-1]), text, paint[name][0]))
    for text, height in (levels or {}).items():
        ax.axhline(height, color=CHANCE, linestyle=":", linewidth=1.3)
        ends.append((height, text, CHANCE))
    for k, (text, line) in enumerate((theory or {}).items()):
        grid = ds[x].to_numpy()[ds[x].to_numpy() > 0] if "x" in log else ds[x].to_numpy()
        values = np.asarray(line(grid))
        ax.plot(grid, values, color=THEORY, linestyle=("--", "-.")[k % 2], linewidth=1.6)
        ends.append((float(values[-1]), text, THEORY))
    shared = {label(ds[name]) for name in labels}
    ax.set(xlabel=label(ds[x]), ylabel=ylabel or (shared.pop() if len(shared) == 1 else ""), title=title)
    ax.margins(x=0.01)
    log_ticks(ax)
    direct_labels(ax, ends)
    return ax.figure


@styled
def coefficient_race(
    ds: xr.Dataset | Mapping[str, xr.Dataset],
    signal: str = "gamma",
    noise: str = "rho",
    panel: str | None = None,
    titles: Sequence[str] = (),
    x: str = "step",
    over: str = "seed",
    log: str = "xy",
    band: tuple[float, float] = BAND,
) -> Figure:
    """Signal learning against noise memorisation while training, in one regime or in two above each other.

    Parameters
    ----------
    ds
        One Dataset, or a dict title -> Dataset with one entry a panel.
    signal, noise
        The two variables.
    panel
        A dimension of `ds` with one or two values, one panel each; `titles` then names them.
    titles
        Of the panels.
    x
        Name of the horizontal axis.
    over
        The dimension of the seeds.
    log
        Which axes are logarithmic: "", "x", "y" or "xy".
    band
        The two quantiles over the seeds between which the band lies.

    Returns
    -------
    Figure
        A new one, of one or two panels.

    Examples
    --------
    >>> run = xr.Dataset({"gamma": ("step", [0.1, 1.0]), "rho": ("step", [0.2, 0.3])}, {"step": [1, 10]})
    >>> figure = coefficient_race({"strong signal": run})
    >>> len(figure.axes), plt.close(figure)
    (1, None)
    """
    runs = _panels(ds, panel, titles)
    fig, axes = panels(len(runs), sharex=True, sharey=True)
    for ax, (title, run) in zip(axes, runs.items(), strict=True):
        _scales(ax, log)
        pairs = ((signal, SIGNAL, "o"), (noise, NOISE, "s"))
        for name, colour, marker in pairs:
            mean_and_band(ax, run[name], x, over, band, colour, marker, log)
        ax.set(xlabel=label(run[x]), ylabel="coefficient", title=title)
        ax.margins(x=0.01)
    for ax in axes:
        log_ticks(ax)
        ax.label_outer()
    fig.legend(axes[0].get_lines(), [_name(run[name]) for name in (signal, noise)], loc="outside lower center", ncols=2)
    return fig


def _panels(ds: xr.Dataset | Mapping[str, xr.Dataset], panel: str | None, titles: Sequence[str]) -> dict:
    if not isinstance(ds, xr.Dataset):
        return dict(ds)
    if panel is None:
        return {titles[0] if titles else "": ds}
    values = ds[panel].to_numpy()
    names = titles or [f"{label(ds[panel])} = {value:g}" for value in values]
    return {name: ds.isel({panel: k}) for k, name in zip(range(len(values)), names, strict=True)}


def mean_and_band(ax, da, x, over, band, colour, marker, log) -> np.ndarray:
    """Draw one variable with its band; returns the means that were drawn.

    Parameters
    ----------
    ax
        Axes to draw in.
    da
        The variable, with the dimensions `x` and perhaps `over`.
    x
        Name of the horizontal axis.
    over
        The dimension of the seeds.
    band
        The two quantiles over the seeds.
    colour
        Of line and band.
    marker
        Of some of the points.
    log
        Which axes are logarithmic; with "x" in it, what lies at 0 or below is left out.

    Returns
    -------
    numpy.ndarray
        Of shape ``(x,)``.
    """
    if "x" in log:
        da = da.isel({x: (da[x] > 0).to_numpy()})
    mean = averaged(da, over, x)
    ax.plot(mean[x], mean, color=colour, marker=marker, markevery=max(1, mean.size // 7), markeredgecolor="white")
    if over in da.dims:
        low, high = (da.quantile(q, over) for q in band)
        ax.fill_between(mean[x], low, high, color=colour, alpha=0.2, linewidth=0)
    return mean.to_numpy()


def _scales(ax: plt.Axes, log: str) -> None:
    ax.set(xscale="log" if "x" in log else "linear", yscale="log" if "y" in log else "linear")


def _name(da: xr.DataArray) -> str:
    return str(da.attrs.get("long_name", da.name))
