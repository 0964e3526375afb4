"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
import torch
import xarray as xr
from matplotlib.figure import Figure

from flbook import hermite, plots
from flbook.lectures.in_context_learning.test_time_training import link_shift as theory
from flbook.plots.schematic import Schematic, box, curve, op, out, strip

MODEL = Schematic(
    "Attention reads a direction, a curve answers along it",
    [
        ("prompt", {
            "q": strip("$x_q$", "query", "grey*4", lane=-1, alt="the query x q"),
            "x": strip("$x_i$", "examples", "grey*4", lane=0, alt="inputs x i of the examples"),
            "y": strip("$y_i$", "labels", "label*3", lane=1, alt="their labels y i"),
        }),
        ("gate", {"t": curve("$T$", holds="square", lane=1, alt="the gate T of the labels")}),
        ("moment", {"m": box("$M$", "inside $S$", holds="context", lane=0.5, alt="the gated moment M")}),
        ("direction", {"u": box("$u$", "read", holds="signal", lane=0.5, alt="the direction u")}),
        ("index", {"z": op(r"$\cdot$", lane=-0.4, alt="inner product of direction and query")}),
        ("curve", {"f": box(r"$\langle a, \psi\rangle$", "neurons", holds="noise", lane=-0.4,
                            alt="the neurons psi with output weights a")}),
        ("answer", {"o": out("$f(x_q)$", lane=-0.4, alt="the answer")}),
    ],
    ["y > t > m", "x > m > u > z", "q > z > f > o"],
    says="Fixed weights keep a; test-time training fits it to the prompt.",
)  # fmt: skip
MODELS = {
    "fixed weights": ("fixed weights", plots.NOISE),
    "test-time training": ("test-time training", plots.SIGNAL),
    "no pretraining": ("the same without pretraining", plots.TRAIN),
}


def risks(found: xr.DataArray, angle: float, alone: xr.Dataset | None = None) -> Figure:
    """Risk over prompt length at one angle; dashed: the floor. found: (seed, shift, n, model); alone: (n, seed)."""
    floor = float(theory.fixed_risk(angle))
    fig = plots.dots(found.sel(shift=angle), "n", "model", MODELS, legend=None,
                     title=f"Link turned by {angle:.0f}°: " + ("a floor" if angle else "no floor"))  # fmt: skip
    ax = fig.axes[0]
    if alone is not None:
        for name, (colour, marker) in plots.looks(list(alone)).items():
            look = dict(color=colour, ls="none", mfc="none", ms=9, zorder=6, label=name)
            ax.plot(alone.n, alone[name].mean("seed"), marker, **look)
    if floor:
        ax.axhline(floor, color=plots.THEORY, ls="--", lw=1.2, label="2 - 2 cos θ")
    ax.set_ylim(5e-3, 2)
    ax.legend(loc="lower left", fontsize=9)
    return fig


def in_words(angle: float) -> str:
    """What `risks` shows at one angle."""
    level = f"level off at a dashed line at {theory.fixed_risk(angle):.2f} and test-time training falls through it"
    ahead = "start ahead of test-time training, which passes them at 1024 examples"
    return (f"Risk against examples with the link turned by {angle:.0f} degrees. Fixed weights "
            f"{level if angle else ahead}. Without pretraining the risk stays far higher.")  # fmt: skip


def curves(grid: torch.Tensor, old: np.ndarray, new: np.ndarray, angle: float) -> Figure:
    """What fixed weights and test-time training answer along the index, beside the link of the prompt."""
    fig, ax = plt.subplots(figsize=(5.2, 3.2))
    ax.plot(grid, hermite.Series(theory.shifted_link(angle))(grid.numpy()), "--", color=plots.THEORY,
            label="link of the prompt")  # fmt: skip
    ax.plot(grid, old, color=plots.NOISE, label="fixed weights")
    ax.plot(grid, new, color=plots.SIGNAL, label="test-time training")
    ax.set(xlim=(-2.8, 2.8), ylim=(-4.5, 6), xlabel="index ⟨x, β⟩", ylabel="prediction")
    ax.legend(loc="lower right", fontsize=9)
    ax.set_title(f"θ = {angle:.0f}°: floor {theory.fixed_risk(angle):.2f}")
    return fig


def stages(refined: xr.DataArray, fitted: xr.DataArray, law: Callable) -> Figure:
    """What stages II and III leave over their examples: a line of slope -1, and the law of the output layer."""
    fig, axes = plots.panels(2)
    middle = float(refined.mean("seed").sel(refined=512))
    laws = (lambda n: middle * 512 / n, law)
    titles = ("Direction: what is left, slope -1", "Output layer: risk, and its law")
    for ax, found, line, title in zip(axes, (refined, fitted), laws, titles, strict=True):
        (x,) = set(found.dims) - {"seed"}
        low, high = found.quantile([0.1, 0.9], "seed")
        ax.vlines(found[x], low, high, color=plots.SIGNAL, alpha=0.5)
        ax.plot(found[x], found.mean("seed"), "o", color=plots.SIGNAL)
        ax.plot(found[x], [line(int(n)) for n in found[x]], "--", color=plots.THEORY)
        ax.set(xscale="log", yscale="log", title=title, xlabel=found[x].attrs["long_name"])
        plots.log_ticks(ax)
    return fig
