"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.fits import Fit
from flbook.lectures.training_strategies.expert_clusters.index_clusters import FIRST, SECOND, SHARED
from flbook.lectures.training_strategies.expert_clusters.index_experts import IndexExperts
from flbook.plots.schematic import Schematic, box, curve, op, out, stack, strip

MODEL = Schematic(
    "Two experts of cubic neurons and a router",
    [
        ("input", {"x": strip("$x$", holds="context*2 signal*2 noise*3", alt="x, with centre, directions and noise")}),
        ("experts, router", {"w1": stack("$w_{1j}$", alt="w 1j of the first expert"), "r": box(r"$\theta_1$"),
                             "w2": stack("$w_{2j}$", alt="w 2j of the second")}),
        ("cubes", {"h1": curve("$h_3$", holds="cube", lane=-1),
                   "h2": curve("$h_3$", holds="cube", lane=1)}),
        ("weighed", {"p1": op(r"$\times$", lane=-1), "p2": op(r"$\times$", lane=1)}),
        ("sum", {"+": op("$+$")}),
        ("output", {"f": out("$f(x)$")}),
    ],
    ["x >> w1 r w2", "w1 w2 > h1 h2", "h1 h2 > p1 p2", r"r > p1 | $\pi_e$", "r > p2", "p1 p2 > + > f"],
    says="The router weighs the outputs of the experts.",
)


def neurons(found: xr.Dataset, laws: Mapping[str, xr.Dataset]) -> Figure:
    """Overlaps with the shared and the local direction, a line for what the neuron sees. laws: name -> equation."""
    fig, axes = plots.panels(2, sharey=True)
    titles = {"shared": "With the shared direction", "local": "With the nearer local one"}
    short = {name: name for name in found.sees.values}
    for ax, (what, title) in zip(axes, titles.items(), strict=True):
        plots.learning_curves(found[what].to_dataset("sees"), short, log="", title=title, ylabel="overlap", ax=ax)
        for law in laws.values():
            ax.plot(law.step, law[what], "--", color=plots.THEORY, linewidth=1.4)
    return fig


def leaks(leak: xr.DataArray, fitted: Fit, ratio: xr.DataArray, law: tuple[np.ndarray, np.ndarray]) -> Figure:
    """The leak over the dimension; the pull on one half of the inputs over the distance of the centres."""
    fig, (left, right) = plots.panels(2)
    plots.exponents({"leak": (leak, fitted)}, "d", {"leak": -0.5}, title="The leak shrinks with d", ax=left)
    return plots.series({"neuron that sees a half": ratio}, "distance", lines={"2Φ(‖c‖) − 1": law}, log="",
                        ylim=(0, 1.05), title="Half of the inputs", ax=right)  # fmt: skip


def order(found: xr.Dataset) -> Figure:
    """Local directions, router and shared direction as they are learned, with local parts and without."""
    fig, axes = plots.panels(2, sharey=True)
    names = {"local": "local direction", "router": "router", "shared": "shared direction"}
    for ax, (case, title) in zip(axes, {"router trained": "With local parts",
                                        "no local parts": "Without local parts"}.items(), strict=True):  # fmt: skip
        plots.learning_curves(found.sel(case=case), names, log="", title=title, ylabel="overlap or cosine", ax=ax)
        ax.set_ylim(0, 1.03)
    return fig


def plane(net: IndexExperts, title: str) -> Figure:
    """The neurons of one mixture in the plane of local and shared direction; the same axes for every frame."""
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(4.6, 3.6)
    first, second = net.w[..., FIRST], net.w[..., SECOND]
    local = first.where(first.abs() > second.abs(), second)
    colours = plots.look.OTHERS
    for e, (marker, name) in enumerate((("o", "first expert"), ("x", "second expert"))):
        ax.plot(local[e], net.w[e, :, SHARED], marker, color=colours[e], markersize=7, label=name)
    ax.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), xlabel="overlap with a local direction",
           ylabel="overlap with the shared one", title=title)  # fmt: skip
    ax.figure.legend(loc="outside lower center", ncols=2, fontsize=9)
    return fig
