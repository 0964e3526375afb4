"""Phase diagrams: a quantity over two axes, the boundary that a theorem predicts, and the cells that the text names."""

from collections.abc import Callable, Mapping, Sequence
from string import ascii_uppercase

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure, SubFigure
from matplotlib.patheffects import withStroke

from flbook.plots.look import THEORY, averaged, canvas, geometric, label, log_ticks, styled, typeset

Curve = xr.DataArray | Callable[[np.ndarray], np.ndarray]


@styled
def phase_diagram(
    da: xr.DataArray,
    x: str,
    y: str,
    boundary: Curve | Mapping[str, Curve] | None = None,
    contours: Sequence[float] = (),
    marks: Sequence[tuple[float, float]] | Mapping[str, tuple[float, float]] = (),
    limits: tuple[float, float] | None = None,
    title: str = "",
    cmap: str = "viridis",
    over: str = "seed",
    legend: bool = True,
    ax: plt.Axes | None = None,
) -> Figure | SubFigure:
    """The mean of `da` over the seeds as colours over (x, y).

    Parameters
    ----------
    da
        Dimensions `x`, `y` and perhaps `over`.
    x
        Name of the horizontal axis.
    y
        Name of the vertical axis.
    boundary
        A prediction ``y = f(x)`` (a function: dashed line), a measured curve (a DataArray along `x` or along `y`, as
        ``fits.crossing`` returns it: dots), or a dict of names and such curves.
    contours
        Levels of `da` to draw as thin white lines with their value.
    marks
        Cells the text talks about, ``(x, y)`` each: lettered A, B, C, or by the keys of a dict.
    limits
        Lowest and highest value of the colour bar.
    title
        Of the panel.
    cmap
        Name of a colour map.
    over
        The dimension of the seeds.
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
    >>> error = xr.DataArray([[0.5, 0.5], [0.0, 0.5]], {"snr": [1, 2], "n": [10, 20]}, ("snr", "n"), "error")
    >>> figure = phase_diagram(error, "n", "snr", boundary=lambda n: 20 / n, marks={"A": (20, 2)})
    >>> figure.axes[0].get_ylabel(), plt.close(figure)
    ('snr', None)
    """
    ax = canvas(ax)
    mean = averaged(da, over, y, x)
    scales = ["log" if geometric(mean[name].to_numpy()) else "linear" for name in (x, y)]
    ax.set(xscale=scales[0], yscale=scales[1], xlabel=label(mean[x]), ylabel=label(mean[y]))
    lowest, highest = limits or (None, None)
    mesh = ax.pcolormesh(
        _edges(mean[x].to_numpy()), _edges(mean[y].to_numpy()), mean.to_numpy(), cmap=cmap, vmin=lowest, vmax=highest
    )
    for side in ("top", "right"):
        ax.spines[side].set_visible(True)
    bar = ax.figure.colorbar(mesh, ax=ax, label=label(mean), pad=0.02)
    bar.outline.set_visible(False)
    if contours:
        lines = ax.contour(mean[x], mean[y], mean, levels=sorted(contours), colors="white", linewidths=1.0)
        ax.clabel(lines, fmt="%g", fontsize=9)
    box = ax.get_xlim(), ax.get_ylim()
    curves = boundary if isinstance(boundary, Mapping) else {"predicted boundary": boundary}
    for k, (name, curve) in enumerate(curves.items()):
        if curve is not None:
            _curve(ax, mean, x, y, curve, name, k)
    ax.set(xlim=box[0], ylim=box[1])
    log_ticks(ax)
    lettered = marks if isinstance(marks, Mapping) else dict(zip(ascii_uppercase, marks, strict=False))
    ring = {"boxstyle": "circle,pad=0.25", "facecolor": "white", "edgecolor": "black", "linewidth": 0.9}
    for name, (at_x, at_y) in lettered.items():
        cell = mean.sel({x: at_x, y: at_y}, method="nearest")
        spot = float(cell[x]), float(cell[y])
        ax.text(*spot, name, ha="center", va="center", fontweight="bold", bbox=ring, fontsize=9)
    ax.set_title(title)
    if legend and ax.get_legend_handles_labels()[0]:
        ax.figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return ax.figure


def _curve(ax: plt.Axes, mean: xr.DataArray, x: str, y: str, curve: Curve, name: str, k: int) -> None:
    halo = [withStroke(linewidth=4, foreground="white")]
    if not isinstance(curve, xr.DataArray):
        across = (np.geomspace if ax.get_xscale() == "log" else np.linspace)(*ax.get_xlim(), 200)
        dashes = ("--", "-.", (0, (1, 1)))[k % 3]
        ax.plot(across, curve(across), color=THEORY, linestyle=dashes, path_effects=halo, label=typeset(name))
        return
    if curve.dims not in ((x,), (y,)):
        raise ValueError(f"boundary {name!r} must have the one dimension {x!r} or {y!r}, not {curve.dims}")
    points = (curve[x], curve) if curve.dims == (x,) else (curve, curve[y])
    ax.plot(*points, "o", color=THEORY, markeredgecolor="white", markersize=6, label=typeset(name))


def _edges(values: np.ndarray) -> np.ndarray:
    """The borders between cells: halfway between their centres, in the logarithm where the axis has one."""
    if geometric(values):
        return np.exp(_edges_of(np.log(values)))
    return _edges_of(values.astype(float))


def _edges_of(values: np.ndarray) -> np.ndarray:
    if len(values) == 1:
        return np.array([values[0] - 0.5, values[0] + 0.5])
    middle = (values[1:] + values[:-1]) / 2
    return np.concatenate([[2 * values[0] - middle[0]], middle, [2 * values[-1] - middle[-1]]])
