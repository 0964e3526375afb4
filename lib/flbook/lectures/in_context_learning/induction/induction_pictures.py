"""Pictures of this lecture: what a page should not have to spell out."""

import numpy as np
import torch
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flbook import plots
from flbook.lectures.in_context_learning.induction.causal_chains import ROOT, CausalContexts
from flbook.lectures.in_context_learning.induction.parent_gradient import gradient
from flbook.plots.schematic import Schematic, box, strip

MODEL = Schematic(
    "Two layers of attention that find a transition of their context",
    [
        ("context", {"s": strip("$s_1\\dots s_T$", "tokens", "context*5", lane=0, alt="the tokens of the context")}),
        ("first layer", {"a": box("$a_{ij}$", "by place", lane=0, alt="attention a from place i to place j, trained")}),
        ("copied", {"z": strip("$z_i$", "is it $u$?", "signal*5", lane=0,
                               alt="for every place i how much of what it looks at is the query u")}),
        ("second layer", {"b": box(r"softmax $\beta z$", "by token", lane=0, alt="weights, a softmax of beta z")}),
        ("answer", {"f": strip("$f$", "law of $y$", "label*3", lane=0, alt="the law f of the next token y")}),
    ],
    ["s > a > z > b > f"],
    says="The first layer chooses places by their position, the second by their content.",
)  # fmt: skip

NAMES = {"soft": "gradient, law of $y$", "sampled": "gradient, sampled $y$", "pooled": "pooled pair counts",
         "Bayes": "Bayes"}  # fmt: skip
PAINT = {"soft": plots.SIGNAL, "sampled": plots.TEST, "pooled": plots.NOISE, "Bayes": "#882255"}
DOTS = {"soft": "o", "sampled": "s", "pooled": "X", "Bayes": "D"}


def errors(ax: Axes, x: np.ndarray, values: xr.DataArray, **how) -> None:
    """Means over the seeds with their standard errors."""
    ax.errorbar(x, values.mean("seed"), values.std("seed", ddof=1) / values.sizes["seed"] ** 0.5, capsize=2, **how)


def heat(ax: Axes, table: np.ndarray, parents: tuple[int, ...]) -> None:
    """The slope of every pair of places, and circles at the parents."""
    places = len(table)
    shown = np.where(np.tril(np.ones_like(table)) > 0, table, np.nan)
    size = np.nanmax(np.abs(shown))
    ax.imshow(shown, cmap="RdBu_r", vmin=-size, vmax=size, extent=(0.5, places + 0.5, places + 0.5, 0.5))
    at = [(parent + 1, place + 1) for place, parent in enumerate(parents) if parent != ROOT]
    ax.plot(*zip(*at, strict=True), "o", mfc="none", mec="black", ms=7, ls="none", label="parent")
    ax.set(xlabel="place $j$", ylabel="place $i$", xticks=range(5, places + 1, 5), yticks=range(5, places + 1, 5))
    ax.grid(False)


def parents(found: xr.Dataset, problem: CausalContexts, count: int = 1000, seed: int = 0) -> Figure:
    """The first gradient on a random tree, and the share of places whose parent is found over the contexts."""
    fig, (left, right) = plots.panels(2)
    heat(left, gradient(problem.draw(count, seed), "soft").numpy(), problem.parents)
    left.set_title(f"Slopes, {count:,} contexts")
    left.legend(fontsize=9, loc="upper right")
    for method in ("soft", "sampled", "pooled"):
        for tokens, style in ((3, "-"), (10, ":")):
            values = found.right.sel({"graph": "tree", "tokens": tokens, "method": method})
            name = NAMES[method] if tokens == 3 else None
            errors(right, found.contexts.values, values, color=PAINT[method], marker=DOTS[method], ls=style, label=name)
    right.set(xscale="log", xlabel="contexts $N$", ylabel="share of parents found", ylim=(0, 1.03),
              title="Right rows")
    plots.shared_legend((right,), ncols=3)
    return fig


def sticky(limits: dict[str, torch.Tensor], found: xr.Dataset, border: float) -> Figure:
    """Slopes and information by lag in a chain, and slopes at the place itself and at the parent over stickiness."""
    fig, (left, right) = plots.panels(2)
    lag = np.arange(1, len(limits["slope"]))
    left.plot(lag, limits["information"][1:], color=plots.TRAIN, marker="s", label="information $I_l$")
    left.plot(lag, limits["slope"][1:], color=plots.SIGNAL, marker="o", label="slope $Sg$")
    left.plot(0, limits["slope"][0], "o", color=plots.SIGNAL)
    left.annotate(f"itself: information {float(limits['information'][0]):.0f}", (0, 0), (0.15, 0.1), fontsize=9,
                  arrowprops={"arrowstyle": "-", "color": plots.TRAIN})
    left.set(xlabel="lag $l$", xticks=range(len(limits["slope"])), title=r"Long contexts, $\rho=0$")
    left.legend(fontsize=9)
    rho = np.linspace(0, float(found.rho[-1]), 50)
    size, information = int(found.tokens[0]), float(limits["information"][1])
    right.plot(rho, rho * (size - 1), color=plots.THEORY, ls="--")
    right.plot(rho, rho**2 * (size - 1) + (1 - rho) ** 2 * information, color=plots.THEORY, ls="--", label="theory")
    for name, colour, marker in (("itself", plots.NOISE, "s"), ("parent", plots.SIGNAL, "o")):
        words = {"itself": "the place itself", "parent": "the parent"}[name]
        values = found[name].isel(tokens=0).sel(length=320)
        errors(right, found.rho.values, values, color=colour, marker=marker, ls="none", label=words)
    right.axvline(border, color=plots.THEORY, ls=":", lw=1)
    right.set(xlabel=r"stickiness $\rho$", ylabel="slope $Sg$", title="Sticky tokens, $T=320$")
    right.legend(fontsize=9)
    return fig


