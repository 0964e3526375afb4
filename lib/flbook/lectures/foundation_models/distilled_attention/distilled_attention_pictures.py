"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.plots.schematic import Schematic, bar, box, out, strip

MODEL = Schematic(
    "One head, once with softmax and once with features, and how the features are trained",
    [
        ("a head", {"q": strip(r"$q_t$", "query", "context", lane=0), "k": strip(r"$k_i$", "keys", "signal", lane=1)}),
        ("kernel", {"K": box(r"$e^{\langle q_t,k_i\rangle/\sqrt{k}}$", lane=0, alt="softmax's kernel"),
                    "phi": box(r"$\Sigma_m\,\alpha_m\,\phi_m(q_t)\,\phi_m(k_i)$", lane=1, holds="label",
                               alt="the sum over features of weight times both features, which is trained")}),
        ("row", {"pi": bar(r"$\pi_{ti}$", value=0.8, holds="grey", lane=0),
                 "pihat": bar(r"$\hat\pi_{ti}$", value=0.6, holds="label", lane=1)}),
        ("loss", {"L": out(r"$-\Sigma_i\,\pi_{ti}\,\log\hat\pi_{ti}$", lane=0.5, alt="their cross-entropy")}),
    ],
    ["q k >> K phi", "K > pi > L", "phi > pihat > L"],
    says="Features and weights are trained until the rows agree; the network's queries and keys stay.",
)  # fmt: skip
PAINT = {"equal": plots.look.TRAIN, "rule": plots.look.OTHERS[2], "measured": plots.look.TEST,
         "reversed": plots.look.NOISE, "shuffled": plots.look.OTHERS[1]}  # fmt: skip
WORDS = {"equal": "equal", "rule": "rule (degrees of freedom)", "measured": "root of measured costs",
         "reversed": "rule reversed", "shuffled": "rule shuffled"}  # fmt: skip


@plots.look.styled
def shares_and_losses(found: xr.Dataset, budget: int = 16) -> Figure:
    """What each way gives the layers at one budget, and the loss at every budget; of one network."""
    fig, (left, right) = plots.panels(2)
    lines = {WORDS[name]: found.nats.sel(rule=name) for name in WORDS}
    paint = {WORDS[name]: colour for name, colour in PAINT.items()}
    given = {WORDS[name]: found.features.sel(rule=name, budget=budget) for name in WORDS if name != "shuffled"}
    plots.series(given, "layer", paint, joined=True, log="", title=f"{4 * budget} features for four layers", ax=left)
    plots.series(lines, "budget", paint, levels={"softmax": float(found.softmax)}, joined=True, log="x",
                 title="What the network loses", ax=right)  # fmt: skip
    left.set_xticks(found.layer)
    right.set_xticks(found.budget, [str(int(one)) for one in found.budget])
    right.minorticks_off()
    return _one_legend(fig, right)


@plots.look.styled
def costs_and_sums(costs: xr.DataArray, constants: np.ndarray, predicted: Mapping, measured: Mapping) -> Figure:
    """Cost of a layer alone against its features, and the loss of all layers against the sum of what they cost."""
    fig, (left, right) = plots.panels(2)
    for k, layer in enumerate(costs.layer.values):
        one, grid = costs.sel(layer=layer), costs.features.values
        colour, marker = (*plots.look.OTHERS, plots.look.SIGNAL)[k], plots.look.MARKERS[k]
        low, middle, high = (one.quantile(q, "seed") for q in (0.1, 0.5, 0.9))
        left.vlines(grid, low.clip(min=1e-5), high, color=colour, linewidth=1.4, alpha=0.6)
        left.plot(grid, middle, marker, color=colour, markeredgecolor="white", label=f"layer {layer}")
        left.plot(grid, constants[k] / grid, "--", color=plots.look.THEORY, linewidth=1)
    left.set(xscale="log", yscale="log", xlabel="features per head M", ylabel="loss above softmax\n[nats per pixel]",
             title="One layer linear")  # fmt: skip
    left.set_xticks(grid, [str(int(one)) for one in grid])
    left.minorticks_off()
    left.legend(loc="lower left", ncols=2, fontsize=9)
    for name, colour in PAINT.items():
        if name in predicted:
            right.plot(predicted[name], measured[name], plots.look.MARKERS[list(PAINT).index(name)], color=colour,
                       markeredgecolor="white", label=WORDS[name])  # fmt: skip
    ends = np.array([0.025, 0.5])
    right.plot(ends, ends, "--", color=plots.look.THEORY, linewidth=1, label="equal")
    right.set(xscale="log", yscale="log", xlabel="sum of the layers' costs\n[nats per pixel]",
              ylabel="loss above softmax\n[nats per pixel]", title="All layers linear")  # fmt: skip
    for axis in (right.xaxis, right.yaxis):
        axis.set_ticks([0.03, 0.1, 0.3], ["0.03", "0.1", "0.3"])
    right.minorticks_off()
    right.legend(*_but_last(right), loc="upper left", fontsize=9)
    return fig


