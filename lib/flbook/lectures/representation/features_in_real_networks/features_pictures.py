"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.lectures.representation.features_in_real_networks.features import untrained_correlation
from flbook.plots.schematic import Schematic, curve, op, out, stack, strip

MODEL = Schematic(
    "A two-layer network, and the two matrices of its first layer",
    [
        ("input", {"x": strip("$x$", "$d$ inputs", "signal*2 grey*4", alt="the input, two of its coordinates count")}),
        ("neurons", {"w": stack("$W$", "$W^\\top W$", alt="m neurons, the rows of W; what they look at is W'W")}),
        ("activation", {"s": curve("ReLU", holds="relu", alt="ReLU")}),
        ("read-out", {"a": op("$A$", alt="the read-out A")}),
        ("outputs", {"f": out("$f(x)$", "$G = E\\,\\nabla f\\,\\nabla f^\\top$",
                              alt="C outputs; G says which inputs they are sensitive to")}),
    ],
    ["x > w > s > a > f"],
    says="Both layers are trained.",
)  # fmt: skip
STYLE = {"untrained": (plots.TRAIN, "o", "untrained"), "trained": (plots.SIGNAL, "s", "trained")}
LOW = 3.3  # inches: height of a pair of panels


def entries(found: xr.Dataset) -> Figure:
    """Entries of a layer's WᵀW against those of G, before and after training. found: matrices over `stage`."""
    fig, axes = plots.panels(2)
    for ax, stage in zip(axes, ("untrained", "trained"), strict=True):
        pair = [found[name].sel(stage=stage).values.ravel() for name in ("matrix", "product")]
        w, g = (values / np.sqrt((values**2).mean()) for values in pair)
        ax.plot(w, g, ".", color=STYLE[stage][0], markersize=3, alpha=0.7)
        title = "Before training" if stage == "untrained" else "After training"
        ax.set(xlabel="entry of $W^\\top W$ [rms]", ylabel="entry of $G$ [rms]", title=title)
    return fig


def untrained(found: xr.DataArray) -> Figure:
    """Correlation of untrained two-layer networks against the number of outputs, at each width, with the formula."""
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(fig.get_size_inches()[0], LOW)
    fine = np.geomspace(found.outputs[0], found.outputs[-1], 60)
    for place, m in enumerate(found.neurons.values):
        here, colour = found.sel(neurons=m), plots.look.OTHERS[place]
        ax.plot(fine, [untrained_correlation(c, int(m)) for c in fine], "--", color=plots.THEORY, lw=1.2)
        marker = "os^"[place]
        ax.plot(here.outputs, here.mean("seed"), marker, color=colour, label=f"m = {m}")
    ax.set_xscale("log")
    ax.set_xticks(found.outputs.values, [str(c) for c in found.outputs.values])
    ax.minorticks_off()
    ax.set(xlabel="outputs C", ylabel="correlation ρ [1]", ylim=(0, 1.03), title="Nothing has been trained yet")
    plots.look.shared_legend([ax], 3)
    return fig


def maps(matrices: Mapping[str, np.ndarray], top: int = 8) -> Figure:
    """The first rows and columns of matrices, each over its largest entry."""
    fig, axes = plt.subplots(1, len(matrices), figsize=(plots.look.SIZE[0], 2.5))
    for ax, (name, matrix) in zip(axes, matrices.items(), strict=True):
        ax.imshow(matrix[:top, :top] / np.abs(matrix).max(), cmap="RdBu_r", vmin=-1, vmax=1)
        ax.set_title(name)
        ax.set_xticks([0, top - 1], ["1", str(top)])
        ax.set_yticks([0, top - 1], ["1", str(top)])
        ax.tick_params(length=0)
        ax.grid(False)
    return fig


def layers(found: xr.DataArray, counts: Mapping[int, float]) -> Figure:
    """Correlation of WᵀW with G in every layer, untrained and trained, from two starts. counts: of untrained layers."""
    fig, axes = plots.panels(2, sharey=True)
    for ax, start, words in zip(axes, (0.3, 1.0), ("small start, s = 0.3", "usual start, s = 1"), strict=True):
        for stage, (colour, marker, label) in STYLE.items():
            here = found.sel(start=start, stage=stage)
            low, high = here.quantile([0.1, 0.9], "seed").values
            ax.errorbar(here.layer, here.mean("seed"), [here.mean("seed") - low, high - here.mean("seed")],
                        fmt=f"{marker}-", color=colour, lw=1.2, markersize=6, label=label)  # fmt: skip
        ax.plot(list(counts), list(counts.values()), "--", color=plots.THEORY, lw=1.2, label="count, untrained")
        ax.set(xlabel="layer", title=words.capitalize(), ylim=(0, 1.05), ylabel="correlation ρ [1]")
        ax.set_xticks([1, 2, 3, 4])
    plots.look.shared_legend(axes, 3)
    return fig


def steering(found: xr.Dataset) -> Figure:
    """Over the strength: crops called exchanged, and photographs told right; along the concept and along chance."""
    fig, axes = plots.panels(2, sharex=True, sharey=True)
    names = {"trained": "trained", "wide untrained": "untrained, wide"}
    for ax, what, title in zip(axes, ("flips", "kept"), ("Called exchanged", "Photograph told right"), strict=True):
        lines = {label: found[what].sel(model=model, direction="concept") for model, label in names.items()}
        lines["trained, random way"] = found[what].sel(model="trained", direction="random")
        for (label, line), (colour, marker, style) in zip(
            lines.items(), ((plots.SIGNAL, "s", "-"), (plots.TRAIN, "o", "-"), (plots.NOISE, "^", ":")), strict=True
        ):
            low, high = line.quantile([0.1, 0.9], "seed").values
            if style == "-":
                ax.fill_between(line.strength, low, high, color=colour, alpha=0.18, lw=0)
            ax.plot(line.strength, line.mean("seed"), style, marker=marker, color=colour, label=label)
        ax.set(xlabel="strength c [1]", ylabel="share of crops", title=title, ylim=(0, 1.04))
    plots.look.shared_legend(axes, 2)
    return fig
