"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.lectures.in_context_learning.low_dimensional_targets import alignment as theory
from flbook.lectures.in_context_learning.low_dimensional_targets import step_noise
from flbook.plots.schematic import Schematic, box, op, out, stack, strip

MODEL = Schematic(
    "Linear attention on neurons",
    [
        ("prompt", {
            "x": strip("$x_i$", "examples", "signal*1 grey*4", lane=-1, alt="inputs x i, whose first part lies in S"),
            "q": strip("$x_q$", "query", "signal*1 grey*4", lane=0, alt="the query x q"),
            "y": strip("$y_i$", "labels", "label*1", lane=1, alt="labels y i of the examples"),
        }),
        ("neurons", {"phi": stack(r"$W$", "one step", lane=-0.5, alt="ReLU neurons with weights W")}),
        ("match", {"g": box(r"$\Gamma$", "ridge", holds="context", lane=-0.5, alt="attention Gamma")}),
        ("answer", {"m": op(r"$\times$", "mean", lane=0, alt="of labels times matches, averaged")}),
        ("output", {"f": out("$f$", lane=0, alt="the prediction f")}),
    ],
    ["x q >> phi", "phi > g > m", "y > m > f"],
    says="Pretraining sets W by one gradient step and Gamma by ridge regression; a prompt changes neither.",
)  # fmt: skip
_LOOKS = {
    "pretrained attention": ("#00707A", "v", "-"),
    "phase retrieval (told the link)": ("#B35900", "s", "-"),
    "least squares (told the features)": ("#7A4B9A", "H", "-"),
    "Bayes (told link and subspace)": ("#000000", "_", "-"),
    "kernel ridge (told nothing)": ("#8B4513", "X", "-"),
}


@plots.look.styled
def risks(attention: xr.DataArray, rivals: Mapping[str, xr.DataArray], d: int) -> Figure:
    """Risk over the examples of a prompt at one d: attention and all that see the prompt alone; bands over seeds."""
    fig, (ax,) = plots.panels()
    for name, curve in {"pretrained attention": attention, **rivals}.items():
        colour, marker, style = _LOOKS[name]
        mean = np.maximum(curve.mean("seed"), 2.2e-3)  # exact answers stand on the axis
        low, high = np.maximum(curve.quantile([0.1, 0.9], "seed"), 2.2e-3)
        ax.fill_between(curve.context, low, high, color=colour, alpha=0.15, lw=0)
        ax.plot(curve.context, mean, style, marker=marker, color=colour, ms=6, mec="white", mew=0.5, label=name)
    ax.axhline(1, color=plots.CHANCE, ls=":")
    ax.set(xscale="log", yscale="log", ylim=(2e-3, 3), xlim=(3.6, 290))
    ax.set(xlabel="examples in the prompt $n^*$", ylabel="risk $R$")
    ax.set_title(f"Inputs of {d} dimensions")
    plots.log_ticks(ax)
    fig.legend(loc="outside lower center", ncols=2, fontsize=9)
    return fig


@plots.look.styled
def lengths(in_d: Mapping[str, xr.DataArray], in_r: xr.DataArray, level: float) -> Figure:
    """Examples that a risk takes: (a) over d, for several models; (b) over r, and the least for attention."""
    fig, (ax, other) = plots.panels(2)
    for name, one in in_d.items():
        colour, marker, _ = _LOOKS[name]
        ax.loglog(one.d, one, marker + "-", color=colour, mec="white", ms=7, lw=1.2, label=name)
    ax.set(xlabel="input dimension $d$", ylabel=f"examples $n^*$ for $R = {level:g}$", ylim=(6, 200))
    ax.set_title("Who is not pretrained pays for d")
    ax.legend(fontsize=9, loc="upper left")
    grid = np.geomspace(2, in_r.r.values[-1], 40)
    least = [least_length(r, level) for r in grid]
    other.loglog(grid, least, "--", color=plots.THEORY, lw=1.2, label="least for attention")
    other.loglog(grid, grid, ":", color=plots.CHANCE, label="unknowns of the prompt, $r$")
    other.loglog(in_r.r, in_r, "v", color="#00707A", mec="white", ms=8, label="attention, $24r^2$ neurons")
    other.set(xlabel="dimension of the subspace $r$", ylabel=f"examples $n^*$ for $R = {level:g}$")
    other.set_title("Attention pays r squared")
    other.legend(fontsize=9, loc="upper left")
    for one in (ax, other):
        plots.log_ticks(one)
    return fig


