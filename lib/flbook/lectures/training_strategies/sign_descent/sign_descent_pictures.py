"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots

SHORT = {"gradient descent": "GD", "normalised": "normalised", "sign descent": "sign", "Adam": "Adam"}
GROUPS = {"4 to 6": (4, 6), "18 to 22": (18, 22), "55 to 65": (55, 65), "180 to 200": (180, 200)}  # ranks


def race(racing: xr.Dataset) -> Figure:
    """Excess loss over steps under four rules, and at the end that of the rows by the rank of their word."""
    fig, (left, right) = plots.panels(2)
    lines = racing.excess.sel(rule=list(SHORT)).to_dataset("rule")
    plots.learning_curves(lines, SHORT, log="xy", title="Excess loss of the whole", ax=left)
    left.set_ylim(1e-6, 10)
    edges = np.unique(np.geomspace(1, racing.sizes["word"] + 1, 16).round().astype(int))
    group = np.digitize(racing.word, edges)
    middle = racing.word.groupby(xr.DataArray(group, dims="word")).mean()
    binned = racing.row.groupby(xr.DataArray(group, dims="word", name="bin")).mean()
    binned = binned.assign_coords(bin=("bin", middle.values, {"long_name": "rank of the word", "units": "1"}))
    names = {name: short for name, short in SHORT.items() if name != "Adam"}
    rows = binned.sel(rule=list(names)).to_dataset("rule")
    plots.learning_curves(rows, names, x="bin", log="xy", title="Row by row, at the end",
                          ylabel="excess loss of a row [nats]", ax=right)
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


def rows_at(runs: Mapping[str, xr.DataArray], step: int) -> Figure:
    """Excess of every row at one step, over the rank of its word, for each rule; the same axes for every step."""
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(5.2, 2.6)
    for (name, excess), marker in zip(runs.items(), "os", strict=True):
        colour = plots.look.looks(list(SHORT))[{"GD": "gradient descent"}.get(name, name)][0]
        ax.plot(excess.word, excess.sel(step=step, method="nearest").mean("seed"), marker, color=colour, ms=3,
                mec="none", label=name)  # fmt: skip
    ax.set(xscale="log", ylim=(-0.1, 4.4), xlabel="rank of the word", ylabel="excess of a row [nats]",
           title=f"step {step}")  # fmt: skip
    ax.legend(loc="upper left", fontsize=9, frameon=False)
    return fig


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


def tokens(stored: xr.Dataset, lines: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """Attention under sign descent over steps, and the test error over the sample size with its closed forms."""
    fig, (left, right) = plots.panels(2)
    first = stored.isel(n=0).sel(attention="trained", rule="sign descent")
    first = first.rename(from_signal="gamma_attention", from_noise="rho_attention")  # the book's colours of the two
    names = {"gamma_attention": "by the signal", "rho_attention": "by the noise", "train_loss": "training loss"}
    plots.learning_curves(first, names, log="", title="Sign descent leaves the signal",
                          ylabel="attention; loss [nats]", ax=left)  # fmt: skip
    end = stored.test_error.isel(step=-1)
    rules = {"sign descent": plots.look.OTHERS[2], "gradient descent": plots.look.OTHERS[0]}
    series = {rule: end.sel(rule=rule, attention="trained") for rule in rules}
    for rule, colour in rules.items():
        frozen = end.sel(rule=rule, attention="frozen").median("seed")
        right.plot(frozen.n, frozen, "o", ms=13, mfc="none", mec=colour, mew=1.5,
                   label="attention frozen" if rule == "sign descent" else None)  # fmt: skip
    return plots.series(series, "n", paint=rules, lines=lines, log="x", title="Errors on fresh samples",
                        ylim=(-0.03, 0.55), ax=right)  # fmt: skip
