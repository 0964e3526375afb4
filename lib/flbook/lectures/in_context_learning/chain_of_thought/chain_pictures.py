"""Pictures of this lecture: what a page should not have to spell out."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flbook import plots
from flbook.lectures.in_context_learning.chain_of_thought import parent_law
from flbook.lectures.in_context_learning.chain_of_thought.parity_trees import ParityTree, first_gradient
from flbook.plots.schematic import Schematic, box, curve, op, out, strip

MODEL = Schematic(
    "One node of the chain",
    [
        ("earlier", {"x": strip("$x_j$", "tokens", "grey*1 signal*1 grey*1 signal*1 grey*1", lane=0,
                                       alt="the M tokens before node m, two of them its parents")}),
        ("attention", {"a": box("softmax", lane=0, alt="attention from positions alone")}),
        ("mean", {"z": op("$z_m$", "mean", lane=0, alt="the weighted mean z of the tokens")}),
        ("square", {"f": curve(r"$\phi$", holds="square", lane=0, alt="two z squared minus one")}),
        ("next", {"y": out(r"$\hat x_m$", lane=0, alt="the answer")}),
    ],
    ["x > a > z > f > y"],
    says="With half of the attention on each parent, twice the square of the mean less one is their product.",
)  # fmt: skip

STEPS, NOISY, ALONE = plots.SIGNAL, plots.NOISE, "#332288"


def spread(ax: Axes, x: np.ndarray, values: xr.DataArray, label: str, colour: str, marker: str) -> None:
    """Means over the seeds, and bars that hold 80 % of them."""
    mean = values.mean("seed")
    ends = values.quantile([0.1, 0.9], "seed")
    bars = np.abs(np.stack([mean - ends[0], ends[1] - mean]))
    ax.errorbar(x, mean, bars, fmt=marker, color=colour, label=label, capsize=2)


def answer(step: xr.Dataset, alone: xr.DataArray, needed: xr.DataArray) -> Figure:
    """Test accuracy over samples, with the chain and without; and the samples that the step needs over d."""
    fig, (left, right) = plots.panels(2)
    spread(left, step.n.values, step.accuracy.sel(tokens="rounded"), "one step, with the chain", STEPS, "o")
    left.plot(step.n, step.accuracy.sel(tokens="rounded").mean("seed"), color=STEPS, lw=1)
    spread(left, alone.n.values, alone, "label alone, trained to the end", ALONE, "D")
    left.axhline(0.5, color=plots.CHANCE, ls=":")
    left.set(xscale="log", xlabel="samples $n$", ylabel="test accuracy of the label", title="32 bits, 8 of them count",
             ylim=(0.4, 1.03))
    d = needed.d.values
    fine = np.geomspace(d[0], d[-1], 9).round().astype(int)
    for flip, name, colour, marker in ((0.0, "clean steps", STEPS, "o"), (0.05, "5 % wrong", NOISY, "s")):
        spread(right, d, needed.sel(flip=flip), name, colour, marker)
        law = [parent_law.needed(int(n), 8, flip) for n in fine]
        right.plot(fine, law, color=plots.THEORY, ls="--", label=None if flip else "theory, no free number")
    right.set(xscale="log", yscale="log", xlabel="bits $d$", ylabel="samples needed $n^*$",
              title="What the step needs")
    right.set_xticks(d, [str(n) for n in d])
    right.set_yticks([500, 1000, 2000, 4000, 8000], ["500", "1000", "2000", "4000", "8000"])
    right.minorticks_off()
    left.legend(fontsize=9, loc="center left", bbox_to_anchor=(0.36, 0.45))
    right.legend(fontsize=9)
    return fig


def node_bars(d: int = 32, k: int = 8, n: int = 1000, seed: int = 0) -> Figure:
    """The first gradient of the last node, token by token: its two parents stand out."""
    tree = ParityTree(d, k)
    tokens, parents, _ = tree.draw(n, seed)
    g, m = first_gradient(tokens, d)[-1, : tree.length - 1].numpy() * (tree.length - 1) ** 2 / 4, tree.length - 1
    fig, (ax,) = plots.panels(1)
    colours = np.where(np.isin(np.arange(m), parents[-1].numpy()), STEPS, plots.TRAIN)
    ax.bar(np.arange(1, m + 1), g, color=colours)
    ax.axhline(1 - 2 / m, color=plots.THEORY, ls="--")
    ax.axhline(-2 / m, color=plots.THEORY, ls=":")
    ax.set(xlabel="token $j$", ylabel="$G_j$ in units of $4/M^2$", title=f"The last node, $n={n}$")
    return fig


def laws(found: xr.Dataset, depths: xr.DataArray) -> Figure:
    """Share of draws in which all parents are found, over n; and n* over the number of hidden bits."""
    fig, (left, right) = plots.panels(2)
    for d, colour, marker in ((16, plots.TEST, "^"), (128, STEPS, "o")):
        leading = parent_law.needed(d, 8, 0.0, parent_law.leading)
        n = found.ratio.values * leading
        scale = 4 * d * np.log(d)
        share = found.found.sel(flip=0.0, k=8, d=d).mean("seed")
        left.plot(n / scale, share, marker, color=colour, label=f"$d={d}$")
        fine = np.geomspace(n[0], n[-1], 60)
        for kind, style, width in ((parent_law.exact, "--", 2), (parent_law.leading, ":", 1)):
            chances = parent_law.all_nodes(fine, d, 8, kind=kind)
            left.plot(fine / scale, chances, color=plots.THEORY, ls=style, lw=width)
    left.set(xscale="log", xlabel=r"samples $n$ over $4d\,\ln d$", ylabel="share of draws",
             title="All 14 parents found")
    left.set_xticks([0.5, 1, 2, 4], ["0.5", "1", "2", "4"])
    left.minorticks_off()
    k = depths.k.values
    spread(right, k, depths, "measured", STEPS, "o")
    fine = 2 ** np.arange(1, 6)
    kinds = {"theory": (parent_law.exact, "--"), "leading law, parents independent": (parent_law.independent, "-.")}
    for name, (kind, style) in kinds.items():
        law = [parent_law.needed(64, int(v), 0.0, kind) for v in fine]
        right.plot(fine, law, color=plots.THEORY, ls=style, label=name)
    right.set(xscale="log", xlabel="bits that count $k$", ylabel="samples needed $n^*$", title="64 bits")
    right.set_xticks(k, [str(v) for v in k])
    right.minorticks_off()
    for ax in (left, right):
        ax.legend(fontsize=9)
    return fig


WAYS = {
    "no filter": ("no filter", plots.TRAIN, "v"),
    "filter": ("filter, rounded scores", NOISY, "s"),
    "filter, frozen": ("and levels frozen", "#8A6A00", "^"),
    "filter, signs": ("and tokens rounded", "#AA3377", "D"),
    "filter, frozen, signs": ("and both", STEPS, "o"),
}


def own(found: xr.DataArray, theory: dict[int, float]) -> Figure:
    """Share of draws that are solved after each step, by the way of training, at the largest sample size."""
    fig, (ax,) = plots.panels(1)
    n = int(found.n[-1])
    for place, (way, (name, colour, marker)) in enumerate(WAYS.items()):
        share = (found.sel(way=way, n=n) > 0.99).mean("seed")
        ax.plot(share.step + 0.03 * (place - 2), share, marker=marker, color=colour, label=name)
    ax.axhline(theory[n], color=plots.THEORY, ls="--", label="theory: no pair of parents split")
    ax.set(xlabel="training step", ylabel="share of draws at accuracy 0.99",
           title="The chain that the layer writes itself", xticks=found.step.values, ylim=(-0.05, 1.05))
    ax.legend(fontsize=9, loc="center left", bbox_to_anchor=(0.0, 0.67))
    return fig


def decoders(equal: xr.Dataset | None, drowned: xr.Dataset) -> Figure:
    """The loss of decoders of 32 bits over training: steps shown, by how signs are read in, and the label alone."""
    fig, (ax,) = plots.panels(1)
    at = {"d": 32, "n": 4000}
    for result, shown, name, colour, style in (
            (equal, "steps", "steps, signs as large as positions", STEPS, "-"),
            (drowned, "steps", "steps, signs ten times as large", NOISY, "--"),
            (drowned, "label alone", "label alone, signs ten times as large", ALONE, "-.")):  # fmt: skip
        if result is None:
            continue
        losses = result.loss.sel(shown=shown, **at)
        ax.plot(result.step, losses.mean("seed"), style, color=colour, label=name)
        ax.fill_between(result.step, losses.min("seed"), losses.max("seed"), color=colour, alpha=0.2, lw=0)
    ax.axhline(np.log(2), color=plots.CHANCE, ls=":")
    ax.set(xscale="log", xlabel="step of Adam", ylabel="training loss, nats per node asked",
           title="A decoder, 32 bits, 4000 samples")
    ax.legend(fontsize=9, loc="lower left")
    return fig
