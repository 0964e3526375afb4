"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.plots.schematic import Schematic, curve, op, out, stack, strip

MODEL = Schematic(
    "A two-layer convolutional network on sparse noise",
    [
        ("two patches", {
            "mu": strip(r"$y\mu$", "feature", "signal", alt="the feature, y times mu"),
            "xi": strip(r"$\xi-\alpha y\mu$", "noise", "noise*5 -signal*1", alt="sparse noise less alpha y mu"),
        }),
        ("filters", {
            "w+": stack(r"$w_{+1,r}$", r"for label $+1$", alt="those for the label +1"),
            "w-": stack(r"$w_{-1,r}$", r"for label $-1$", alt="those for the label -1"),
        }),
        ("activation", {
            "s+": curve(r"$\sigma$", holds="cube", alt="cubed ReLU"),
            "s-": curve(r"$\sigma$", holds="cube", alt="cubed ReLU"),
        }),
        ("sum over $r$", {"F+": op(r"$\Sigma$", r"$F_{+1}$"), "F-": op(r"$\Sigma$", r"$F_{-1}$")}),
        ("difference", {"minus": op("$-$")}),
        ("output", {"f": out(r"$f(W,x)$", alt="the difference of the two sums")}),
    ],
    ["mu xi >> w+ w-", "w+ w- > s+ s-", "s+ s- > F+ F-", "F+ F- > minus", "minus > f"],
    says="Every filter meets both patches. The noise patch holds a little of the feature with the wrong sign.",
)  # fmt: skip

SHORT = {"gradient descent": "GD", "Adam": "Adam", "sign descent": "sign descent"}
PAINT = dict(zip(SHORT, plots.look.OTHERS, strict=False))  # one colour and one marker for each rule, on all pictures
MARKS = dict(zip(SHORT.values(), plots.look.MARKERS, strict=False))


def _marked(ax: plt.Axes) -> None:
    """The markers of the rules, whichever of them are there."""
    for line in ax.get_lines():
        if line.get_label() in MARKS:
            line.set_marker(MARKS[line.get_label()])


def race(racing: xr.Dataset) -> Figure:
    """Training loss and test error over the steps of each rule."""
    fig, axes = plots.panels(2, sharex=True)
    names = {name: SHORT[name] for name in racing.rule.values}
    titles = {"train_loss": "Both fit the training labels", "test_error": "One predicts new ones"}
    for ax, (name, title) in zip(axes, titles.items(), strict=True):
        levels = {"chance": 0.5} if name == "test_error" else None
        plots.learning_curves(racing[name].to_dataset("rule"), names, levels=levels, title=title,
                              ylabel=plots.look.label(racing[name]), ax=ax)  # fmt: skip
    return fig


@plots.look.styled
def inside(racing: xr.Dataset) -> Figure:
    """Responses to the feature and to the noise under Adam, and to the feature under gradient descent."""
    fig, ax = plt.subplots(figsize=(5.2, 3.6))
    colours = {"feature": plots.SIGNAL, "noise": plots.NOISE}
    for (name, colour), how in product(colours.items(), (("Adam", "-"), ("gradient descent", ":"))):
        rule, dash = how
        lines = racing[name].sel(rule=rule)
        low, high = lines.quantile([0.1, 0.9], "seed").values
        ax.fill_between(racing.step, low, high, color=colour, alpha=0.15, lw=0)
        ax.plot(racing.step, lines.mean("seed"), color=colour, ls=dash, lw=2.2, label=f"{name}, {SHORT[rule]}")
    ax.axhline(0, color=plots.CHANCE, lw=0.8)
    ax.set(xscale="log", ylim=(-0.4, 2.4), xlabel=plots.look.label(racing.step), ylabel="largest response")
    plots.look.log_ticks(ax)
    plots.shared_legend((ax,), ncols=2)
    return fig


