"""Pictures of this lecture: what a page should not have to spell out."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.plots.schematic import Schematic, box, curve, op, out, stack, strip

MODEL = Schematic(
    "A visit, a step on one sample of label y",
    [
        ("two patches", {"u": strip("$yu$", "strong", "signal*5"), "v": strip("$yv$", "weak", "signal*2")}),
        ("responses", {"wu": stack("$a_u$", "filters"), "wv": stack("$a_v$", "filters")}),
        ("squared ReLU", {"su": curve(r"$\sigma$", holds="squared_relu", alt="squared ReLU"),
                          "sv": curve(r"$\sigma$", holds="squared_relu", alt="squared ReLU")}),
        ("means", {"fu": op(r"$\Sigma$", "$f_u$"), "fv": op(r"$\Sigma$", "$f_v$")}),
        ("residual", {"zeta": out(r"$\zeta$", alt="zeta, the label's one minus both means")}),
        ("factors", {"pu": box(r"$1+c_u\zeta$", alt="1 + c_u zeta for the strong responses"),
                     "pv": box(r"$1+\varrho c_u\zeta$", alt="1 + rho c_u zeta for the weak ones, with the small rho")}),
    ],
    ["u v > wu wv > su sv > fu fv", "fu fv > zeta", "zeta >> pu pv"],
    says="One residual multiplies the responses to both features.",
)  # fmt: skip


def oscillation(strong: xr.DataArray, weak: xr.DataArray) -> Figure:
    """Outputs on a strong sample visit by visit, and on the weak feature over training, a line for each step size.

    strong: over (visit, c). weak: over (step, c, seed).
    """
    fig, (left, right) = plots.panels(2)
    names = {f"c {c:g}": f"$c_u$ = {c:g}" for c in weak.c.values}
    rows = [("Strong sample", strong, "visit", "", left), ("Weak feature alone", weak, "step", "y", right)]
    for title, data, x, log, ax in rows:
        lines = xr.Dataset({name: data.sel(c=c, drop=True) for name, c in zip(names, data.c.values, strict=True)})
        plots.learning_curves(lines, names, x=x, log=log, title=title, ylabel=data.attrs["long_name"], ax=ax)
    left.axhline(1.0, color=plots.CHANCE, linestyle=":", linewidth=1.3)
    right.set_ylim(3e-8, 3)
    return fig


def cascade(c: np.ndarray, late: np.ndarray, residual: np.ndarray) -> Figure:
    """Where the one-line map ends, and its mean residual, over the step size.

    late: outputs at the last visits, (visits, c). residual: means, (c,).
    """
    fig, (left, right) = plots.panels(2, sharex=True)
    left.plot(np.broadcast_to(c, late.shape).ravel(), late.ravel(), ".", color=plots.SIGNAL, ms=1.5, mew=0)
    left.set(title="Late outputs", ylabel="output on strong data")
    cycle = c[c >= 1]
    two = np.sqrt((cycle - 1) * (cycle + 3))
    for sign in (-1, 1):  # 1 - residual, where the factor is (1 + c ± two)/2
        left.plot(cycle, 1 - ((1 + cycle + sign * two) / 2 - 1) / cycle, "--", color=plots.THEORY, lw=1.6)
    right.plot(c, residual, "o", color=plots.SIGNAL, ms=3, mec="none")
    right.plot(c, np.maximum(c - 1, 0) / (2 * c), "--", color=plots.THEORY, lw=1.6)
    right.set(title="Mean residual", ylabel="mean of 1 - output", xlabel="step size $c_u$")
    left.label_outer()
    return fig


def growth_and_rest(growth: xr.DataArray, weak: xr.DataArray, mapped: tuple, rest: tuple, ratio: float) -> Figure:
    """Growth of the weak output in a visit, and where it comes to rest, over the step size.

    mapped, rest: (step sizes, heights) of what the map and the edge of stability predict.
    """
    fig, (left, right) = plots.panels(2)
    own = {"network": plots.look.MODELS["network"][0]}
    cycle = np.array([1.0, 1.6])
    laws = {"map": mapped, "2-cycle": (cycle, np.log1p(ratio * (1 - ratio) * (cycle - 1)))}
    plots.series({"network": growth}, "c", paint=own, lines=laws, log="", title="Growth in a visit",
                 legend=False, ax=left)
    plots.series({"network": weak}, "c", paint=own, lines={"edge of stability": rest}, log="", title="Where it rests",
                 legend=False, ax=right)
    left.legend(loc="upper left", fontsize=9, frameon=False)
    right.legend(loc="upper left", fontsize=9, frameon=False)
    return fig


def orbit(c: float, visits: int) -> Figure:
    """Outputs of the one-line map visit by visit, from 0.01 on; the same axes for every frame."""
    f = [0.01]
    for _ in range(visits - 1):
        f.append(f[-1] * (1 + c * (1 - f[-1])) ** 2)
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(5.2, 2.6)
    ax.axhline(1.0, color=plots.CHANCE, linestyle=":", linewidth=1.3)
    ax.plot(f, "o-", color=plots.SIGNAL, ms=4, mec="none", lw=1.2)
    ax.set(xlabel="visit", ylabel="output", ylim=(-0.05, 1.7), title=f"$c_u$ = {c:g}")
    return fig
