"""Laws: points measured over a grid, and the line that says which law they follow."""

from collections.abc import Callable, Mapping

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure, SubFigure

from flbook.fits import Fit
from flbook.plots.look import (
    MARKERS,
    SHADES,
    SIGNAL,
    THEORY,
    averaged,
    canvas,
    direct_labels,
    geometric,
    label,
    log_ticks,
    styled,
    typeset,
)

BAND = (0.1, 0.9)


@styled
def collapse(
    da: xr.DataArray,
    x: str,
    groups: str,
    theory: Callable[[np.ndarray], np.ndarray] | Mapping[str, Callable] | None = None,
    levels: Mapping[str, float] | None = None,
    over: str = "seed",
    log: str = "x",
    title: str = "",
    legend: bool = True,
    ax: plt.Axes | None = None,
) -> Figure | SubFigure:
    """All curves of the `groups` against the one variable that should govern them: do they fall on one?

    Parameters
    ----------
    da
        Dimensions `groups`, one more, and perhaps `over`.
    x
        A coordinate of `da`, over one of its dimensions or over both.
    groups
        A dimension; up to six of its values get a marker each and bars from the 10 % to the 90 % quantile of the seeds;
        more are told apart by colour alone, along a colour bar.
    theory
        Closed form in x: a function, or a dict label -> function; dashed.
    levels
        Dotted lines, label -> height.
    over
        The dimension of the seeds.
    log
        Which axes are logarithmic: "", "x", "y" or "xy".
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
    >>> risk = xr.DataArray([[1.0, 0.5, 0.3]] * 2, {"d": [10, 20], "ratio": [1, 2, 3]}, ("d", "ratio"), "risk")
    >>> figure = collapse(risk, "ratio", groups="d", theory=lambda ratio: 1 / ratio)
    >>> figure.axes[0].get_ylabel(), plt.close(figure)
    ('risk', None)
    """
    ax = canvas(ax)
    inner = [str(dim) for dim in da.dims if dim not in (over, groups)]
    if len(inner) != 1 or groups not in da.dims or x not in da.coords:
        raise ValueError(
            f"collapse needs x = {x!r} as a coordinate and the dimensions {groups!r} and one more beside {over!r}; "
            f"{da.name or 'the data'} has the dimensions {da.dims}"
        )
    mean = averaged(da, over, groups, inner[0])
    low, high = (da.quantile(q, over).transpose(groups, inner[0]) if over in da.dims else mean for q in BAND)
    grid = da[x].broadcast_like(mean).transpose(groups, inner[0]).to_numpy()
    values, few = da[groups].to_numpy(), da.sizes[groups] <= 6
    norm = (LogNorm if geometric(values) else Normalize)(values.min(), values.max())
    paint = SHADES(np.linspace(0, 1, len(values)) if few else norm(values))
    for k, value in enumerate(values):
        marker, size = (MARKERS[k], 6) if few else ("o", 3)
        if few:
            ax.vlines(grid[k], low[k], high[k], color=paint[k], linewidth=1.2, alpha=0.6)
        text = f"{value:g}" if few else None
        ax.plot(grid[k], mean[k], marker, color=paint[k], markeredgecolor="white", markersize=size, label=text,
                markeredgewidth=0.5 if few else 0, zorder=3)  # fmt: skip
    ax.set(xscale="log" if "x" in log else "linear", yscale="log" if "y" in log else "linear")
    ax.set(xlabel=label(da[x]), ylabel=label(da), title=title)
    positive = grid[grid > 0] if "x" in log else grid
    line = np.geomspace(positive.min(), positive.max(), 200) if "x" in log else np.linspace(grid.min(), grid.max(), 200)
    curves = theory if isinstance(theory, Mapping) else {"theory": theory}
    for k, (name, curve) in enumerate(curves.items()):
        if curve is not None:
            dashes = ("--", "-.")[k % 2]
            ax.plot(line, curve(line), color=THEORY, linestyle=dashes, linewidth=1.6, label=typeset(name), zorder=4)
    for name, height in (levels or {}).items():
        ax.axhline(height, color=THEORY, linestyle=":", linewidth=1.3, label=typeset(name))
    if not few:
        bar = ax.figure.colorbar(ScalarMappable(norm, SHADES), ax=ax, label=label(da[groups]), pad=0.02)
        bar.outline.set_visible(False)
        log_ticks(bar.ax)
    log_ticks(ax)
    if legend:
        handles, texts = ax.get_legend_handles_labels()
        ax.figure.legend(handles, texts, loc="outside lower center", title=label(da[groups]) if few else None, ncols=3)
    return ax.figure


