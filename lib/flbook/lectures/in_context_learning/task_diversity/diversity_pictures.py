"""Pictures of the lecture on task diversity: what a page should not have to spell out."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.plots.look import SHADES
from flbook.plots.schematic import Schematic, bar, op, out, strip

MODEL = Schematic(
    "The Bayes rule of a pool of tasks",
    [
        ("tasks", {
            "b1": strip(r"$\beta_1$", "", "signal*4", lane=-1, alt="the task beta 1 of the pool"),
            "b2": strip(r"$\beta_2$", "", "signal*4", lane=0, alt="the task beta 2 of the pool"),
            "bM": strip(r"$\beta_M$", "", "signal*4", lane=1, alt="the task beta M of the pool"),
        }),
        ("weights", {
            "p1": bar(r"$p_1$", value=0.2, holds="context", lane=-1, alt="weight p 1, how well it fits the prompt"),
            "p2": bar(r"$p_2$", value=0.95, holds="context", lane=0, alt="weight p 2, how well it fits the prompt"),
            "pM": bar(r"$p_M$", value=0.1, holds="context", lane=1, alt="weight p M, how well it fits the prompt"),
        }),
        ("mean", {
            "sum": op(r"$\Sigma$", lane=0, alt="the weighted mean of the tasks"),
            "q": strip("$x_q$", "query", "grey*4", lane=1, alt="the query x q"),
        }),
        ("product", {"prod": op(r"$\langle\,,\rangle$", lane=0, alt="inner product with the query")}),
        ("answer", {"y": out(r"$\hat y$", lane=0, alt="the answer")}),
    ],
    ["b1 b2 bM > p1 p2 pM", "p1 p2 pM >> sum", "sum > prod > y", "q > prod"],
    says="The prompt enters through the weights alone; the answer is never far from the tasks of the pool.",
)  # fmt: skip
RULES = {"pool's Bayes rule": ("-", plots.THEORY), "ridge": (":", "#3D5FA3"), "linear attention": ("--", "#00707A")}


def _networks(names: xr.DataArray) -> list[tuple[str, tuple, str]]:
    """Name, colour and marker of each network: the shade is its training, from short to long."""
    return list(zip(names.values, SHADES(np.linspace(1, 0, names.size)), "^v<>sp"[-names.size :], strict=True))


def pools(error: xr.DataArray, attention: np.ndarray) -> Figure:
    """Errors on a pool's own tasks and on fresh ones over its size: transformers are dots, exact rules lines.

    error: over (network, tested, tasks, rule). attention: best linear attention, shape (tested, tasks).
    """
    fig, axes = plots.panels(2, sharex=True, sharey=True)
    for k, (ax, tested) in enumerate(zip(axes, error.tested.values, strict=True)):
        part = error.sel(tested=tested)
        rules = {name: part.sel(rule=name).isel(network=0) for name in ("pool's Bayes rule", "ridge")}
        for name, values in (rules | {"linear attention": attention[k]}).items():
            style, colour = RULES[name]
            ax.plot(part.tasks, values, style, color=colour, lw=2, label=name)
        for name, shade, marker in _networks(error.network):
            dots = part.sel(network=name, rule="transformer")
            ax.plot(part.tasks, dots, marker, color=shade, ms=7, label=name)
        ax.set(title=f"Tested on {'its own tasks' if k == 0 else 'fresh tasks'}", xscale="log")
        ax.set(ylabel="squared error over $d$", ylim=(0, 1.25))
        ax.set_xticks(part.tasks.values, [f"{m:,}" for m in part.tasks.values])
        ax.minorticks_off()
    axes[1].set_xlabel("tasks in the pool $M$")
    plots.shared_legend(axes)
    return fig


def growing(found: xr.Dataset) -> Figure:
    """What the pool's Bayes rule loses on its own and on fresh tasks over the size of the pool, and the own weight."""
    fig, axes = plots.panels(2)
    axes[0].loglog(found["size"], found.own.where(found["size"] > 1), color=plots.SIGNAL, lw=3, label="its own tasks")
    axes[0].loglog(found["size"], found.fresh, "--", color=plots.NOISE, lw=2.5, label="fresh tasks")
    axes[0].axhline(float(found.ridge), color=plots.THEORY, lw=1.2, label="ridge, on both")
    axes[0].set(title="The pool's Bayes rule errs on", ylabel="squared error over $d$")
    axes[1].semilogx(found["size"], found.weight, color=plots.SIGNAL, lw=3, label="own task's weight")
    axes[1].semilogx(found["size"], found.bound, "--", color=plots.TRAIN, lw=2, label="its bound")
    axes[1].set(title="Weight of a prompt's own task", ylabel="weight", ylim=(0, 1.1))
    for ax in axes:
        ax.axvline(np.exp(float(found.information)), color=plots.THEORY, ls=":")
        ax.set_xlabel("tasks in the pool $M$")
        ax.legend(fontsize=9)
    return fig


