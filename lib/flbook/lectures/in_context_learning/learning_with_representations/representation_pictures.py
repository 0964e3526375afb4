"""Pictures of this lecture: what a page should not have to spell out."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from torch import Tensor

from flbook import plots
from flbook.plots.look import MODELS, log_ticks
from flbook.plots.schematic import Schematic, box, out, strip

MODEL = Schematic(
    "Regression on a fixed map of the inputs",
    [
        ("prompt", {
            "q": strip("$x_q$", "query", "grey*4", lane=-1, alt="the query x q"),
            "x": strip("$x_i$", "input", "grey*4", lane=0, alt="the input x i of example i"),
            "y": strip("$y_i$", "label", "label*1", lane=1, alt="its label y i"),
        }),
        ("map, in the weights", {
            "fq": strip(r"$\phi(x_q)$", "", "signal*4", lane=-1, alt="features of the query"),
            "f": strip(r"$\phi(x_i)$", "", "signal*4", lane=0, alt="features of the input"),
        }),
        ("task, from the prompt", {"b": box(r"$\hat\beta$", holds="context", lane=0.5, alt="the estimated task")}),
        ("answer", {"a": out(r"$\hat y$", lane=-0.5, alt="inner product of the task and the query's features")}),
    ],
    ["q > fq", "x > f", "f y > b", "fq > a", "b > a"],
    says="The map is the same in all prompts and has to be learned in pretraining; the task is new in each.",
)  # fmt: skip
LOOKS = {
    "features": (plots.SIGNAL, "-", "o"),
    "inputs": (plots.NOISE, "--", "s"),
    "features, at the label": ("#00707A", "-.", "^"),
    "features, untrained": (plots.CHANCE, ":", "D"),
    "random": (plots.CHANCE, ":", "D"),
}
RACE = {
    "transformer": (MODELS["transformer"][0], "-"),
    "ridge, features": (plots.THEORY, "-"),
    "one step, features": (MODELS["linear attention"][0], "--"),
    "class kernel": (MODELS["kernel"][0], "-."),
    "ridge, inputs": (plots.CHANCE, ":"),
}


def read_and_used(found: xr.Dataset) -> Figure:
    """What probes read, and what an erasure costs, over the layers: lines are means, marks single networks."""
    fig, axes = plots.panels(2, sharex=True)
    for ax, values in zip(axes, (found.read, found.error), strict=True):
        (kind,) = set(values.dims) - {"layer", "network", "seed"}
        for name in (name for name in values[kind].values if name in LOOKS):
            colour, style, marker = LOOKS[name]
            one = values.sel({kind: name}).mean("seed").transpose("layer", "network")
            if kind == "erased" and name == "features":
                one = one.sel(layer=slice(1, None))  # in the embedding no direction covaries with the features
            label = f"{name} erased" if kind == "erased" else name
            ax.plot(one.layer, one.mean("network"), style, color=colour, lw=2, label=label)
            ax.plot(one.layer, one, marker, color=colour, ms=5, mec="white")
        ax.legend(loc="upper right" if kind == "erased" else "lower right", fontsize=9)
    axes[0].set(title="What a linear probe reads", ylabel="$R^2$", ylim=(-0.08, 1.08))
    axes[1].axhline(1, color=plots.CHANCE, lw=1)
    axes[1].set(
        title="What the answer uses", ylabel="error over that of answer 0", ylim=(0, 1.6), xlabel=r"layer $\ell$"
    )
    axes[1].set_xticks(found.layer.values)
    return fig


def swap(answers: Tensor, rules: Tensor, layer: int) -> Figure:
    """Answers of one network, shape (prompts,), against two of the rules, shape (prompts, rule)."""
    fig, (ax,) = plots.panels()
    ax.plot([-2.5, 2.5], [-2.5, 2.5], color=plots.THEORY, lw=1)
    for k, name, colour, marker in (
        (1, "at its own query", plots.NOISE, "s"),
        (0, "at the other query", plots.SIGNAL, "o"),
    ):
        ax.plot(rules[:, k], answers, marker, color=colour, ms=4, mfc="none" if k else colour, alpha=0.8, label=name)
    ax.set(xlabel="ridge regression's answer", ylabel="network's answer", xlim=(-2.5, 2.5), ylim=(-2.5, 2.5))
    ax.set_title(f"The query's features swapped after layer {layer}")
    ax.legend(loc="upper left", fontsize=9)
    return fig


def race(error: xr.DataArray) -> Figure:
    """Squared errors over the examples read. error: (rule, position, seed)."""
    fig, (ax,) = plots.panels()
    for name, (colour, style) in RACE.items():
        mean = error.sel(rule=name).mean("seed")
        ax.semilogy(error.position, mean, style, color=colour, lw=2.5 if name == "transformer" else 1.8, label=name)
    ax.set(
        xlabel="examples read",
        ylabel="squared error",
        title="Close to ridge regression on the features",
        ylim=(0.02, 3),
    )
    log_ticks(ax)
    fig.legend(loc="outside lower center", ncols=2, fontsize=9)
    return fig


def rungs(risks: dict[int, np.ndarray], levels: np.ndarray) -> Figure:
    """Risks of trained layers over their number of features, one dot a start, and the level for p features found."""
    fig, (ax,) = plots.panels()
    for p, level in enumerate(levels):
        ax.axhline(level, color=plots.CHANCE, ls=":", lw=1)
        ax.text(1.52, level, f"{p} found", fontsize=9, va="bottom", ha="right")
    for place, values in enumerate(risks.values()):
        spread = place + np.linspace(-0.2, 0.2, len(values))
        ax.plot(spread, values, "o", color=plots.SIGNAL, ms=6, mec="white")
    ax.set_xticks(range(len(risks)), [f"{k} features" for k in risks])
    ax.set(xlim=(-0.5, 1.55), ylim=(0.2, 1.08), ylabel="risk", title="With spare features all ten find all")
    return fig
