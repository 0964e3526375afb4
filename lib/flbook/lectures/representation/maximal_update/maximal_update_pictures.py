"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.fits import Fit
from flbook.lectures.representation.maximal_update import NAMES
from flbook.plots.look import looks
from flbook.plots.schematic import Schematic, curve, matrix, out, strip

MODEL = Schematic(
    "A network of two hidden layers whose start and rates depend on its width",
    [
        ("input", {"x": strip("$x$", "$d$ pixels", "signal*4", alt="the input, d pixels")}),
        ("first layer", {"U": matrix("$U$", "rate $n^{r_1}$", "ssss ssss ssss ssss", alt="U, n times d")}),
        ("first neurons", {"s": curve(r"$\tanh$", "$z_1$", holds="tanh", alt="tanh of z 1")}),
        ("second layer", {"W": matrix("$W$", "rate $n^{r_2}$", "nnnn nnnn nnnn nnnn", alt="W, n times n")}),
        ("second neurons", {"t": curve(r"$\tanh$", "$z_2$", holds="tanh", alt="tanh of z 2")}),
        ("output layer", {"V": strip("$V$", "rate $n^{r_3}$", "label*4",
                                     alt="V, n numbers of the size n to the minus p")}),
        ("output", {"f": out("$f(x)$", alt="their sum")}),
    ],
    ["x > U > s > W > t > V > f"],
    says="All three layers are trained; their starts and rates are powers of the width n.",
)  # fmt: skip

WORDS = {"z1": "first hidden layer", "z2": "second hidden layer", "f": "output"}
ROUND = {"z1": ("s", plots.SIGNAL), "z2": ("o", plots.NOISE), "f": ("^", plots.TEST)}


@plots.look.styled
def widths(moved: xr.DataArray, exponents: Mapping[tuple[str, str], Fit]) -> Figure:
    """Change of the hidden layers against the width. moved: (layer, parametrisation, width, seed)."""
    fig, axes = plots.panels(2)
    for k, (ax, layer) in enumerate(zip(axes, ("z1", "z2"), strict=True), 1):
        laws = {name: (moved.sel(layer=layer, parametrisation=name), exponents[name, layer]) for name in NAMES}
        theory = {name: which.moved()[k - 1] for name, which in NAMES.items()}
        plots.exponents(laws, "width", theory, ylabel=f"change of $z_{k}$ in one step", ax=ax,
                        title=f"Layer {k}")
        ends = moved.width.values[[0, -1]]  # labels at the curves leave room for two ticks
        ax.set_xticks(ends, [str(end) for end in ends])
        ax.set_xticks([], minor=True)
    return fig


@plots.look.styled
def against_the_table(panels: Mapping[str, tuple[str, Mapping, Mapping]]) -> Figure:
    """Exponents of all layers with their intervals, one step and ten, beside the table's.

    panels: title -> (rule, fits of one step, fits of ten), the fits by (parametrisation, layer).
    """
    fig, axes = plots.panels(len(panels), sharey=True)
    for ax, (title, (rule, one, ten)) in zip(axes, panels.items(), strict=True):
        for row, (name, which) in enumerate(NAMES.items()):
            for k, (layer, (marker, colour)) in enumerate(ROUND.items()):
                height = -row + 0.26 * (1 - k)
                ax.plot(which.moved(rule)[k], height, "|", color=plots.THEORY, ms=15, mew=1.6)
                for found, face in ((one, colour), (ten, "none")):
                    if (name, layer) in found:
                        fit = found[name, layer]
                        ax.plot(fit.interval, [height] * 2, color=colour, lw=1.5)
                        ax.plot(fit.value, height, marker, color=colour, mfc=face, ms=7, zorder=3)
        ax.axvline(0, color=plots.CHANCE, lw=0.8, ls=":")
        ax.set(title=title, xlabel="exponent of the width", yticks=[-k for k in range(len(NAMES))])
        ax.set_yticklabels(list(NAMES))
        ax.grid(False, axis="y")
    for layer, (marker, colour) in ROUND.items():
        axes[0].plot([], [], marker, color=colour, label=WORDS[layer])
    axes[0].plot([], [], "o", color=plots.THEORY, mfc="none", label="after ten steps")
    axes[0].plot([], [], "|", color=plots.THEORY, ms=12, mew=1.6, label="theory")
    plots.look.shared_legend(axes, ncols=3)
    return fig


