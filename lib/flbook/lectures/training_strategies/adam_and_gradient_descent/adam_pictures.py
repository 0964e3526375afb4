"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots

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


def inside(racing: xr.Dataset) -> Figure:
    """Responses to the feature and to the noise, a panel for each rule."""
    titles = {"gradient descent": "Gradient descent: the feature", "Adam": "Adam: the noise"}
    parts = {title: racing.sel(rule=name)[["feature", "noise"]] for name, title in titles.items()}
    fig = plots.coefficient_race(parts, "feature", "noise", log="x")
    for ax in fig.axes:
        ax.axhline(0, color=plots.CHANCE, lw=0.8)
        ax.set_ylabel("largest response of a filter")
    return fig


@plots.look.styled
def border(error: xr.DataArray, at: float, borders: Mapping[str, xr.DataArray], law: tuple) -> Figure:
    """Test error against α, and the α at which the feature turns against the size of the noise.

    error: over (rule, alpha, seed). at: the border there. borders: by rule, over `size`. law: positions and heights.
    """
    fig, (left, right) = plots.panels(2)
    curves = {SHORT[name]: error.sel(rule=name, drop=True) for name in SHORT}
    paint = {SHORT[name]: colour for name, colour in PAINT.items()}
    line = {"α* = π/(sσ_ξ)²": (np.array([at, at]), np.array([0.0, 0.95]))}
    plots.series(curves, "alpha", paint=paint, joined=True, log="x", lines=line, levels={"chance": 0.5},
                 ylim=(-0.03, 1), title="Test error", legend=False, ax=left)
    named = {SHORT[name]: found for name, found in borders.items()}
    plots.series(named, "size", paint=paint, lines={"α* = π/(sσ_ξ)²": law}, title="Where the feature turns",
                 legend=False, ax=right)
    for ax in (left, right):
        _marked(ax)
    for line in right.get_lines():  # two rules, one place: the larger marker is open
        if line.get_label() == "sign descent":
            line.set(markersize=13, markerfacecolor="none", markeredgecolor=line.get_color(), zorder=4)
    plots.shared_legend((right, left), ncols=3)
    return fig


@plots.look.styled
def batches(error: xr.DataArray, at: float) -> Figure:
    """Test error against the samples of a step. at: where the estimate has its border."""
    curves = {SHORT[name]: error.sel(rule=name, drop=True) for name in error.rule.values}
    paint = {SHORT[name]: colour for name, colour in PAINT.items()}
    line = {"estimate for sign descent": (np.array([at, at]), np.array([0.0, 0.95]))}
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(5.2, 2.6)
    plots.series(curves, "batch", paint=paint, joined=True, log="x", lines=line, levels={"chance": 0.5},
                 ylim=(-0.03, 1), title="Small batches learn the feature", legend=False, ax=ax)
    _marked(ax)
    plots.shared_legend((ax,))
    return fig


@plots.look.styled
def filters(signal: np.ndarray, rows: Mapping[str, np.ndarray]) -> Figure:
    """The signal, and the longest filters of each rule, each stretched to its own range; blue is +, red is -.

    signal: shape (rows, columns). rows: by rule, filters ``(count, rows, columns)``.
    """
    count = len(next(iter(rows.values())))
    fig, axes = plt.subplots(len(rows), count + 1, figsize=(plots.look.SIZE[0], 2.6), squeeze=False)
    for line, (name, found) in zip(axes, rows.items(), strict=True):
        for ax, picture in zip(line, [signal, *found], strict=True):
            reach = np.abs(picture).max()
            ax.imshow(picture, cmap="RdBu", vmin=-reach, vmax=reach, interpolation="nearest")
            ax.set(xticks=[], yticks=[])
        line[0].set_title("signal")
        line[1].set_title(name, loc="left")
    return fig
