"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.lectures.in_context_learning.attention_landscape import short_prompts
from flbook.lectures.in_context_learning.attention_landscape import two_features as angles
from flbook.plots.schematic import Schematic, box, op, out, stack, strip

MODEL = Schematic(
    "Linear attention on learned features",
    [
        ("prompt", {
            "x": strip("$x_i$", "examples", "grey*4", lane=-1, alt="inputs x i of the examples"),
            "q": strip("$x_q$", "query", "grey*4", lane=0, alt="the query x q"),
            "y": strip("$y_i$", "labels", "label*1", lane=1, alt="labels y i of the examples"),
        }),
        ("features", {
            "h": stack("$h$", "mean of neurons", lane=-0.5, alt="the learned features h, a mean of neurons"),
        }),
        ("match", {"g": box(r"$\Gamma$", "at its optimum", holds="context", lane=-0.5, alt="attention Gamma")}),
        ("answer", {"m": op(r"$\times$", "mean", lane=0, alt="of labels times matches, averaged")}),
        ("output", {"f": out(r"$\hat y$", lane=0, alt="the answer")}),
    ],
    ["x q >> h", "h > g > m", "y > m > f"],
    says="Only the features are trained; attention is at its optimum always.",
)  # fmt: skip
_STARTS = {"dead": ("dead", plots.NOISE, "--"), "saddle": ("useless", plots.SIGNAL, "-")}


def two_features(dots: Sequence[Sequence[float]]) -> Figure:
    """What two learned features have of the true ones, gradient flow from there on long prompts, and its loss."""
    start = angles.features(torch.tensor(dots, dtype=torch.float64))
    losses, path = angles.flow(start, float("inf"), dt=0.1, steps=300)
    known = path[..., :2] / path.norm(dim=-1, keepdim=True)
    fig, (disk, ax) = plots.panels(2)
    around = np.linspace(0, 2 * np.pi, 200)
    disk.plot(np.cos(around), np.sin(around), color=plots.CHANCE, lw=1)
    for j, (colour, style) in enumerate([(plots.SIGNAL, "-"), (plots.NOISE, "--")]):
        disk.plot(*known[:, j].T, style, color=colour)
        disk.plot(*dots[j], "o", color=colour, ms=14)
        disk.annotate(str(j + 1), dots[j], color="white", ha="center", va="center", weight="bold", fontsize=9)
    disk.set(aspect="equal", xlabel="share of $f_1$", ylabel="share of $f_2$", title="What is known")
    for rung in (0, 0.25, 0.5):
        ax.axhline(rung, color=plots.CHANCE, ls=":", lw=1)
    ax.plot(0.1 * np.arange(len(losses)), losses, color=plots.TEST)
    ax.set(xlabel="time $t$", ylabel="loss $L$", ylim=(-0.01, 0.53), title="It waits on a rung")
    return fig


def descent(loss: xr.DataArray, rungs: np.ndarray) -> Figure:
    """Gradient flows from either start at one number of missing features, and the rungs. loss: (start, seed, time)."""
    fig, (ax,) = plots.panels()
    for rung in rungs:
        ax.axhline(rung, color=plots.CHANCE, ls=":", lw=1)
    for start, (name, colour, style) in _STARTS.items():
        flows = loss.sel(start=start).transpose("time", "seed")
        ax.plot(flows.time, flows, style, color=colour, lw=1)
        ax.plot([], [], style, color=colour, label=f"{int(loss.missing)} {name}")
    ax.set(xlabel="time $t$", ylabel="loss $L$", ylim=(-0.01, 0.51))
    ax.set_title(f"{int(loss.missing)} of {len(rungs) - 1} features missing at the start")
    ax.legend(loc="upper right")
    return fig


def arches(flows: Sequence[np.ndarray], built: Sequence[np.ndarray], bound: Sequence[np.ndarray]) -> Figure:
    """Steepness over the loss: along flows, of networks built to attain the bound, and the bound."""
    fig, (ax,) = plots.panels()
    ax.plot(*flows, "o", color=plots.SIGNAL, ms=2.5, alpha=0.5, label="along 50 flows")
    ax.plot(*built, "D", color=plots.NOISE, ms=4, mec="white", label="built to attain it")
    ax.plot(*bound, "--", color=plots.THEORY, label="bound")
    ax.set(xlabel="loss $L$", ylabel=r"steepness $\|SG\|_*\,\|\Sigma_{fh}\|$", ylim=(0, 0.045))
    ax.set_title("The slope vanishes on the rungs only")
    fig.legend(loc="outside lower center", ncols=3)
    return fig


def escapes(found: xr.Dataset) -> Figure:
    """Fitted escape rates over least eigenvalues, a colour for each rung. found: `escape`."""
    fig, (ax,) = plots.panels()
    looks = zip((plots.SIGNAL, plots.TEST, plots.NOISE, plots.TRAIN), "os^D", strict=True)
    for missing, (colour, marker) in zip(found.missing.values, looks, strict=True):
        one = found.sel(missing=missing)
        ax.loglog(one.eigenvalue, one.fitted, marker, color=colour, ms=6, label=f"rung {missing / 10:g}")
    ends = np.array([float(found.eigenvalue.min()), float(found.eigenvalue.max())])
    ax.plot(ends, ends, "--", color=plots.THEORY)
    ax.set(xlabel=r"$|\lambda_{\min}|$ of the Hessian", ylabel="fitted escape rate")
    ax.set_title("Escape at the rate of the Hessian")
    ax.legend(loc="lower right")
    return fig


def bumps(found: xr.Dataset) -> Figure:
    """L^n around one minimum on a rung, over the turn of its useless feature, scaled. found: `short_prompts.basins`."""
    fig, (ax,) = plots.panels()
    looks = zip((plots.SIGNAL, plots.TEST, plots.NOISE, plots.TRAIN), "os^D", strict=True)
    for n, (colour, marker) in zip(found.n.values[:4], looks, strict=True):
        ax.plot(found.scaled, found.profile.sel(n=n), marker, color=colour, ms=3.5, label=f"n = {n}")
    t = found.scaled.values**2
    leading = short_prompts.bump(torch.tensor(t), torch.tensor(found.q.values[-1]))
    ax.plot(found.scaled, leading, "--", color=plots.THEORY, label="leading order")
    ax.plot(found.scaled, -t / 2, ":", color=plots.CHANCE, label=r"$n=\infty$")
    ax.set(xlabel=r"$\sqrt{t}=\sin s\,\sqrt{n/k\kappa}$", ylabel=r"$n(L^n(s)-L^n(0))/\kappa$")
    ax.set_title("A minimum where the saddle was")
    fig.legend(loc="outside lower center", ncols=3)
    return fig
