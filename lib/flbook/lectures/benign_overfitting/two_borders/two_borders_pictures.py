"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.plots.look import direct_labels
from flbook.plots.schematic import two_layer_cnn

MODEL = two_layer_cnn()
LEARNED, ERRS = plots.SIGNAL, plots.TEST  # what changes at a border
_GREEN = "#00704f"  # of words: the other is too light for them


class Law(NamedTuple):
    """A border: its words, its exponent in d, and where it was measured; or its height at d = 1."""

    words: str
    power: float
    measured: tuple[Sequence[float], Sequence[float]] | float  # at these d, these |mu|/sigma_xi
    colour: str
    marker: str = ""  # none: not measured
    hollow: bool = False  # of another n, moved along the law's own power of n

    def height(self) -> float:
        """Of the line at d = 1: the geometric mean of what was measured."""
        if not self.marker:
            return float(self.measured)
        at, found = (np.asarray(part, float) for part in self.measured)
        return float(np.exp(np.mean(np.log(found / at**self.power))))


def borders(laws: Sequence[Law], n: int, leaky: float) -> Figure:
    """Signal strength of every border over the dimension, and the window of ReLU.

    leaky: d/n at the border of leaky ReLU, which has one in d and none in the signal.
    """
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(5.2, 4.6)
    ax.set(xscale="log", yscale="log", xlim=(30, 2e7), ylim=(1, 3000))
    ax.set(xlabel="dimension $d$", ylabel=rf"signal strength $|\mu|/\sigma_\xi$ at $n = {n}$")
    across, lines = np.geomspace(30, 2e7, 60), {}
    for law in laws:
        if law.marker:
            face = "white" if law.hollow else law.colour
            ax.plot(*law.measured, law.marker, color=law.colour, markerfacecolor=face, markersize=6, zorder=3)
        lines[law.words] = law.height() * across**law.power
        ax.plot(across, lines[law.words], "--", color=plots.THEORY, linewidth=1.0, zorder=1)
    direct_labels(ax, [(lines[law.words][-1], law.words, law.colour) for law in laws], gap=0.062)
    for label in ax.texts:
        colour = _GREEN if label.get_color() == ERRS else label.get_color()
        label.set(fontsize=11, fontweight="normal", color=colour)
    low, high = (next(lines[law.words] for law in laws if law.words.startswith(start)) for start in ("ReLU:", "signal"))
    ax.fill_between(across, low, high, where=high > low, color="#e6e6e6", zorder=0, linewidth=0)
    ax.text(3.6e6, 105, "mostly noise\nlearned,\nfew errors", ha="center", va="center", fontsize=9.5)
    spot = n * leaky, np.sqrt(5 * leaky)
    ax.plot(*spot, "v", color=ERRS, markerfacecolor="white", markersize=6, zorder=3)
    line = {"arrowstyle": "-", "color": ERRS, "shrinkB": 4}
    ax.annotate(f"leaky ReLU:\n$d = {leaky:.1f}\\,n$", spot, (40, 90), color=_GREEN, fontsize=10, arrowprops=line)
    plots.log_ticks(ax)
    return fig


def side_by_side(panels: Mapping[str, xr.Dataset]) -> Figure:
    """Share of the noise in what is learned and test error over the signal; a panel for each title."""
    fig, axes = plots.panels(2, sharey=True)
    for ax, (title, found) in zip(axes, panels.items(), strict=True):
        curves = {"share of the noise": found.share, "test error": found.error}
        plots.series(curves, "mu", paint=dict(zip(curves, (LEARNED, ERRS), strict=True)), joined=True, log="x",
                     ylim=(-0.03, 1.05), title=title, legend=False, ax=ax)  # fmt: skip
        ax.set_ylabel("fraction")
    plots.shared_legend(axes, ncols=2)
    return fig


def over_d(found: Mapping[str, xr.DataArray], lines: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """Where either border of ReLU lies over the dimension. lines: the powers to compare with."""
    paint = dict(zip(found, (LEARNED, ERRS), strict=True))
    fig = plots.series(dict(found), "d", paint=paint, lines=lines, title="The window widens")
    fig.axes[0].set_ylabel(r"signal strength $|\mu|/\sigma_\xi$")
    return fig


def over_start(found: Mapping[str, xr.DataArray], law: tuple[np.ndarray, np.ndarray]) -> Figure:
    """Signal that a border asks for over the size of the start, in units of that at the smallest start.

    found: label -> signal strength over s. law: s, and the closed form of the last one, in the same unit.
    """
    fig, (ax,) = plots.panels()
    for name, colour, mark in zip(found, (LEARNED, plots.NOISE, ERRS), "osD", strict=True):
        ax.loglog(found[name].s, found[name], f"{mark}-", c=colour, lw=1.4, ms=5.5, mec="white", label=name)
    ax.loglog(*law, "--", c=plots.THEORY, label="closed form")
    ax.set(xlabel=r"start $s=\sigma_0\sigma_\xi d/\sqrt{n}$", ylabel="signal needed, over that\nof the smallest start")
    ax.set_title("A medium start helps, a large one harms")
    ax.set_yticks([0.8, 1, 1.5, 2, 3], ["0.8", "1", "1.5", "2", "3"], minor=False)
    ax.set_yticks([], minor=True)
    ax.legend(loc="upper left")
    return fig
