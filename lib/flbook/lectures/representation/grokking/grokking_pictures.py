"""Pictures of this lecture: what a page should not have to spell out."""

import numpy as np
import torch
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flbook import plots
from flbook.lectures.representation import grokking as lecture
from flbook.lectures.representation.grokking.modular_table import ModularTable, differences
from flbook.lectures.representation.grokking.recursive_machine import profile, progress, recursion
from flbook.plots.schematic import Schematic, box, matrix, op, out, strip

MODEL = Schematic(
    "A kernel machine that learns its metric",
    [
        ("pair", {"x": strip("$(a,b)$", "two ones", "grey*1 signal*1 grey*3 signal*1", lane=0, alt="a pair")}),
        ("metric", {"M": matrix("$M$", "learned", "gGcc GgcC ccgG cCGg", lane=0, alt="the metric M")}),
        ("kernel", {"k": op(r"$(\cdot)^2$", "with each pair", lane=0, alt="squared products with all pairs")}),
        ("fit", {"f": box("fit", lane=0, alt="coefficients that fit all training pairs")}),
        ("gradients", {"g": op("$G$", lane=0, alt="the gradients' outer product G")}),
        ("root", {"n": out(r"$\sqrt{G}$", "next metric", lane=0, alt="its root, the next metric")}),
    ],
    ["x > M > k > f > g > n"],
    says="The root of the gradients' outer product is the metric of the next round.",
)  # fmt: skip

PAINT = {"random": plots.SIGNAL, "equal a-b": plots.NOISE, "uneven a-b": plots.TEST, "equal a+b": "#5A4FB0"}
DOTS = {"random": "o", "equal a-b": "s", "uneven a-b": "D", "equal a+b": "^"}
WORDS = {"random": "random", "equal a-b": "equal counts of $a-b$", "uneven a-b": "uneven counts of $a-b$",
         "equal a+b": "equal counts of $a+b$"}  # fmt: skip


def _curve(ax: Axes, values: xr.DataArray, x: str, **how) -> None:
    """Means over the seeds, with bars from the 10 % to the 90 % quantile."""
    mean, ends = values.mean("seed"), values.quantile([0.1, 0.9], "seed").values
    ax.errorbar(values[x], mean, np.abs(ends - mean.values), capsize=2, lw=1.2, ms=4.5, **how)


def histograms(found: xr.Dataset, split: str, p: int, share: float) -> torch.Tensor:
    """N_t of each seed's training set."""
    return differences(ModularTable(p, share, split).draw(tuple(found.seed.values.tolist())).train, p)


def theory(found: xr.Dataset, split: str, p: int, share: float) -> np.ndarray:
    """The linear law's R, mean over the seeds, from the histograms."""
    return lecture.law(histograms(found, split, p, share), found.sizes["round"] - 1).mean(0).numpy()


def hidden(found: xr.Dataset, p: int, share: float) -> Figure:
    """What accuracy and loss show of the rounds, and what R does."""
    fig, (left, right) = plots.panels(2)
    one = found.sel(split="random")
    _curve(left, one.accuracy, "round", fmt="o-", color=plots.TEST, label="test accuracy")
    loss = one.loss / one.loss.isel(round=0)
    _curve(left, loss, "round", fmt="D-", color=plots.NOISE, label="test loss, over its start")
    left.axhline(0, color=plots.TRAIN, lw=2, ls="-.", label="training loss")
    left.set(xlabel="round $t$", ylabel="accuracy, relative loss", ylim=(-0.03, 1.08), title="What is usually watched")
    _curve(right, one.progress.isel(round=slice(1, None)), "round", fmt="o-", color=plots.SIGNAL, label="progress $R$")
    law = theory(found, "random", p, share)
    right.plot(found["round"][1:], np.where(law < 1.2, law, np.nan)[1:], color=plots.THEORY, ls="--",
               label=r"growth by $1+f$, from $N_t$")
    right.set(yscale="log", xlabel="round $t$", ylabel="progress $R$", title="What moves", ylim=(0.004, 1.4))
    last = float(one["round"][one.accuracy.mean("seed") < 0.01][-1])
    for ax in (left, right):
        ax.axvspan(0, last, color=plots.TRAIN, alpha=0.15, lw=0)
        ax.set_xlim(-0.3, found.sizes["round"] - 0.7)
        ax.legend(fontsize=9, loc="center left" if ax is left else "lower right")
    return fig


