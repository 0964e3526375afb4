"""Pictures of this lecture: what a page should not have to spell out."""

from functools import cache
from itertools import product

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.optimize import fsolve

from flbook import plots
from flbook.lectures.training_strategies.out_of_distribution import Setting
from flbook.lectures.training_strategies.out_of_distribution.plane import Plane

COLOURS = {"risk alone": plots.TRAIN, "IRMv1 from scratch": plots.NOISE, "IRMv1 after risk": plots.look.OTHERS[3],
           "IRMv1 after spurious": plots.look.OTHERS[0], "VREx from scratch": plots.TEST}  # fmt: skip
MARKERS = dict(zip(COLOURS, ("s", "X", "o", "^", "D"), strict=True))


def border(plane: Plane) -> list[np.ndarray]:
    """The curves of starts between those that the penalty undoes and those that it completes.

    They are the starts from which training runs into a saddle of the objective: followed from it, uphill.
    """
    return [side for saddle, along in saddles(plane) for side in (_uphill(plane, saddle, along),
                                                                  _uphill(plane, saddle, -along))]


def saddles(plane: Plane) -> list[tuple[np.ndarray, np.ndarray]]:
    """Saddles of the objective, each with the direction in which training runs into it."""
    found = {}
    for start in product(np.linspace(-0.6, 1.2, 10), np.linspace(-0.5, 2, 10)):
        w, _, solved, _ = fsolve(plane.gradient, start, full_output=True)
        ends = np.eye(2) * 1e-5
        hessian = np.array([(plane.gradient(w + e) - plane.gradient(w - e)) / 2e-5 for e in ends])
        values, directions = np.linalg.eigh((hessian + hessian.T) / 2)
        if solved == 1 and values[0] < 0 < values[1]:
            found[tuple(w.round(3))] = (w, directions[:, 1])
    return list(found.values())


def _uphill(plane: Plane, saddle: np.ndarray, along: np.ndarray) -> np.ndarray:
    """Steepest ascent from a saddle, until it turns at a maximum or leaves the picture."""
    w, step, path = saddle + 1e-3 * along, along, [saddle]
    while -0.5 < w[0] < 1.8 and -0.6 < w[1] < 2.2 and len(path) < 600:
        path.append(w)
        uphill = plane.gradient(w)
        turned, step = step, 0.01 * uphill / np.linalg.norm(uphill)
        if turned @ step < 0:
            break
        w = w + step
    return np.array(path)


def in_the_plane(routes: xr.Dataset, setting: Setting) -> Figure:
    """The routes of all seeds in the plane of two features, and the penalty's border."""
    fig, (ax,) = plots.panels(1)
    for k, edge in enumerate(border(setting.plane(setting.weight[0]))):
        ax.plot(*edge.T, color=plots.THEORY, linestyle="--", linewidth=1.5, label=None if k else "border (theory)")
    for name, colour in COLOURS.items():
        one = routes.sel(route=name)
        for seed in one.seed:
            ax.plot(one.signal.sel(seed=seed), one.spurious.sel(seed=seed), color=colour, linewidth=0.7, alpha=0.6)
        ax.plot(one.signal.isel(moment=-1), one.spurious.isel(moment=-1), MARKERS[name], color=colour,
                markeredgecolor="white", markersize=7, label=name, zorder=3)
    log_odds = setting.plane().erm()
    ax.plot(*log_odds, "+", color=plots.THEORY, markersize=11)
    ax.plot(log_odds[0], 0, "+", color=plots.THEORY, markersize=11, label="least risk, with b and without")
    ax.set(xlim=(-0.3, 1.6), ylim=(-0.4, 2.0), xlabel="invariant feature a", ylabel="spurious feature b",
           title="Where training ends depends on where it starts")  # fmt: skip
    fig.legend(loc="outside lower center", ncols=2, fontsize=9)
    return fig


def against_time(routes: xr.Dataset, setting: Setting) -> Figure:
    """Both features over time, without and with the penalty, and what the plane says."""
    fig, axes = plots.panels(2)
    titles = {"risk alone": "Risk alone", "IRMv1 from scratch": "Risk and penalty, from scratch"}
    for ax, (name, title) in zip(axes, titles.items(), strict=True):
        one = routes.sel(route=name)
        keep = (one.time > 0).values & (np.diff(one.time.values, prepend=-1) > 0)
        one = one.isel(moment=keep)
        run = one[["signal", "spurious"]].assign_coords(
            moment=("moment", one.time.values, {"long_name": "time", "units": "1"}))
        weight = 0.0 if name == "risk alone" else setting.weight[0]
        path = setting.plane(weight).flow(np.zeros(2), one.time.values)
        plots.learning_curves(run, {"signal": "a", "spurious": "b"}, x="moment", log="x", title=title,
                              ylabel="feature", ax=ax)
        for k in range(2):
            ax.plot(one.time, path[:, k], color=plots.THEORY, linestyle="--", linewidth=1.6, zorder=3)
    return fig


@cache
def _edges(setting: Setting) -> list[np.ndarray]:
    return border(setting.plane(setting.weight[0]))


def head_starts(measured: xr.DataArray, line: tuple, setting: Setting, start: float) -> Figure:
    """The invariant feature in the end over the head start, and the way to it in the plane for one head start."""
    fig, (left, right) = plots.panels(2)
    plots.series({"ReLU network": measured}, "head_start", lines={"the plane": line}, log="", title="In the end",
                 legend=False, ax=left)
    left.axvline(start, color=plots.CHANCE, linestyle=":", linewidth=1.3)
    for edge in _edges(setting):
        right.plot(*edge.T, color=plots.THEORY, linestyle="--", linewidth=1.5)
    before = setting.plane().flow(np.zeros(2), np.linspace(0, start, 40))
    times = np.concatenate([[0.0], np.geomspace(1e-5, setting.time, 300)])
    after = setting.plane(setting.weight[0]).flow(before[-1], times)
    right.plot(*before.T, color=plots.TRAIN, linewidth=2)
    right.plot(*after.T, color=COLOURS["IRMv1 after risk"], linewidth=2)
    right.plot(*after[-1], MARKERS["IRMv1 after risk"], color=COLOURS["IRMv1 after risk"], markersize=7)
    right.set(xlim=(-0.3, 1.6), ylim=(-0.4, 2.0), xlabel="invariant feature a", ylabel="spurious feature b",
              title=f"Switched at time {start:g}")  # fmt: skip
    return fig
