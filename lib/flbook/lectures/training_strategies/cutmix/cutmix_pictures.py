"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.plots.schematic import Schematic, box, curve, op, out, strip

MODEL = Schematic(
    "CutMix, and a two-layer network with one filter for each label",
    [
        ("two samples", {"i": strip(r"$x_i$", "a feature, noise", "signal*2 noise*4"),
                         "j": strip(r"$x_j$", "another, noise", "-signal*2 -noise*4")}),
        ("paste", {"x": strip(r"$\tilde x$", holds="signal*2 -noise*4", alt="the paste")}),
        ("filters", {"w+": box(r"$w_{+1}$"), "w-": box(r"$w_{-1}$")}),
        ("leaky ReLU", {sign: curve(r"$\varphi$", holds="relu", alt="leaky ReLU") for sign in ("s+", "s-")}),
        ("difference", {"minus": op("$-$")}),
        ("output", {"f": out(r"$F$", alt="the difference, summed over patches")}),
    ],
    [r"i > x | $p\in\mathcal{S}$", r"j > x | $p\notin\mathcal{S}$", "x >> w+ w-", "w+ w- > s+ s-", "s+ s- > minus > f"],
    says="The paste has its feature from one sample and its noise from the other.",
)

SHORT = {"plain": "ERM", "Cutout": "Cutout", "CutMix": "CutMix"}


def race(racing: xr.Dataset, rest: float) -> Figure:
    """Output on the most and the least frequent feature over training, a line for each recipe. rest: z*."""
    fig, axes = plots.panels(2, sharex=True)
    titles = ("The common feature", "The very rare feature")
    for ax, place, title in zip(axes, (0, -1), titles, strict=True):
        lines = racing.z.isel(frequency=place, drop=True).to_dataset("recipe")
        plots.learning_curves(
            lines, SHORT, levels={"$z^*$": rest}, title=title, ylabel="output on the feature z", ax=ax
        )
    return fig


def staircase(racing: xr.Dataset, heights: Mapping[str, float]) -> Figure:
    """Output on every feature over training under one recipe. heights: dotted levels of the common feature."""
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(5.2, 2.7)
    names = {"common": "common", "rare": "rare", "very rare": "very rare"}
    lines = xr.Dataset({name: racing.z.isel(frequency=k, drop=True) for k, name in enumerate(names)})
    title = "The common feature comes down to z*"
    plots.learning_curves(lines, names, levels=heights, title=title, ylabel="output on the feature z", ax=ax)
    ax.set_ylim(0, 1.65)
    return fig


def loss(of: Callable, resting: Callable, patches: int) -> Figure:
    """Mean loss of CutMix if all patches are said z to, and where it is smallest; the same axes for every frame."""
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(5.2, 2.7)
    z, rest = np.linspace(0, 3, 200), resting(patches)
    ax.plot(z, of(z, patches), color=plots.TRAIN)
    if np.isfinite(rest):
        ax.plot(rest, of(rest, patches), "o", color=plots.SIGNAL, ms=9, mec="white")
    title = f"P = {patches}: " + (f"z* = {rest:.3f}" if np.isfinite(rest) else "no minimum")
    ax.set(xlabel="output on every patch z", ylabel="mean loss [nats]", ylim=(0.1, 1.0), title=title)
    return fig


def by_frequency(parts: Sequence[xr.Dataset], rest: float, law: tuple[np.ndarray, np.ndarray]) -> Figure:
    """Output and test error against the frequency of the feature, a series for each recipe.

    parts: results with recipes. rest: z*. law: frequencies and outputs of training on single patches.
    """
    found = xr.concat(parts, "recipe")
    fig, (left, right) = plots.panels(2, sharex=True)
    outputs = {name: found.z.sel(recipe=name) for name in found.recipe.values}
    lines = {"law of single patches": law}
    plots.series(outputs, "frequency", joined=True, log="x", lines=lines, levels={"z*": rest}, title="Output",
                 legend=False, ax=left)
    missed = {name: found.test_error.sel(recipe=name) for name in found.recipe.values}
    plots.series(missed, "frequency", joined=True, log="x", title="Test error", legend=False, ax=right)
    for ax in (left, right):  # two series lie on each other: the one on top is hollow
        top = next(line for line in ax.lines if line.get_label() == "one patch, smoothed")
        top.set(markerfacecolor="none", markeredgecolor=top.get_color(), markersize=12)
    plots.shared_legend((left,))
    return fig


def resting(measured: xr.DataArray, closed: Mapping[int, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """Where all patches end, over the share of whole pictures: measured dots and closed lines, by number of patches."""
    dots = {f"P = {int(count)}": measured.sel(patches=count, drop=True) for count in measured.patches.values}
    lines = {f"root, P = {count}": line for count, line in closed.items()}
    return plots.series(dots, "whole", lines=lines, log="", title="One equation for every law of the cut")
