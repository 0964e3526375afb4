"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.lectures.in_context_learning.bayes_gap import posterior as theory
from flbook.plots.look import log_ticks
from flbook.plots.schematic import Schematic, box, curve, op, out, stack, strip

MODEL = Schematic(
    "Uniform attention on labels",
    [
        ("prompt", {
            "a": strip("$y_1$", "a label", "label*1", alt="the label y 1"),
            "b": strip("$y_2$", "", "label*1", alt="the label y 2"),
            "c": strip("$y_k$", "the last", "label*1", alt="the label y k, the last"),
        }),
        ("feature", {
            "fa": stack(r"$\phi$", holds="context", alt="of y 1: in which of m cells it lies"),
            "fb": stack(r"$\phi$", holds="context", alt="of y 2"),
            "fc": stack(r"$\phi$", holds="context", alt="of y k"),
        }),
        ("mean", {"h": box("$h$", "a histogram", holds="context", lane=0, alt="of the features, a histogram h")}),
        ("decoder", {
            "w": op(r"$\omega$", "trained", lane=0, alt="weights omega, trained, times k"),
        }),
        ("link", {"t": curve(r"$\tanh$", "", "tanh", lane=0, alt="tanh")}),
        ("answer", {"M": out(r"$M$", lane=0, alt="the prediction M")}),
    ],
    ["a b c > fa fb fc", "fa fb fc >> h", "h > w | $k$", "w > t > M"],
    says="Only the weights are trained; the decoder is told how many labels the mean is over.",
)  # fmt: skip
_PARTS = {
    "variance": ("posterior variance", plots.NOISE, "s"),
    "features": ("gap of the features", plots.TEST, "^"),
    "estimation": ("gap of pretraining", plots.SIGNAL, "o"),
}


@plots.look.styled
def parts(found: xr.Dataset) -> Figure:
    """The three parts of the risk over the labels of a prompt, and their closed forms. found: of one m and one N."""
    fig, (ax,) = plots.panels()
    k, m = found.k.to_numpy(), int(found.m)
    lines = {"variance": theory.doubt(k), "features": theory.feature_gap(k, m)}
    lines["estimation"] = found.expected.mean("seed").to_numpy()
    for name, (label, colour, marker) in _PARTS.items():
        ax.plot(k, lines[name], "--", color=plots.THEORY, lw=1.2)
        ax.plot(k, found[name].mean("seed"), marker, color=colour, mec="white", ms=7, label=label)
    ax.set(yscale="log", ylim=(1e-4, 1.2), xlabel="labels in the prompt $k$", ylabel="part of the risk")
    ax.set_title(f"After {int(found.N)} pretraining prompts")
    fig.legend(loc="outside lower center", ncols=3, fontsize=9)
    return fig


@plots.look.styled
def rates(solved: xr.Dataset, many: xr.Dataset, trained: xr.Dataset) -> Figure:
    """Gaps over N: (a) at the empirical minimum, for two numbers of cells; (b) of networks, and with fresh prompts."""
    fig, (ax, other) = plots.panels(2, sharex=True, sharey=True)
    for m, (colour, marker) in {10: (plots.SIGNAL, "o"), 4: (plots.look.OTHERS[0], "v")}.items():
        one = solved.sel(m=m).mean(("k", "seed"))
        ax.loglog(one.N, one.expected, "--", color=plots.THEORY, lw=1.2)
        ax.loglog(one.N, one.estimation, marker, color=colour, mec="white", ms=7, label=f"least squares, m = {m}")
    one, more = solved.sel(m=10).mean(("k", "seed")), many.sel(m=10).mean(("k", "seed"))
    ax.loglog(more.N, more.expected, "--", color=plots.THEORY, lw=1.2)
    ax.loglog(more.N, more.estimation, "o", color=plots.SIGNAL, mec="white", ms=7)
    both = xr.concat([one.by_likelihood, more.by_likelihood], "N").sortby("N")
    ax.loglog(both.N, both, "D-", color=plots.TEST, mec="white", ms=6, lw=1, label="likelihood, m = 10")
    ax.set(ylabel="Bayes gap", ylim=(8e-6, 2))
    ax.set_title("Solved: the gap falls like 1/N")
    ax.legend(fontsize=9, loc="lower left")
    for steps, (colour, marker) in zip(trained.steps.values, ((plots.NOISE, "s"), ("#332288", "p")), strict=True):
        gap = trained.gap.sel(steps=steps).mean("seed")
        finite = gap.sel(N=gap.N > 0)
        other.loglog(finite.N, finite, marker + "-", color=colour, mec="white", ms=7, lw=1, label=f"{steps} steps")
        other.axhline(float(gap.sel(N=0)), color=colour, ls=":", lw=1.4)
    other.set(xlabel="pretraining prompts $N$", ylabel="Bayes gap")
    other.set_title("Trained by gradient steps: a floor")
    other.legend(fontsize=9, loc="lower left", title="network")
    log_ticks(other)
    return fig


@plots.look.styled
def cells(found: xr.Dataset) -> Figure:
    """Bayes gap over the number of cells, a colour for each N; closed forms dashed. found: the book's run."""
    fig, (ax,) = plots.panels()
    k, fine = found.k.to_numpy(), np.array([4, 6, 10, 18])
    own = np.array([theory.feature_gap(k, m).mean() for m in fine])
    ax.loglog(fine, own, ":", color=plots.THEORY, lw=1.5, label="features alone")
    shades = zip(plots.look.SHADES(np.linspace(0, 1, found.N.size)), "osD^", strict=True)
    for N, (colour, marker) in zip(found.N.values, shades, strict=True):
        one = found.sel(N=N).mean(("k", "seed"))
        ax.loglog(fine, own + one.expected, "--", color=plots.THEORY, lw=1)
        ax.loglog(one.m, one.features + one.estimation, marker, color=colour, mec="white", ms=7, label=f"N = {N}")
    ax.set(xlabel="cells $m$", ylabel="Bayes gap", ylim=(1.5e-4, 0.5), xticks=fine, xticklabels=fine)
    ax.minorticks_off()
    ax.set_title("More data, more features")
    fig.legend(loc="outside lower center", ncols=3, fontsize=9)
    return fig


@plots.look.styled
def doubts(measured: xr.DataArray, lines: Mapping[str, np.ndarray], k: np.ndarray) -> Figure:
    """Posterior variance over the labels of a prompt, measured, and lines over k."""
    fig, (ax,) = plots.panels()
    for style, (name, line) in zip(("-", "--", ":", "-."), lines.items(), strict=False):
        ax.semilogy(k, line, style, color=plots.THEORY, lw=1.4, label=name)
    ax.semilogy(measured.k, measured, "o", color=plots.NOISE, mec="white", ms=6, label="measured")
    ax.set(xlabel="labels in the prompt $k$", ylabel="posterior variance", ylim=(1e-6, 1.5), xlim=(0, k[-1]))
    ax.set_title("The doubt dies exponentially")
    ax.legend(loc="lower left", fontsize=9)
    return fig