def causes(found: xr.Dataset, growth: xr.Dataset, p: int, share: float, seed: int = 0) -> Figure:
    """The profile after one round beside the histogram, and the growth of a small profile over the share."""
    fig, (left, right) = plots.panels(2)
    N = histograms(found, "random", p, share)[seed].numpy() / (2 * p**2)
    c = found.profile.sel(split="random", round=1).isel(seed=seed).values
    left.bar(np.arange(p), 1e3 * (N - N.mean()), color=plots.TRAIN, alpha=0.55, label="histogram, $N_t/2p^2$")
    left.plot(np.arange(p), 1e3 * (c - c.mean()), "o", color=plots.SIGNAL, label="profile of $C$")
    left.set(xlabel="difference $t$", ylabel="less its mean, in thousandths", title="After one round")
    f = growth.exact_share.isel(p=0).values
    found_growth = growth.growth.isel(p=0).assign_coords(share=f)
    _curve(right, found_growth, "share", fmt="o", color=plots.SIGNAL, label="measured")
    right.plot([0, 1], [1, 2], color=plots.THEORY, ls="--", label="$1+f$")
    right.axhline(1, color=plots.TRAIN, ls=":", label="no growth")
    right.set(xlabel="share of the table $f$", ylabel="growth per round", title="A small profile grows",
              ylim=(0.9, 2.1))
    top = left.get_ylim()[1]
    left.set_ylim(top=1.45 * top)
    left.legend(fontsize=9, loc="upper right")
    right.legend(fontsize=9, loc="upper left")
    return fig


def delayed(found: xr.Dataset, p: int, share: float) -> Figure:
    """Accuracy and progress for four kinds of training set."""
    fig, (left, right) = plots.panels(2)
    for split in found.split.values:
        how = dict(fmt=DOTS[split] + "-", color=PAINT[split], label=WORDS[split])
        _curve(left, found.accuracy.sel(split=split), "round", **how)
        _curve(right, found.progress.sel(split=split).isel(round=slice(1, None)), "round", **how)
    for split in ("random", "uneven a-b"):
        law = theory(found, split, p, share)
        right.plot(found["round"][1:], np.where(law < 0.6, law, np.nan)[1:], color=plots.THEORY, ls="--", lw=1.2)
    left.set(xlabel="round $t$", ylabel="test accuracy", title="The jump", ylim=(-0.03, 1.03))
    right.set(yscale="log", xlabel="round $t$", ylabel="progress $R$", title="The progress before it")
    plots.shared_legend((left, right), ncols=2)
    return fig


def same_size(found: xr.Dataset, parts: xr.DataArray, hand: xr.Dataset, others: xr.Dataset) -> Figure:
    """Test accuracy over R: learned, its circulant part, and set by hand."""
    fig, (left, right) = plots.panels(2, sharey=True)
    for split in found.split.values:
        one = found.sel(split=split)
        left.plot(one.progress.mean("seed"), one.accuracy.mean("seed"), DOTS[split] + "-", color=PAINT[split], ms=4.5,
                  label=WORDS[split])
    left.set(xlabel="progress $R$", ylabel="test accuracy", title="Learned", xlim=(0, 1), ylim=(-0.03, 1.03))
    size = found.progress.sel(split="random", round=parts["round"]).mean("seed")
    right.plot(size, parts.mean("seed"), "o-", color=plots.SIGNAL, ms=4.5, label="learned, circulant part")
    _curve(right, hand.accuracy.sel(kind="phases"), "R", fmt="D-", color=plots.TEST, label="random circulant")
    for kind, marker, colour in (("Hankel", "v", "#882255"), ("matrix", "x", plots.TRAIN)):
        name = {"Hankel": "random function of $a+b$", "matrix": "random matrix"}[kind]
        right.plot(others.R, others.accuracy.sel(kind=kind).mean("seed"), marker + "-", color=colour, label=name)
    right.set(xlabel="progress $R$, or that of a circulant as large", title="Set by hand", xlim=(0, 1))
    for ax in (left, right):
        ax.axhline(0.5, color=plots.THEORY, ls=":", lw=1)
        ax.legend(fontsize=9, loc="upper left")
    return fig


