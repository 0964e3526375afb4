"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from flbook import plots
from flbook.plots.schematic import Schematic, box, op, out, strip

MARKERS = {"colour crops": "o", "grey crops": "s", "digits": "^"}
MODEL = Schematic(
    "A small convolutional network",
    [
        ("picture", {"x": strip("$x$", "16 by 16 pixels", "signal*3 noise*3", lane=0, alt="a crop x of a photograph")}),
        ("filters", {"one": box("8 of\n3 x 3", lane=0, alt="8 filters of 3 by 3 pixels, ReLU")}),
        ("pool", {"p": box("max of\n2 x 2", lane=0, alt="maximum over 2 by 2 pixels")}),
        ("filters", {"two": box("16 of\n3 x 3", lane=0, alt="16 filters of 3 by 3 pixels, ReLU")}),
        ("pool", {"q": box("max of\n2 x 2", lane=0, alt="maximum over 2 by 2 pixels")}),
        ("read-out", {"a": op("$a$", lane=0, alt="linear read-out a")}),
        ("output", {"f": out("$f(x)$", lane=0, alt="the output f")}),
    ],
    ["x > one > p > two > q > a > f"],
    says="The sign of the output is the class.",
)  # fmt: skip


def rows(ax: Axes, found: xr.DataArray, title: str, level: Mapping[str, float] | None = None) -> None:
    """One row a rule, one marker a kind of pictures: mean over data sets, and two standard errors either way.

    level: a number of each kind, for a thin line across all rows.
    """
    rules = list(found.rule.values)
    for place, kind in enumerate(found.kind.values):
        here, colour = found.sel(kind=kind), plots.look.OTHERS[place]
        y = np.arange(len(rules)) + 0.24 * (place - 1)
        error = 2 * here.std("seed", ddof=1) / np.sqrt(here.sizes["seed"])
        marker = MARKERS[str(kind)]
        ax.errorbar(here.mean("seed"), y, xerr=error, fmt=marker, color=colour, markersize=5, lw=1.2, label=str(kind))
        if level is not None:
            ax.axvline(level[str(kind)], color=colour, linewidth=0.8, linestyle=":")
    ax.set_yticks(range(len(rules)), rules)
    ax.invert_yaxis()
    ax.set(xlabel="test error", title=title)
    ax.grid(axis="y", visible=False)


def table(found: xr.Dataset) -> Figure:
    """Test errors of every rule on every kind of picture: trained to the end, and stopped by held-out pictures."""
    fig, (above, below) = plots.panels(2, sharex=True)
    fig.set_size_inches(fig.get_size_inches()[0], 8.4)
    plain = found.stopped.sel(rule="gradient descent").mean("seed")
    level = {str(kind): float(plain.sel(kind=kind)) for kind in found.kind.values}
    rows(above, found["last"], "After the last step", level)
    rows(below, found["stopped"], "Stopped early", level)
    plots.look.shared_legend([above], 3)
    return fig


def memorised(found: xr.Dataset) -> Figure:
    """Shares of wrong labels that each rule fits."""
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(fig.get_size_inches()[0], 4.1)
    rows(ax, found.memorised, "Wrong labels that are fitted at the end")
    ax.set_xlabel("share of flipped pictures")
    plots.look.shared_legend([ax], 3)
    return fig


def sheet(crops: Mapping[str, Tensor]) -> Figure:
    """Some pictures of every kind, the first class above."""
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(fig.get_size_inches()[0], 1.35)
    tiles = []
    for x in crops.values():
        shown = x[:8].expand(-1, 3, -1, -1).numpy()
        shown = np.kron(shown, np.ones((1, 1, 16 // shown.shape[-1], 16 // shown.shape[-1])))
        low, high = np.quantile(shown, [0.01, 0.99], axis=(1, 2, 3), keepdims=True)
        tiles.append(((shown - low) / (high - low)).clip(0, 1))
    grid = np.ones((2 * 18, 4 * 18 * len(tiles) + 8 * (len(tiles) - 1), 3))
    for kind, block in enumerate(tiles):
        for place in range(8):
            top, left = 18 * (place % 2), kind * (4 * 18 + 8) + 18 * (place // 2)
            grid[top : top + 16, left : left + 16] = block[place].transpose(1, 2, 0)
    ax.imshow(grid, interpolation="nearest")
    ax.set_xticks([kind * 80 + 35 for kind in range(len(tiles))], list(crops))
    ax.set_yticks([8, 26], ["+1", "-1"])
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    ax.grid(False)
    return fig


def lost(found: xr.Dataset, kind: str) -> Figure:
    """Test error of every rule on one kind of pictures: at its best step, stopped by held-out pictures, at the end."""
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(fig.get_size_inches()[0], 4.1)
    mean = found.sel(kind=kind).mean("seed")
    y = np.arange(mean.sizes["rule"])
    ax.hlines(y, mean.best, mean["last"], color=plots.TRAIN, linewidth=1)
    ax.plot(mean.best, y, "o", markerfacecolor="none", color=plots.look.OTHERS[2], label="best step of all")
    ax.plot(mean.stopped, y, "d", color=plots.TEST, label="stopped")
    ax.plot(mean["last"], y, "s", color=plots.NOISE, label="last step")
    ax.set_yticks(y, list(found.rule.values))
    ax.invert_yaxis()
    ax.set(xlabel="test error", title=kind.capitalize())
    ax.grid(axis="y", visible=False)
    plots.look.shared_legend([ax], 3)
    return fig
