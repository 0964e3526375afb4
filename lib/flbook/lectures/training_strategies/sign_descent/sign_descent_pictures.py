"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flbook import plots
from flbook.plots.schematic import Schematic, box, matrix, op, out, strip

MODEL = Schematic(
    "A table of logits for bigrams",
    [
        ("word", {"x": strip("$i$", "word of rank $i$", "grey*2 context grey*3", lane=0, alt="word i, one of V")}),
        ("its row", {"W": matrix(r"$W_i$", "a row of $W$", "gggg cccc gggg gggg", lane=0, alt="row i of the table W")}),
        ("softmax", {"s": box("softmax", lane=0)}),
        ("prediction, law", {
            "q": strip(r"$\hat q_i$", "predicted", "signal*6", lane=-0.7, alt="predicted probabilities"),
            "law": strip(r"$q_i$", "law", "label*2 -label*4", lane=0.7, alt="the law's probabilities"),
        }),
        ("divergence", {"kl": op("KL", lane=0)}),
        ("excess loss", {"L": out(r"$p_i\,L_i$", lane=0, alt="the row's excess loss times its frequency")}),
    ],
    ["x > W > s > q", "q law > kl", "kl > L"],
    says="A word touches its own row of the table and no other.",
)  # fmt: skip

SHORT = {"gradient descent": "GD", "normalised": "normalised", "sign descent": "sign", "Adam": "Adam"}
GROUPS = {"4 to 6": (4, 6), "18 to 22": (18, 22), "55 to 65": (55, 65), "180 to 200": (180, 200)}  # ranks


def race(racing: xr.Dataset) -> Figure:
    """Excess loss over steps under four rules, and at the end that of the rows by the rank of their word."""
    fig, (left, right) = plots.panels(2)
    lines = racing.excess.sel(rule=list(SHORT)).to_dataset("rule")
    plots.learning_curves(lines, SHORT, log="xy", title="Excess loss of the whole", ax=left)
    left.set_ylim(1e-6, 10)
    by_rank(racing, {name: short for name, short in SHORT.items() if name != "Adam"}, right)
    return fig


def by_rank(racing: xr.Dataset, names: Mapping[str, str], ax: Axes) -> None:
    """The excess loss of each word's row at the end over the rank of the word, ranks in bins.

    racing: `course`. names: label on the picture by rule.
    """
    edges = np.unique(np.geomspace(1, racing.sizes["word"] + 1, 16).round().astype(int))
    group = np.digitize(racing.word, edges)
    middle = racing.word.groupby(xr.DataArray(group, dims="word")).mean()
    binned = racing.row.groupby(xr.DataArray(group, dims="word", name="bin")).mean()
    binned = binned.assign_coords(bin=("bin", middle.values, {"long_name": "rank of the word", "units": "1"}))
    plots.learning_curves(binned.sel(rule=list(names)).to_dataset("rule"), names, x="bin", log="xy",
                          title="Row by row, at the end", ylabel="excess loss of a row [nats]", ax=ax)


@plots.look.styled
def frequencies(racing: xr.Dataset) -> Figure:
    """The rows at the end under gradient and sign descent, for one law of the frequencies."""
    fig, ax = plt.subplots(figsize=(5.2, 3.4))
    by_rank(racing, {"gradient descent": "GD", "sign descent": "sign"}, ax)
    ax.set_ylim(1e-5, 4)
    return fig


def grouped(excess: xr.DataArray, clock: np.ndarray | None = None) -> xr.Dataset:
    """Excess of rows, the mean over words of like rank; over steps, or over the clock of each word.

    clock: how fast time runs for each word.
    """
    if clock is None:
        parts = {name: excess.sel(word=slice(*ends)).mean("word") for name, ends in GROUPS.items()}
        return xr.Dataset(parts).assign_coords(step=excess.step)
    times = np.geomspace(0.3, 20, 40)
    axis = {"time": ("time", times, {"long_name": "time of the row ηp_i t", "units": "1"})}
    found = {}
    for name, ends in GROUPS.items():
        words = excess.sel(word=slice(*ends)).transpose("word", "seed", "step")
        speeds = clock[ends[0] - 1 : ends[1]]
        read = [[np.interp(times, speed * words.step, row) for row in word.values]
                for speed, word in zip(speeds, words, strict=True)]
        found[name] = (("seed", "time"), np.mean(read, 0), {"long_name": "excess loss of a row", "units": "nats"})
    return xr.Dataset(found, axis | {"seed": excess.seed})