@plots.look.styled
def needs_and_gains(needs: np.ndarray, constants: np.ndarray, foretold: Mapping[str, np.ndarray],
                    gains: Mapping[str, np.ndarray]) -> Figure:
    """Costs against degrees of freedom, (network, layer); what ways to share win back, (network, draw), as foretold."""
    fig, (left, right) = plots.panels(2)
    for layer, (n, a) in enumerate(zip(needs.T, constants.T, strict=True)):
        colour = (*plots.look.OTHERS, plots.look.SIGNAL)[layer]
        left.plot(n, a, plots.look.MARKERS[layer], color=colour, markeredgecolor="white", label=f"layer {layer + 1}")
    grid = np.array([80.0, 550.0])
    left.plot(grid, 0.35 * (grid / 350) ** 2, "--", color=plots.look.THEORY, linewidth=1, label="$A\\propto N^2$")
    left.set(xscale="log", yscale="log", xlabel="degrees of freedom N of a layer", ylabel="cost A [nats per pixel]",
             title="What the rule sees, and the cost")  # fmt: skip
    left.set_xticks([100, 200, 400], ["100", "200", "400"])
    left.minorticks_off()
    left.legend(loc="lower right", fontsize=9)
    for name, gain in gains.items():
        error = 2 * gain.std(1, ddof=1) / gain.shape[1] ** 0.5
        right.errorbar(foretold[name], gain.mean(1), error, color=PAINT[name], linestyle="", label=WORDS[name],
                       marker=plots.look.MARKERS[list(PAINT).index(name)], markeredgecolor="white")  # fmt: skip
    ends = np.array([min(one.min() for one in foretold.values()), max(one.max() for one in foretold.values())])
    right.plot(ends, ends, "--", color=plots.look.THEORY, linewidth=1, label="as foretold")
    right.axhline(0, color=plots.look.TRAIN, linewidth=1)
    right.set(xlabel="foretold by single layers [share]", ylabel="won back of the loss [share]",
              title="Who wins, foretold")  # fmt: skip
    right.legend(loc="upper left", fontsize=9)
    return fig


@plots.look.styled
def gaze(picture: np.ndarray, exact: np.ndarray, linear: np.ndarray, title: str) -> Figure:
    """The picture before the token, where the token looks by softmax, and where by linear attention; 8 x 8 each."""
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(5.2, 2.1)
    gap = np.full((8, 1), np.nan)
    shown = picture / 16 * exact.max()
    ax.imshow(np.hstack([shown, gap, exact, gap, linear]), cmap="viridis", vmin=0, vmax=exact.max())
    for place, word in zip((3.5, 12.5, 21.5), ("pixels so far", "softmax", "linear"), strict=True):
        ax.text(place, 8.4, word, ha="center", fontsize=10)
    ax.set(title=title, xticks=[], yticks=[])
    ax.axis("off")
    return fig


def _but_last(ax) -> tuple[list, list]:
    handles, labels = ax.get_legend_handles_labels()
    return handles[:-1], labels[:-1]


def _one_legend(fig: Figure, ax) -> Figure:
    for old in list(fig.legends):
        old.remove()
    fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=9)
    return fig