def half_weight(found: xr.Dataset) -> Figure:
    """Pools in which a prompt's own task has half of the weight, over the information in the prompt."""
    fig, (ax,) = plots.panels()
    paint = zip(np.unique(found.d), (plots.SIGNAL, plots.TEST, plots.NOISE), "os^", strict=True)
    for d, colour, marker in paint:
        part = found.isel(law=np.flatnonzero(found.d.values == d))
        ax.plot(part.information, part.log_size.mean("seed"), marker, color=colour, ms=8, label=f"$d = {d}$")
    ends = np.array([float(found.information.min()), float(found.information.max())])
    ax.plot(ends, ends, "--", color=plots.THEORY, label=r"$\log M = I$")
    ax.set(xlabel="information in the prompt $I$ (nats)", ylabel=r"$\log M$ at half of the weight")
    ax.set_title("A prompt can look up about $e^I$ tasks")
    ax.legend(loc="upper left")
    return fig


def kink(exact: xr.Dataset, limits: Mapping) -> Figure:
    """Risk of the best linear attention on fresh tasks over tasks per dimension."""
    return plots.learning_curves(
        exact, {name: name for name in exact}, x="kappa", theory=dict(limits),
        title="One layer changes at one task a dimension", ylabel="risk on fresh tasks")  # fmt: skip


def pools_in_words(error: xr.DataArray) -> str:
    """The numbers of `pools` for who does not see them."""
    said = []
    for tested in error.tested.values:
        part = error.sel(tested=tested).isel(network=-1).dropna("tasks")
        sizes = [int(part.tasks[0]), int(part.tasks[-1])]
        numbers = [f"{rule} {float(part.sel(rule=rule, tasks=sizes[0])):.2f} to "
                   f"{float(part.sel(rule=rule, tasks=sizes[1])):.2f}" for rule in part.rule.values]  # fmt: skip
        said.append(f"On the {tested}, from {sizes[0]} to {sizes[1]} tasks: {', '.join(numbers)}")
    return ("Squared error over d against the size of the pool, of the larger network after the longer training and of "
            f"exact rules. {'. '.join(said)}.")


def shares(split: xr.Dataset, information: float = 6.3, most: int = 256) -> Figure:
    """Share of look-up, and the distance from the line of both rules, over the size of the pool.

    split: `pretraining_pools.split`, over (network, tasks). most: the largest pool whose share is shown.
    """
    fig, axes = plots.panels(2, sharex=True)
    for name, shade, marker in _networks(split.network):
        part = split.sel(network=name)
        few = part.share.sel(tasks=part.tasks <= most)
        for ax, values in zip(axes, (few, part.off), strict=True):
            ax.plot(values.tasks, values, marker + "-", color=shade, label=name)
    for level in (0, 1):
        axes[0].axhline(level, color=plots.THEORY, ls=":", lw=1)
    axes[0].set(title="Share of look-up, own pool", ylabel="share $s$", ylim=(-0.1, 1.15))
    axes[0].set_yticks([0, 0.5, 1], ["ridge  0", "0.5", "Bayes  1"])
    axes[1].set(title="Off the line of both rules", ylabel="squared distance over $d$", yscale="log")
    axes[1].set(xlabel="tasks in the pool $M$", xscale="log")
    for ax in axes:
        ax.axvline(np.exp(information), color=plots.THEORY, ls=":", lw=1)
    axes[1].set_xticks(split.tasks.values, [f"{m:,}" for m in split.tasks.values])
    axes[1].minorticks_off()
    plots.shared_legend(axes)
    return fig


def shares_in_words(split: xr.Dataset) -> str:
    """The numbers of `shares` for the larger network after the longer training, for who does not see them."""
    last = split.isel(network=-1).dropna("tasks")
    words = [f"{int(m)} tasks: share {float(last.share.sel(tasks=m)):.2f}, off {float(last.off.sel(tasks=m)):.3f}"
             for m in last.tasks.values]  # fmt: skip
    return ("Share of look-up and squared distance from the line, larger network after the longer training. "
            f"{'; '.join(words)}.")
