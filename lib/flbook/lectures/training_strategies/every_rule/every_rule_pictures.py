"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots

GROUNDS = {"signal-noise, ReLU": "ReLU", "signal-noise, squared ReLU": "ReLU²", "margins": "margins",
           "strong and weak": "weak", "sparse noise": "sparse", "rare features": "rare, 5 %",
           "common and rare": "rare, 10 %", "environments": "shift"}  # fmt: skip
RULES = {"gradient descent": "GD", "label noise": "label noise", "SAM, then GD": "SAM"}


def tables(
    left: xr.DataArray, right: xr.DataArray, titles: tuple[str, str], best: float = 0.0, worst: float = 0.5
) -> Figure:
    """Two numbers of every rule on every ground, in print and as colours, from dark at the best; means over seeds."""
    fig, axes = plots.panels(2)
    fig.set_size_inches(fig.get_figwidth(), 7.8)
    for ax, values, title in zip(axes, (left, right), titles, strict=True):
        _table(ax, values.mean("seed").transpose("rule", "ground"), title, best, worst)
    return fig


def table(values: xr.DataArray, title: str, best: float = 0.0, worst: float = 0.5) -> Figure:
    """One of `tables`."""
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(5.0, 3.7)
    _table(ax, values.mean("seed").transpose("rule", "ground"), title, best, worst)
    return fig


def _table(ax: plt.Axes, mean: xr.DataArray, title: str, best: float, worst: float) -> None:
    values = mean.to_numpy()
    badness = np.clip((values - best) / (worst - best), 0, 1)
    ax.pcolormesh(badness, cmap="viridis", vmin=0, vmax=1, edgecolors="white", linewidth=0.5)
    for (row, column), value in np.ndenumerate(values):
        text = f"{abs(value):.2f}"[1 if abs(value) < 0.995 else 0 :]  # .05, and 1.00
        colour = "white" if badness[row, column] < 0.6 else "black"
        ax.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=9, color=colour)
    ax.set_xticks(np.arange(values.shape[1]) + 0.5, [GROUNDS[name] for name in mean["ground"].values], rotation=50,
                  ha="right", rotation_mode="anchor")
    ax.set_yticks(np.arange(values.shape[0]) + 0.5, mean["rule"].values)
    ax.tick_params(length=0)
    ax.invert_yaxis()
    ax.set_title(title)


def dots(errors: Mapping[str, np.ndarray]) -> Figure:
    """Test errors of every data set, a row for each rule."""
    fig, (ax,) = plots.panels()
    for name, error in errors.items():
        ax.plot(error, [name] * len(error), "o", color=plots.TEST, alpha=0.6)
    ax.axvline(0.5, color=plots.CHANCE, linestyle=":")
    ax.invert_yaxis()
    ax.set(xlabel="test error [fraction]", xlim=(-0.02, 0.55), title="Six rules on the same ten data sets")
    return fig


def judged(table: xr.Dataset, names: tuple[str, ...] = tuple(RULES)) -> Figure:
    """Training loss and test error over the step size, a line for each rule; only steps at which they all train."""
    fig, axes = plots.panels(2)
    trained = np.isfinite(table.train_loss.sel(rule=list(names))).all(("rule", "seed"))
    table = table.isel(lr=trained.values)
    for ax, what, log, title in zip(axes, ("train_loss", "test_error"), ("xy", "x"),
                                    ("What the judge sees", "What it cannot see"), strict=True):
        lines = {RULES[name]: table[what].sel(rule=name, drop=True).assign_attrs(table[what].attrs) for name in names}
        plots.series(lines, "lr", log=log, joined=True, title=title, legend=False, ax=ax)
    axes[0].set_ylim(1e-6, 2)
    axes[1].legend(loc="lower left", fontsize=9, frameon=False)
    return fig


def switched(courses: Mapping[str, xr.Dataset], titles: tuple[str, str]) -> Figure:
    """Active noise neurons and test error over training, a line for each rule."""
    fig, axes = plots.panels(2, sharex=True)
    for ax, what, title in zip(axes, ("active", "test_error"), titles, strict=True):
        lines = xr.Dataset({name: one[what] for name, one in courses.items()})
        plots.learning_curves(lines, {name: name for name in courses}, title=title,
                              ylabel=next(iter(courses.values()))[what].attrs["long_name"], ax=ax)
    return fig
