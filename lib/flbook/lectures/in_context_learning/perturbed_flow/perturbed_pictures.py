"""Pictures of this lecture: what a page should not have to spell out."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.plots.schematic import Schematic, box, op, out, stack, strip

MODEL = Schematic(
    "A push on a crowd of neurons",
    [
        ("crowd", {
            "t": stack(r"$\theta_j$", "neurons", alt="N neurons theta j"),
            "xi": strip(r"$\xi_j$", "a push", "noise*5", alt="a push xi j, independent or one field"),
        }),
        ("displaced", {"plus": op("$+$", alt="neurons plus push")}),
        ("features", {
            "h": box(r"$h_\mu(x)$", "mean over neurons", lane=0, alt="learned features, a mean over neurons"),
            "f": strip("$f(x)$", "true features", "signal*3", lane=1, alt="the true features f"),
        }),
        ("attention", {"g": box("$G$", "at its optimum", holds="context", lane=0, alt="regression of f on h")}),
        ("loss", {"l": out(r"$F(\mu)$", alt="the loss F of mu")}),
    ],
    ["t xi >> plus", "plus > h > g > l", "f > g"],
    says="After one push all neurons follow the gradient.",
)  # fmt: skip
LOOKS = {
    "independent": ("independent noise", plots.NOISE, "o", "--"),
    "smooth": ("smooth field", plots.look.OTHERS[1], "s", "-."),
    "guided": ("guided field", plots.SIGNAL, "D", "-"),
}


def escaped(escape: xr.DataArray, neurons: int) -> Figure:
    """Share of the runs that have escaped over time. escape: (noise, landscape, seed)."""
    fig, (ax,) = plots.panels()
    for noise, (name, colour, _, line) in LOOKS.items():
        times = np.sort(escape.sel(noise=noise).values.ravel())
        ax.step(times, np.arange(1, times.size + 1) / times.size, line, color=colour, where="post", label=name)
    ax.set(xlim=(0, 14), ylim=(0, 1.02), ylabel="share of runs escaped")
    ax.set_xlabel(r"time, in units of $1/|\lambda_{\min}|$")
    ax.set_title(f"{neurons} neurons")
    ax.legend(loc="lower right")
    return fig


def crowds(escape: xr.DataArray, m: int) -> Figure:
    """Mean escape time over the number of neurons. escape: (noise, copies, landscape, seed)."""
    fig, (ax,) = plots.panels()
    neurons = escape.copies.values * m
    for noise, (name, colour, marker, _) in LOOKS.items():
        one = escape.sel(noise=noise).stack(run=("landscape", "seed"))
        middle = one.mean("run")
        error = 2 * one.std("run") / one.sizes["run"] ** 0.5
        ax.errorbar(neurons, middle, error, fmt=marker, color=colour, label=name, ms=6, capsize=3)
        slope = 0.5 if noise == "independent" else 0.0
        ax.plot(neurons, float(middle[0]) + slope * np.log(escape.copies), "--", color=plots.THEORY, lw=1)
    ax.set(xscale="log", xlabel="neurons $N$", ylabel=r"escape time, in units of $1/|\lambda_{\min}|$")
    ax.set_title(r"Independent noise pays $\frac{1}{2}\log N$")
    plots.log_ticks(ax)
    fig.legend(loc="outside lower center", ncols=3)
    return fig


def head_starts(predicted: dict[int, np.ndarray], measured: dict[int, np.ndarray], least: np.ndarray) -> Figure:
    """How much earlier the guide escapes at each saddle, by number of neurons, over the closed form."""
    fig, (ax,) = plots.panels()
    looks = (plots.SIGNAL, "D"), (plots.look.OTHERS[0], "o")
    for (neurons, x), (colour, marker) in zip(predicted.items(), looks, strict=True):
        ax.plot(x, measured[neurons], marker, color=colour, ms=5, mec="white", label=f"{neurons} neurons")
    ax.plot(least, least, "--", color=plots.THEORY, lw=1, zorder=1)
    ax.axhline(0, color=plots.TRAIN, lw=1)
    ax.set(xlabel=r"$\frac{1}{2}\log(Np/r)$", ylabel=r"head start, in units of $1/|\lambda_{\min}|$")
    ax.set_title("Every saddle has a head start of its own")
    ax.legend(loc="upper left")
    return fig


def depths(escape: xr.DataArray, depth: np.ndarray, lead: np.ndarray) -> Figure:
    """Escape times over the depth of the saddle. escape: (weight, noise, landscape, seed); depth, lead: (weight,)."""
    fig, (ax,) = plots.panels()
    mean = escape.mean(("landscape", "seed"))
    for noise in ("independent", "guided"):
        name, colour, marker, _ = LOOKS[noise]
        ax.plot(depth, mean.sel(noise=noise), marker, color=colour, label=name)
    expected = mean.sel(noise="independent").values - lead
    ax.plot(depth, expected, "--", color=plots.THEORY, label=r"$-\frac{1}{2}\log(Np/r)$")
    ax.set(xscale="log", ylim=(0, None), xlabel=r"depth $\delta=|\lambda_{\min}|$ (geometric mean)")
    ax.set_ylabel(r"escape time, in units of $1/\delta$")
    ax.set_title("At shallow saddles the guide is late")
    plots.log_ticks(ax)
    fig.legend(loc="outside lower center", ncols=3)
    return fig