@styled
def scaling(
    da: xr.DataArray,
    x: str,
    fit: Fit,
    guides: Mapping[str, float] | None = None,
    over: str = "seed",
    name: str = "",
    colour: str = SIGNAL,
    marker: str = "o",
    title: str = "",
    ax: plt.Axes | None = None,
) -> Figure | SubFigure:
    """A power law on two logarithmic axes: dots, the fitted line, and its slope with the interval beside it.

    Parameters
    ----------
    da
        Dimension `x` and perhaps `over`, whose 10 % to 90 % quantiles are drawn as bars.
    x
        Name of the horizontal axis.
    fit
        What ``fits.exponent`` or ``fits.boundary`` returned.
    guides
        Slopes to compare with, label -> exponent: dashed lines through the middle of the dots.
    over
        The dimension of the seeds.
    name
        Stands before the slope, when several laws share the axes.
    colour
        Of dots and line.
    marker
        Of the dots.
    title
        Of the panel.
    ax
        Axes to draw in; None: a new figure.

    Returns
    -------
    Figure | SubFigure
        The new figure, or that of `ax`.
    """
    ax = canvas(ax)
    mean = averaged(da, over, x)
    grid, heights = mean[x].to_numpy().astype(float), mean.to_numpy()
    middle = np.exp(np.log(grid).mean()), np.exp(np.log(heights).mean())
    line = np.array([grid.min(), grid.max()]) * [0.93, 1.07]
    ax.set(xscale="log", yscale="log", xlabel=label(da[x]), ylabel=label(da), title=title)
    if over in da.dims:
        low, high = (da.quantile(q, over) for q in BAND)
        ax.vlines(grid, low, high, color=colour, linewidth=1.4, alpha=0.6)
    ax.plot(line, middle[1] * (line / middle[0]) ** fit.value, color=colour, linewidth=2.6, alpha=0.6)
    ax.plot(grid, heights, marker, color=colour, markersize=7, markeredgecolor="white", zorder=3)
    ends = []
    for k, (text, slope) in enumerate((guides or {}).items()):
        guide = middle[1] * (line / middle[0]) ** slope
        ax.plot(line, guide, color=THEORY, linewidth=1.4, linestyle=("--", "-.", (0, (4, 1, 1, 1, 1, 1)))[k % 3])
        ends.append((float(guide[1]), text, THEORY))
    log_ticks(ax)
    direct_labels(ax, ends)
    _write_slope(ax, fit, name, colour)
    return ax.figure


def _write_slope(ax: plt.Axes, fit: Fit, name: str, colour: str) -> None:
    """Write slope and interval into the upper corner that the line leaves free, below those of other laws."""
    above = sum(text.get_gid() == "slope" for text in ax.texts)
    side, spot = ("right", 0.98) if fit.value < 0 else ("left", 0.03)
    known = np.isfinite(fit.interval).all()
    interval = f"\n[{fit.interval[0]:.3f}, {fit.interval[1]:.3f}]" if known else ""
    text = f"{name} slope {fit.value:.3f}".strip().replace("-", "\u2212") + interval.replace("-", "\u2212")
    place = {"transform": ax.transAxes, "ha": side, "va": "top", "gid": "slope"}
    ax.text(spot, 0.99 - 0.16 * above, text, color=colour, fontweight="bold", linespacing=1.15, **place)
