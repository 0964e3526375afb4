"""Pictures of this lecture: what a page should not have to spell out."""

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.lectures.in_context_learning.concept_prompts.concept_errors import known_error
from flbook.plots.look import log_ticks
from flbook.plots.schematic import Schematic, box, op, out, strip

MODEL = Schematic(
    "Attention over pairs of words and labels, and a head that reads the attended label",
    [
        ("prompt", {
            "q": strip("$x_q$", "query", "grey*3 signal*1", lane=-1, alt="the query word x q"),
            "x": strip(r"$x_\ell$", "words", "grey*3 signal*1", lane=0, alt="the words of the examples"),
            "y": strip(r"$y_\ell$", "labels", "grey*3 label*1", lane=1, alt="their labels"),
        }),
        ("match", {"m": box("$M$", holds="context", lane=-0.5, alt="scores of words and query by M")}),
        ("compare", {"s": box("softmax", holds="context", lane=-0.5, alt="softmax over the examples")}),
        ("average", {"w": op(r"$\times$", lane=0.5, alt="labels times attention, summed")}),
        ("head", {"o": box("$W_O$", "ReLU", holds="grey", lane=0.5, alt="a layer of ReLU neurons")}),
        ("answer", {"f": out("$f$", lane=0.5, alt="the answer, the sign of f")}),
    ],
    ["q x >> m", "m > s > w", "y > w > o > f"],
    says="Grey cells are what the words or labels of a concept share, coloured cells what they differ by.",
)  # fmt: skip
RIVALS = {
    "nearest word": ("nearest word", plots.TRAIN),
    "linear": ("linear", plots.TEST),
    "similarity": ("similar words", plots.NOISE),
    "layer": ("trained layer", plots.SIGNAL),
}


def matrix(merged: xr.DataArray, concepts: int) -> Figure:
    """The part of M that acts on what concepts share, a, and on what they differ by, b. merged: (row, column)."""
    fig, ax = plt.subplots(figsize=(4.4, 3.7))
    image = ax.imshow(merged, cmap="PuOr", vmin=-2.5, vmax=2.5)
    names = [f"${letter}_{k}$" for letter in "ab" for k in range(1, concepts + 1)]
    ax.set_xticks(range(2 * concepts), names)
    ax.set_yticks(range(2 * concepts), names)
    ax.grid(False)
    fig.colorbar(image, ax=ax, label="entry of M")
    ax.set_title(f"Step {int(merged.step)}")
    return fig


def scores(race: xr.Dataset, exact: xr.Dataset) -> Figure:
    """Scores of what differs and of what is shared while training. race, exact: (step, decay, seed, concept)."""
    named = {"noise": (0.0, "no decay"), "signal": (0.002, "decay")}
    fig, axes = plots.panels(2, sharex=True)
    titles = ("What differs is learned", "What is shared only decays")
    axes[1].set_ylim(0, 0.32)
    for ax, part, title in zip(axes, ("contrast", "shared"), titles, strict=True):
        curves = xr.Dataset({
            name: race[part].sel(decay=decay, drop=True).mean("concept", keep_attrs=True)
            for name, (decay, _) in named.items()
        })
        plots.learning_curves(curves, {name: text for name, (_, text) in named.items()}, log="", title=title, ax=ax)
        for decay, _ in named.values():
            line = exact[part].sel(decay=decay).mean(("seed", "concept"))
            ax.plot(line.step, line, "--", color=plots.THEORY)
    axes[0].set_xlabel("")
    return fig


def errors(layer: xr.DataArray, rivals: xr.DataArray, contrast: float) -> Figure:
    """Test errors over the noise; dashed: who knows the concepts. (noise, seed) and (noise, model, seed)."""
    together = xr.concat([rivals, layer.expand_dims(model=["layer"])], "model")
    law = {"layer": lambda noise: known_error(noise, contrast)}
    fig = plots.dots(together, "noise", "model", RIVALS, law, log="y", lowest=1e-9,
                     title="The layer and rules without the concepts", legend="upper left")  # fmt: skip
    fig.axes[0].set_ylim(1e-4, 0.6)
    fig.axes[0].text(0.385, 0.0008, "knows the\nconcepts", ha="left")
    log_ticks(fig.axes[0])
    return fig


def starts(shares: xr.Dataset) -> Figure:
    """Share of concepts with the wrong sign over the identity's share in the start. shares: (start, seed)."""
    fig, axes = plots.panels()
    ax = axes[0]
    mean, error = shares.wrong.mean("seed"), shares.wrong.std("seed") / np.sqrt(shares.sizes["seed"])
    ax.errorbar(mean.start, mean, error, fmt="o", color=plots.SIGNAL, capsize=3)
    ax.plot(mean.start, shares.predicted.mean("seed"), "--", color=plots.THEORY)
    ax.axhline(0.5, color=plots.CHANCE, ls=":")
    ax.text(0.25, 0.36, "criterion at the start", ha="left")
    ax.set(ylim=(-0.02, 0.62), xlabel="share σ of the identity at the start", ylabel="concepts with the wrong sign",
           title="The start decides which labels are read")  # fmt: skip
    return fig