def least_length(r: float, level: float, line: float = 0.0) -> float:
    """The n at which the least risk of attention takes a level."""
    n = np.geomspace(1, 4000, 400)
    return float(np.exp(np.interp(-level, -theory.floor(n, r, line, nodes=4000), np.log(n))))


@plots.look.styled
def transformer(trained: xr.DataArray, solvers: xr.DataArray) -> Figure:
    """Risk of trained transformers over the examples of a prompt, at two r, between three rules that bracket it.

    `trained` has the dimensions (d, r, seed, context), `solvers` (unknowns, rule, context), with the best choices.
    """
    fig, panels = plots.panels(2, sharey=True)
    line, n = 0.5**0.5, np.arange(1, 65)
    for r, ax in zip(trained.r.values, panels, strict=True):
        ax.plot(n, theory.floor(n, float(r), line), "--", color=plots.THEORY, lw=1.4, label="least, linear in labels")
        for d, marker in zip(trained.d.values, "vo", strict=True):
            one = trained.sel(r=r, d=d, context=[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64])
            ax.plot(one.context, one.mean("seed"), marker + "-", color="#00707A", mfc="white" if d == 16 else None,
                    mec="#00707A", ms=6, label=f"transformer, $d = {d}$")
        for unknowns, name in ((64, "phase retrieval (told the link)"), (int(r), "Bayes (told link and subspace)")):
            colour, marker, _ = _LOOKS[name]
            one = solvers.sel(rule="told the link", unknowns=unknowns)
            ax.plot(one.context, np.maximum(one, 2.2e-3), marker + "-", color=colour, ms=6, mec="white", mew=0.5,
                    label="told link and subspace" if unknowns == r else "told the link, $d = 64$")
        ax.axhline(1, color=plots.CHANCE, ls=":")
        ax.set(xscale="log", yscale="log", ylim=(2e-3, 3), xlim=(0.9, 140), xlabel="examples in the prompt $n^*$")
        ax.set_title(f"Subspace of {r} dimensions")
        plots.log_ticks(ax)
    panels[0].set(ylabel="risk $R$")
    fig.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=9)
    return fig


@plots.look.styled
def prompts(measured: xr.DataArray) -> Figure:
    """Examples of pretraining in all at which a step's signal is its noise, over d; measured for h2 and n = d^2."""
    fig, (ax,) = plots.panels()
    d = np.geomspace(8, 512, 40)
    cases = (
        (2, "$h_2$, $n = d^2$", plots.SIGNAL, "--", lambda d: d**2),
        (2, "$h_2$, $n = d$", plots.TEST, "-.", lambda d: d),
        (4, "$h_4$, $n = d^4$", plots.NOISE, (0, (5, 1)), lambda d: d**4),
    )
    for degree, name, colour, style, law in cases:
        total = law(d) * step_noise.prompts_needed(d, law(d), degree=degree)
        ax.loglog(d, total / d ** (2 * degree), ls=style, color=colour, lw=1.6, label=name)
    ax.loglog(d, d / 8, ":", color=plots.CHANCE, label="slope of $d^{2Q+1}$")
    both = measured.transpose("d", "seed") / measured.d**2  # times n = d^2, over d^4
    error = 2 * both.std("seed", ddof=1) / both.sizes["seed"] ** 0.5
    ax.errorbar(measured.d, both.mean("seed"), error, fmt="o", color=plots.SIGNAL, mec="white", ms=7, lw=1.4)
    ax.set(xlabel="input dimension $d$", ylabel="examples in all $T_c\\,n / d^{2Q}$", ylim=(8e-3, 300))
    ax.set_title("The step needs no more than $d^4$ examples")
    fig.legend(loc="outside lower center", ncols=2, fontsize=9)
    return fig