def training(found: xr.Dataset) -> Figure:
    """Attention to the parent and to the place itself while both layers are trained, for three stickinesses."""
    fig, axes = plots.panels(found.sizes["rho"], sharey=True)
    for ax, rho in zip(axes, found.rho.values, strict=True):
        for name, colour in (("itself", plots.NOISE), ("parent", plots.SIGNAL)):
            values = found[name].sel(rho=rho)
            words = {"itself": "the place itself", "parent": "the parent"}[name]
            errors(ax, found.step.values, values, color=colour, label=words)
        ax.set(xlabel="step", title=rf"$\rho={rho:g}$", ylim=(0, 1))
    axes[0].set_ylabel("attention")
    axes[0].legend(fontsize=9)
    return fig


def temperature(found: xr.Dataset, best: xr.DataArray, alpha: float = 1.0) -> Figure:
    """The best beta of the second layer over the length of the context, and what predictors lose."""
    fig, (left, right) = plots.panels(2)
    fine = np.geomspace(float(found.length[0]), float(found.length[-1]), 50)
    for tokens, colour, marker in ((3, plots.SIGNAL, "o"), (10, plots.NOISE, "s")):
        errors(left, found.length.values, best.sel(tokens=tokens), color=colour, marker=marker, ls="none",
               label=f"$S={tokens}$")  # fmt: skip
        left.plot(fine, np.log1p(fine / (tokens * alpha)), color=plots.THEORY, ls="--",
                  label=r"$\ln(1+T/S\alpha)$" if tokens == 3 else None)
    left.set(xscale="log", xlabel="length $T$", ylabel=r"best $\beta$", title="Second layer")
    least = {"unigram": found.unigram, "own counts": found.counts, "attention": found["head"].min("beta"),
             "Bayes": found.bayes}  # fmt: skip
    looks = {"unigram": (plots.TRAIN, "^"), "own counts": ("#8A6A00", "v"), "attention": (plots.SIGNAL, "o"),
             "Bayes": ("#882255", "D")}  # fmt: skip
    for name, values in least.items():
        colour, marker = looks[name]
        errors(right, found.length.values, values.sel(tokens=3), color=colour, marker=marker, label=name)
    right.set(xscale="log", yscale="log", xlabel="length $T$", ylabel="loss above entropy, nats", title="$S=3$")
    for ax in (left, right):
        ax.set_xticks(found.length.values, [str(n) for n in found.length.values])
        ax.minorticks_off()
        ax.legend(fontsize=9)
    return fig


def evidence(found: xr.Dataset) -> Figure:
    """The share of draws in which the parent's lag is found, over the contexts."""
    fig, axes = plots.panels(found.sizes["tokens"], sharey=True)
    for ax, tokens in zip(axes, found.tokens.values, strict=True):
        for method in found.method.values:
            values = found.right.sel({"tokens": tokens, "method": method}).mean("seed")
            ax.plot(found.contexts, values, color=PAINT[method], marker=DOTS[method], label=NAMES[method])
        ax.set(xscale="log", xlabel="contexts $N$", title=f"$S={tokens}$", ylim=(0, 1.03))
    axes[0].set_ylabel("share of draws that are right")
    plots.shared_legend(axes[:1], ncols=2)
    return fig


def scores(ax: Axes, values: xr.DataArray, layer: int, **how) -> None:
    """Induction score of a layer's best head over the steps: each start, and their mean in bold."""
    best = values.sel(layer=layer).max("head").transpose("step", "seed")
    ax.plot(best.step, best, lw=0.7, alpha=0.6, **(how | {"label": None}))
    ax.plot(best.step, best.mean("seed"), lw=2.2, **how)


def text(two: xr.Dataset, long: xr.Dataset, one: xr.Dataset) -> Figure:
    """Induction scores over training: two layers at several shares of copies; one layer, keys smeared or not."""
    fig, (left, right) = plots.panels(2, sharey=True)
    paint = {0.25: "#8FA9C4", 0.5: "#3C69A0", 1.0: "#0B2545"}
    for share, colour in paint.items():
        found = long if share in long.share else two
        scores(left, found.induction.isel(kind=0).sel(share=share), 2, color=colour, label=f"copies in {share:.0%}")
    for share, style in ((0.0, ":"), (0.25, "-")):
        for kind, colour in (("one layer, smeared keys", plots.NOISE), ("one layer", plots.TRAIN)):
            label = f"{'smeared' if 'smeared' in kind else 'plain'} keys, copies in {share:.0%}"
            scores(right, one.induction.sel({"kind": kind, "share": share}), 1, color=colour, ls=style, label=label)
    for ax, title in ((left, "Two layers"), (right, "One layer")):
        ax.set(xscale="log", xlabel="training step", ylim=(0, 0.7), title=title, xlim=(50, None))
        ax.legend(fontsize=9, loc="upper left")
    left.set_ylabel("induction score of the best head")
    return fig


def still(tokens: int = 3, contexts: int = 300, rho: float = 0.0) -> Figure:
    """What the live figure shows when it opens, on a draw of the library's."""
    problem = CausalContexts(tokens, 12, rho=rho)
    table = gradient(problem.draw(contexts, 0))
    fig, (left, right) = plots.panels(2)
    heat(left, table.numpy(), problem.parents)
    by_lag = [tokens * table.diagonal(-lag).mean() for lag in range(6)]
    right.bar(range(6), by_lag, color=plots.SIGNAL)
    right.set(xlabel="lag", ylabel="slope $Sg$", title="Mean of a diagonal")
    return fig