@plots.look.styled
def border(by_size: Mapping[str, xr.DataArray], law: tuple, by_overlap: Mapping[str, xr.DataArray]) -> Figure:
    """The feature noise that turns the feature, against the size of the noise and against shared coordinates.

    by_size: by rule, over `size`. law: positions and heights. by_overlap: by rule, over `overlap`, in units of the law.
    """
    fig, (left, right) = plots.panels(2)
    paint = {SHORT[name]: colour for name, colour in PAINT.items()}
    named = {SHORT[name]: found for name, found in by_size.items()}
    plots.series(named, "size", paint=paint, lines={"α* = π/(sσ_ξ)²": law}, title="No shared coordinate",
                 legend=False, ax=left)
    named = {SHORT[name]: found for name, found in by_overlap.items()}
    line = {"α* = π/(sσ_ξ)²": (np.array([0.4, 25.0]), np.array([1.0, 1.0]))}
    plots.series(named, "overlap", paint=paint, lines=line, title="Shared coordinates", legend=False, ax=right)
    right.set_ylim(0.6, 9)
    plots.look.log_ticks(right)
    for ax in (left, right):
        _marked(ax)
        for line in ax.get_lines():  # two rules, one place: the larger marker is open
            if line.get_label() == "sign descent":
                line.set(markersize=13, markerfacecolor="none", markeredgecolor=line.get_color(), zorder=4)
    plots.shared_legend((left, right), ncols=3)
    return fig


@plots.look.styled
def batches(stored: xr.Dataset) -> Figure:
    """Test error, and the largest response to the feature, against the samples of a step."""
    fig, (left, right) = plots.panels(2, sharex=True)
    paint = {SHORT[name]: colour for name, colour in PAINT.items()}
    for ax, name, title, ylim in (
        (left, "test_error", "Test error", (-0.03, 1)),
        (right, "feature", "Largest response to the feature", (-0.4, 0.95)),
    ):
        curves = {SHORT[one]: stored[name].sel(rule=one, drop=True) for one in stored.rule.values}
        levels = {"chance": 0.5} if name == "test_error" else None
        if name == "feature":
            ax.axhline(0, color=plots.CHANCE, lw=0.8)
        plots.series(curves, "batch", paint=paint, joined=True, log="x", levels=levels, ylim=ylim, title=title,
                     legend=False, ax=ax)  # fmt: skip
        _marked(ax)
    right.set_ylabel("response, the label with less")
    plots.shared_legend((right, left), ncols=2)
    return fig


@plots.look.styled
def orders(stored: xr.Dataset) -> Figure:
    """Test error of Adam less that of gradient descent over samples, for small and large pictures, two step sizes.

    stored: `noisy_digits`, over (rule, n, zoom, seed).
    """
    fig, axes = plots.panels(2, sharex=True, sharey=True)
    colours = dict(zip(stored.zoom.values, plots.look.OTHERS, strict=False))
    for ax, name, title in zip(axes, ("Adam", "Adam, large steps"), ("Small steps", "Large steps"), strict=True):
        gap = stored.test_error.sel(rule=name) - stored.test_error.sel(rule="gradient descent")
        mean, error = gap.mean("seed"), gap.std("seed", ddof=1) / np.sqrt(gap.sizes["seed"])
        for place, (zoom, marker) in enumerate(zip(stored.zoom.values, plots.look.MARKERS, strict=False)):
            shift = 1.04 ** (place - 1)
            ax.errorbar(gap.n * shift, mean.sel(zoom=zoom), error.sel(zoom=zoom), color=colours[zoom], marker=marker,
                        ms=7, lw=1.2, capsize=3, label=f"d = {64 * zoom**2}")  # fmt: skip
        ax.axhline(0, color=plots.CHANCE, lw=1, ls=":")
        ax.set(xscale="log", xlabel="training samples n", ylabel="Adam less GD [fraction]", title=title)
        ax.set_xticks(gap.n.values, [str(n) for n in gap.n.values])
        ax.minorticks_off()
    plots.shared_legend(axes, ncols=3)
    return fig
