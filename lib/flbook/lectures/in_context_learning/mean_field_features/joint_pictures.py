"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.plots.schematic import Schematic, box, op, out, stack, strip

MODEL = Schematic(
    "Linear attention, trained with the features that it reads",
    [
        ("prompt", {
            "x": strip("$x_i$", "examples", "grey*4", lane=-1, alt="inputs x i of the examples"),
            "q": strip("$x_q$", "query", "grey*4", lane=0, alt="the query x q"),
            "y": strip("$y_i$", "labels", "label*1", lane=1, alt="labels y i of the examples"),
        }),
        ("features", {
            "h": stack("$h$", "neurons: rate 1", lane=-0.5, alt="the learned features h, a mean of neurons, rate 1"),
        }),
        ("match", {"g": box(r"$\Gamma$", r"rate $\tau$", holds="context", lane=-0.5, alt="attention Gamma, rate tau")}),
        ("answer", {"m": op(r"$\times$", "mean", lane=0, alt="of labels times matches, averaged")}),
        ("output", {"f": out(r"$\hat y$", lane=0, alt="the answer")}),
    ],
    ["x q >> h", "h > g > m", "y > m > f"],
    says="Neurons and attention are trained together, at two rates.",
)  # fmt: skip

JOINT, STATIC, MODIFIED = plots.NOISE, plots.SIGNAL, plots.TEST


def race(run: xr.Dataset, static: tuple[np.ndarray, np.ndarray], onset: np.ndarray) -> Figure:
    """Losses against time at one ratio, of the static flow, and where slow attention takes off (onset, one a seed)."""
    fig, (ax,) = plots.panels()
    times, losses = static
    ax.fill_between(times[1:], *np.quantile(losses[:, 1:], [0.1, 0.9], 0), color=STATIC, alpha=0.25, lw=0)
    ax.plot(times[1:], np.median(losses[:, 1:], 0), color=STATIC, label="static")
    ax.plot(run.time[1:], run.loss.transpose("step", "seed")[1:], "--", color=JOINT, lw=0.8, alpha=0.6)
    ax.plot([], [], "--", color=JOINT, label="joint, one line a seed")
    ax.axvspan(*np.quantile(onset, [0.1, 0.9]), color="#8A939C", alpha=0.25, lw=0, 
               label=r"predicted take-off $u^*/\sqrt{\tau}$")
    ax.set(xscale="log", xlim=(0.1, 6e3), ylim=(-0.01, 0.55), xlabel="time $t$", ylabel=r"loss $L(h, \Gamma)$")
    ax.set_title(rf"Attention at $\tau = 10^{{{round(np.log10(float(run.tau)))}}}$ times the neurons' rate")
    fig.legend(loc="outside lower center", ncols=2)
    return fig


def delays(run: xr.Dataset, learned: np.ndarray, onset: np.ndarray, static: float) -> Figure:
    """Times of take-off, of two and of all features learned over the ratio.

    learned: of all features, (tau, seed), infinite if never; onset: one a seed, times the root of the ratio; static:
    time of all features in the static flow.
    """
    fig, (ax,) = plots.panels()
    every = xr.DataArray(learned, dims=("tau", "seed"))
    slow = run.sel(tau=slice(None, 1e7))
    looks = (("all three features", every, "D", JOINT, JOINT), ("two of three", run.most, "o", JOINT, "white"),
             ("take-off", slow.onset.sel(tau=slice(None, 1e6)), "s", "#5F6B76", "#5F6B76"))
    for label, times, marker, colour, inside in looks:
        low, middle, high = (np.quantile(times.values, q, -1, method="lower") for q in (0.1, 0.5, 0.9))
        high = np.where(np.isfinite(high), high, middle)
        bars = [middle - low, high - middle]
        look = {"fmt": marker, "color": colour, "mfc": inside, "ms": 6, "capsize": 2, "label": label}
        ax.errorbar(run.tau[: len(middle)], middle, bars, **look)
    ax.plot(slow.tau, np.median(onset) / slow.tau**0.5, "--", color=plots.THEORY, label=r"$u^*/\sqrt{\tau}$")
    ax.axhline(static, color=STATIC, label="static, all three")
    ax.set(xscale="log", yscale="log", xlabel=r"ratio of rates $\tau$", ylabel="time $t$ to learn")
    ax.set_title("A hundred times slower, ten times later")
    fig.legend(loc="outside lower center", ncols=2)
    return fig


def new_tasks(found: xr.Dataset) -> Figure:
    """Risk on new tasks against the length of the prompt. found: `new_tasks` of the lecture."""
    fig, (ax,) = plots.panels()
    looks = dict(learned=(STATIC, "o"), frozen=("#5F6B76", "D"), kernel=("#8B4513", "X"), linear=("#8A6A00", "s"))
    for name, (colour, marker) in looks.items():
        ax.loglog(found.n, found[name].median("seed"), marker + "-", color=colour, label=name)
    ax.set(xlabel="examples $n$ in the prompt", ylabel="risk on a new task", xticks=found.n, xticklabels=found.n.values)
    ax.minorticks_off()
    ax.set_title("Ten examples are enough for learned features")
    fig.legend(loc="outside lower center", ncols=4)
    return fig


def floors(curves: dict[str, xr.DataArray]) -> Figure:
    """Errors over their floors against time on tasks outside the span; a line a task, bands of eight seeds of ten."""
    fig, (ax,) = plots.panels()
    looks = zip((STATIC, JOINT), ("-", "--"), strict=True)
    for (label, one), (colour, style) in zip(curves.items(), looks, strict=True):
        low, high = (one.quantile(q, "seed") for q in (0.1, 0.9))
        ax.fill_between(one.time, low, high, color=colour, alpha=0.2, lw=0)
        ax.plot(one.time, one.mean("seed"), style, color=colour, label=label)
    ax.axhline(1, color=plots.CHANCE, ls=":", label="floor")
    ax.set(yscale="log", xlabel="time $t$", ylabel="error over its floor")
    ax.set_yticks([1, 2, 4, 6], list("1246"))
    ax.minorticks_off()
    ax.set_title("New tasks come down to their floors")
    ax.legend(loc="upper right")
    return fig


PANELS = {
    "matched": ("(a) Five for five: all end alike", 0.0),
    "dead": ("(b) Two dead: only modified leaves 0.2", 0.2),
    "weak": ("(b') One weak: all end alike", 0.005),
    "seven": ("(c) Five for seven: all rest above 1/7", 1 / 7),
}


def figure_one(paper: xr.Dataset, case: str, models: Sequence[str]) -> Figure:
    """Loss on fresh points against prompts, of three dynamics in one case. paper: the stored run."""
    fig, (ax,) = plots.panels()
    title, floor = PANELS[case]
    looks = {"attention": (JOINT, "--"), "static": (STATIC, "-"), "modified": (MODIFIED, "-.")}
    for model in models:
        colour, style = looks[model]
        label = "joint" if model == "attention" else model
        curve = paper.fresh.sel(case=case, model=model).mean("seed")
        ax.plot(np.arange(len(curve)) * 100 + 1, curve, style, color=colour, label=label)
    if floor:
        ax.axhline(floor, color=plots.CHANCE, ls=":", label="if missing" if case == "weak" else "floor")
    ax.set(xscale="log", yscale="log", xlabel="prompts seen, plus one", ylabel="loss $L(h)$ on fresh points")
    ax.set_title(title)
    fig.legend(loc="outside lower center", ncols=4)
    return fig