@plots.look.styled
def border(early: Mapping[float, Fit], late: Mapping[float, Fit], steps: tuple[int, int]) -> Figure:
    """Exponent of the second hidden layer over the size of the output weights, after few steps and after many."""
    fig, (ax,) = plots.panels()
    p = np.array(sorted(early))
    ax.plot(p, p - 1, "--", color=plots.THEORY, lw=1.4, label="theory, $p - 1$")
    beyond = p[p >= 1]
    ax.plot(beyond, 2 * (beyond - 1), ":", color=plots.THEORY, lw=1.8, label="later, $2(p - 1)$")
    ax.axhline(0, color=plots.CHANCE, lw=0.8)
    ax.axvline(1, color=plots.CHANCE, lw=0.8)
    for fits, t, marker, colour in ((early, steps[0], "o", plots.NOISE), (late, steps[1], "s", plots.SIGNAL)):
        at = sorted(fits)
        value = np.array([fits[one].value for one in at])
        ends = np.array([fits[one].interval for one in at]).T
        word = "one step" if t == 1 else f"{t} steps"
        ax.errorbar(at, value, abs(ends - value), fmt=marker, color=colour, ms=7, mec="white", label=f"after {word}")
    ax.set(xlabel="output weights of the size $n^{-p}$: $p$", ylabel="exponent of $z_2$ in the width",
           title="Second layer: lazy, level, and faster with width")  # fmt: skip
    ax.legend(loc="upper left")
    return fig


@plots.look.styled
def tuned(best: xr.DataArray, levels: Mapping[str, float], steps: Sequence[int]) -> Figure:
    """Test error at the best rate against the width, after some numbers of steps.

    best: (parametrisation, width, step, seed).
    """
    fig, axes = plots.panels(len(steps), sharey=True)
    names = [str(name) for name in best.parametrisation.values]
    paint = {name: colour for name, (colour, _) in looks(list(NAMES)).items() if name in names}
    for ax, t in zip(axes, steps, strict=True):
        curves = {name: best.sel(step=t, parametrisation=name, drop=True) for name in names}
        plots.series(curves, "width", paint=paint, levels=levels, joined=True, legend=False, ax=ax,
                     title="After one step" if t == 1 else f"After {t} steps")  # fmt: skip
        ax.set_ylabel("test error at the best rate")
    plots.look.shared_legend(axes, ncols=3)
    return fig


@plots.look.styled
def still(p: float, r: tuple[float, float, float]) -> Figure:
    """What stands in place of the live figure: exponents of one setting of its four sliders."""
    fig, (ax,) = plots.panels()
    theory = (r[0] - p, max(r[1] + 1 - p, r[0] - p), max(r[2] + 1, r[1] + 2 - 2 * p, r[0] + 1 - 2 * p))
    n = np.array([32.0, 256.0])
    for (layer, (marker, colour)), power in zip(ROUND.items(), theory, strict=True):
        ax.loglog(n, (n / n[0]) ** power, marker + "-", color=colour, label=f"{WORDS[layer]}, exponent {power:g}")
    ax.set(xlabel="width $n$", ylabel="change in one step, relative to width 32",
           title=f"p = {p:g}, rates $n$ to the powers {r[0]:g}, {r[1]:g}, {r[2]:g}")  # fmt: skip
    plots.look.log_ticks(ax)
    ax.legend(loc="lower left")
    return fig
