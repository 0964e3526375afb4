"""Pictures of this lecture: what a page should not have to spell out."""

from itertools import product

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.optimize import fsolve

from flbook import plots
from flbook.lectures.training_strategies.out_of_distribution import Setting
from flbook.lectures.training_strategies.out_of_distribution.phases import STARTS, completed_below, stands_above
from flbook.lectures.training_strategies.out_of_distribution.plane import Plane
from flbook.plots.schematic import Schematic, box, curve, op, out, stack, strip

COLOURS = {"risk alone": plots.TRAIN, "IRMv1 from scratch": plots.NOISE, "IRMv1 after risk": plots.look.OTHERS[3],
           "IRMv1 after spurious": plots.look.OTHERS[0], "VREx from scratch": plots.TEST}  # fmt: skip
MARKERS = dict(zip(COLOURS, ("s", "X", "o", "^", "D"), strict=True))

MODEL = Schematic(
    "A two-layer network that two environments judge",
    [
        ("two patches", {
            "v": strip(r"$y\,\mathsf{a}\,v_1+y\,\mathsf{b}\,v_2$", "features", "signal+context",
                       alt="the invariant and the spurious feature in one patch"),
            "xi": strip(r"$\xi$", "noise", "noise"),
        }),
        ("filters", {"w+": stack(r"$w_{+1,r}$", "for label $+1$"), "w-": stack(r"$w_{-1,r}$", "for label $-1$")}),
        ("ReLU, mean", {sign: curve(holds="relu", alt="ReLU") for sign in ("c+", "c-")}),
        ("output", {"f": op("$f$", alt="the difference of the two means")}),
        ("environments", {"1": box(r"$R_1,\,c_1$", alt="risk and slope of environment 1"),
                          "2": box(r"$R_2,\,c_2$", alt="risk and slope of environment 2")}),
        ("loss", {"J": out(r"$J$", alt="the mean of the risks and of the squared slopes")}),
    ],
    ["v xi >> w+ w-", "w+ w- > c+ c-", "c+ c- > f", "f >> 1 2", "1 2 > J"],
    says="Every filter meets both patches. The outputs on either environment give a risk and a slope.",
)  # fmt: skip


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


def phase(kept: xr.DataArray, networks: list[tuple[float, float, float]]) -> Figure:
    """Which pairs of environments end at the invariant feature, and the share of them by start and weight.

    kept: as `phases` returns it. networks: mean and closeness of some environments, and the feature there.
    """
    fig, (ax, right) = plots.panels(2)
    fig.set_figheight(fig.get_figheight() * 1.25)
    alone = kept.sel(penalty="IRMv1", start="after spurious").stack(cell=("weight", "pair"))
    mean, width = (alone.beta_1 + alone.beta_2).values / 2, (alone.beta_2 - alone.beta_1).values
    near, learned = alone.weight.values * width**2, alone.values > 0.5
    for chosen, marker, name, style in (
        (learned, "o", "learned", {"color": COLOURS["IRMv1 after spurious"], "markersize": 2}),
        (~learned, "x", "unlearned", {"color": COLOURS["IRMv1 from scratch"], "markersize": 4}),
    ):  # fmt: skip
        ax.plot(mean[chosen], near[chosen], marker, label=name, rasterized=True, alpha=0.8, **style)
    beta = 0.21781 + np.geomspace(1e-5, 0.272, 400)  # from the mean at which the border is infinite
    ax.plot(beta, completed_below(beta), color=plots.THEORY, linestyle="--", linewidth=2, label="border (theory)")
    beta = np.linspace(0.03, 0.49)
    ax.plot(beta, stands_above(beta), color=plots.THEORY, linestyle=":", linewidth=1.6, label="above: a minimum near 0")
    for mean, closeness, feature in networks:
        colour = COLOURS["IRMv1 after spurious" if feature > 0.5 else "IRMv1 from scratch"]
        ax.plot(mean, closeness, "s", color=colour, markerfacecolor=colour if feature > 0.5 else "white",
                markersize=9, markeredgewidth=2, zorder=4)
    ax.set(yscale="log", ylim=(1e-2, 1e4), xlabel=r"mean of the environments $\bar\beta$",
           ylabel=r"$\lambda\,(\beta_2-\beta_1)^2$", title="IRMv1 after spurious")  # fmt: skip
    share = (kept > 0.5).mean("pair")
    routes = ("IRMv1 from scratch", "IRMv1 after spurious", "", "", "IRMv1 after risk")
    for start, route, marker, aside in zip(STARTS, routes, "X^<>o", (1, 1, 1, 1.2, 0.83), strict=True):
        right.plot(share.weight * aside, share.sel(penalty="IRMv1", start=start), marker, linestyle="-", linewidth=1.4,
                   color=COLOURS.get(route, plots.TRAIN), markersize=6, label=start.replace("after spurious, ", "and "))
    worst = share.sel(penalty="VREx").min("start")
    right.plot(share.weight, worst, MARKERS["VREx from scratch"], color=COLOURS["VREx from scratch"], linestyle="--",
               markerfacecolor="none", markersize=9, label="VREx, worst start")
    right.set(xscale="log", ylim=(-0.05, 1.08), xlabel=r"weight of the penalty $\lambda$",
              ylabel="share of pairs learned", title="IRMv1 by its start, and VREx")  # fmt: skip
    for one in (ax, right):
        one.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.24), ncols=2, frameon=False)
    return fig