def apart_and_together(excess: xr.DataArray, clock: np.ndarray) -> Figure:
    """Rows of four ranks under gradient descent, over steps and over the time of the row."""
    fig, (left, right) = plots.panels(2, sharey=True)
    names = {name: name for name in GROUPS}
    y = "excess loss of a row [nats]"
    plots.learning_curves(grouped(excess), names, title="Over steps: apart", ylabel=y, ax=left)
    plots.learning_curves(grouped(excess, clock), names, x="time", title="Over the row's own time: one curve", ylabel=y,
                         ax=right)
    return fig


def flow_and_rules(excess: xr.DataArray, flow: tuple[np.ndarray, np.ndarray], tuned: xr.DataArray,
                   names: Mapping[str, Sequence[str]]) -> Figure:  # fmt: skip
    """Rows of four ranks under sign descent with the flow, and every rule's excess at its best step.

    flow: steps and the excess that theory gives. names: label -> the rule without memory and with it.
    """
    fig, (left, right) = plots.panels(2)
    labels = {name: name for name in GROUPS}

    def theory(steps):
        return np.interp(steps, *flow)

    plots.learning_curves(grouped(excess), labels, log="", theory={"flow": theory}, title="Sign descent: every row",
                          ylabel="excess loss of a row [nats]", ax=left)
    left.set_xlim(0, 260)
    paint = plots.look.looks(list(SHORT)) | {"rows divided by p": (plots.TRAIN, "")}
    for place, rules in enumerate(names.values()):
        for rule, marker in zip(rules, "os", strict=True):
            values, colour = tuned.sel(rule=rule), paint[rules[0]][0]
            right.plot(values.quantile([0.1, 0.9]), [place, place], color=colour, lw=2)
            right.plot(values.mean(), place, marker, color=colour, mec="white", ms=8)
    for kind, marker in {"no memory": "o", "memory 0.9": "s"}.items():
        right.plot([], [], marker, color=plots.TRAIN, label=kind)
    right.set_yticks(range(len(names)), list(names))
    right.set(xscale="log", xlabel="excess loss [nats]", title="Every rule, best step")
    right.set_ylim(len(names) - 0.5, -0.5)
    plots.look.log_ticks(right)
    fig.legend(loc="outside lower center", ncols=2, fontsize=9)
    return fig


def text(run: xr.Dataset, stops: xr.DataArray) -> Figure:
    """Excess on the law of two rules that train on a text, over steps, and of the rows at each rule's best step.

    run: as `on_text` gives it. stops: the step at which each rule is best.
    """
    fig, (left, right) = plots.panels(2)
    edges = np.unique(np.geomspace(1, run.sizes["word"] + 1, 16).round().astype(int))
    group = xr.DataArray(np.digitize(run.word, edges), dims="word", name="bin")
    rank = run.word.groupby(xr.DataArray(group.values, dims="word", name="bin")).mean()
    binned = run.row.sel(step=stops).groupby(group).mean()
    looks = plots.look.looks(list(SHORT))
    for rule, short in {"gradient descent": "GD", "sign descent": "sign descent"}.items():
        colour, marker = looks[rule]
        whole = run.excess.sel(rule=rule, step=slice(1, None))
        for ax, x, values in ((left, whole.step, whole), (right, rank, binned.sel(rule=rule))):
            ax.plot(x, values.mean("seed"), color=colour, marker=marker, markevery=8 if ax is left else 1, label=short)
            low, high = values.quantile([0.1, 0.9], "seed")
            ax.fill_between(x, low, high, color=colour, alpha=0.2, lw=0)
        left.plot(float(stops.sel(rule=rule)), whole.mean("seed").min(), "o", ms=12, mfc="none", mec=colour, mew=1.5)
    left.set(xscale="log", yscale="log", xlabel="step t", ylabel="excess loss [nats]", title="Excess loss on the law")
    right.set(xscale="log", yscale="log", xlabel="rank of the word", ylabel="excess loss of a row [nats]",
              title="Row by row, at the best step")  # fmt: skip
    plots.look.log_ticks(left)
    plots.look.log_ticks(right)
    plots.shared_legend((left, right))
    return fig