def network(trained: xr.Dataset) -> Figure:
    """A quadratic network under AdamW: accuracy for two kinds of training set, and the families in its gradients."""
    fig, (left, right) = plots.panels(2)
    for split in trained.split.values:
        how = dict(fmt=DOTS[split] + "-", color=PAINT[split], label=WORDS[split])
        _curve(left, trained.accuracy.sel(split=split), "step", **how)
    families = {"circulant": (plots.SIGNAL, "o-", "of $a-b$"), "hankel": ("#882255", "^-", "of $a+b$")}
    for name, (colour, marker, words) in families.items():
        shown = trained[name].sel(split="random")
        _curve(right, shown, "step", fmt=marker, color=colour, label=f"a function {words}")
    left.set(xlabel="step of AdamW", ylabel="test accuracy", title="The network jumps", ylim=(-0.03, 1.03))
    right.set(xlabel="step of AdamW", ylabel="share of the variance of $C$", title="Its features", ylim=(0, 1))
    for ax in (left, right):
        ax.legend(fontsize=9, loc="lower right" if ax is left else "upper left")
    return fig


def needed(table: xr.Dataset, known: xr.Dataset) -> Figure:
    """Accuracy after twenty rounds over the share, by the modulus, beside least squares that is told the group."""
    fig, (ax,) = plots.panels(1)
    markers = ("o", "s", "^")
    for p, marker, shade in zip(table.p.values, markers, (0.35, 0.65, 1.0), strict=True):
        ax.plot(table.share, table.accuracy.sel(p=p).mean("seed"), marker + "-", color=plots.SIGNAL, alpha=shade,
                label=f"machine, $p={p}$")
    told = known.accuracy.isel(features=0).mean("seed")
    ax.plot(known.share, told, "P--", color=plots.TEST, label="group known, $p=31$")
    ax.set(xlabel="share of the table $f$", ylabel="test accuracy", ylim=(-0.03, 1.03), xlim=(0, 0.75))
    ax.legend(fontsize=9, loc="center left")
    return fig


def still(share: float = 0.8, round: int = 4, p: int = 17, rounds: int = 15) -> Figure:
    """What the live figure shows when it opens, on a draw of the library's."""
    split = ModularTable(p, share).draw(0)
    found = list(recursion(p, split, rounds))
    fig, (left, right) = plots.panels(2)
    c, N = profile(found[round].metric), differences(split.train, p)
    c, N = ((part - part.mean()) / (part - part.mean()).abs().max() for part in (c, N))
    left.bar(np.arange(p), N, color=plots.TRAIN, alpha=0.55, label="counts of $a-b$")
    left.plot(np.arange(p), c, "o", color=plots.SIGNAL, label=f"profile of $C$, round {round}")
    left.set(xlabel="difference $a-b$", ylabel="less its mean, over the largest", ylim=(-1.15, 1.8), title="The metric")
    right.plot([float(now.accuracy) for now in found], color=plots.TEST, label="test accuracy")
    right.plot([float(progress(now.metric)) for now in found], color=plots.SIGNAL, ls="--", label="progress $R$")
    right.axvline(round, color=plots.TRAIN, lw=1)
    left.set_xticks(range(0, p, 3))
    right.set_xticks(range(0, rounds + 1, 3))
    right.set(xlabel="round", ylim=(-0.03, 1.03), title="The rounds")
    for ax in (left, right):
        ax.legend(fontsize=9, loc="upper right" if ax is left else "lower right")
    return fig
