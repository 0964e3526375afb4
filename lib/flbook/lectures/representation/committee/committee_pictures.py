"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.lectures.representation.committee import plateau
from flbook.plots.schematic import Schematic, box, op, out, strip

LOW = (5.2, 2.9)  # inches
MODEL = Schematic(
    "A committee of two that learns from a committee of two",
    [
        ("sample", {"x": strip("$x$", "fresh", "grey")}),
        ("neurons", {
            "n1": box(r"$g(\nu_1)$", holds="context", lane=-1.5), "n2": box(r"$g(\nu_2)$", holds="context", lane=-0.5),
            "l1": box(r"$g(\lambda_1)$", holds="signal", lane=0.5),
            "l2": box(r"$g(\lambda_2)$", holds="signal", lane=1.5),
        }),
        ("sums", {"y": op(r"$\Sigma$", "$y$", lane=-1, alt="y, the teachers' sum"),
                  "f": op(r"$\Sigma$", "$f(x)$", lane=1, alt="f(x), the students' sum")}),
        ("error", {"e": op("$-$", lane=0, alt="f(x) - y")}),
        ("step of students", {"w": out(r"$-\frac{\eta}{\sqrt{d}}\,g'(\lambda_i)\,e\,x$", lane=0,
                                       alt="minus eta over root d times slope times error times x")}),
    ],
    ["x >> n1 n2 l1 l2", "n1 n2 >> y", "l1 l2 >> f", "y f >> e", "e > w | $e$"],
    says="Teachers and students meet the same input; the difference of their sums moves the students.",
)  # fmt: skip


def opening(found: xr.Dataset) -> Figure:
    """The risk of all runs, and beside it the cosines of students and teachers in the first. found: one dimension d."""
    risk = found.risk.squeeze("d").transpose("alpha", "seed")
    fig, (left, right) = plots.panels(2)
    left.plot(risk.alpha, risk, color=plots.TEST, linewidth=0.9, alpha=0.8)
    left.axhline(plateau.linear(2), color=plots.THEORY, linestyle=":", linewidth=1.5)
    left.text(70, plateau.linear(2) * 1.2, "best linear model", va="bottom")
    left.set(yscale="log", ylim=(1e-5, 0.6), ylabel="risk ε", title="The risk stands still ...")

    one = found.isel(seed=0).squeeze("d")
    length = np.sqrt(np.einsum("tii->ti", one.Q))
    for i, (colour, dash) in enumerate(((plots.SIGNAL, "-"), (plots.NOISE, (0, (5, 2))))):
        for n, marker in enumerate("o^"):
            right.plot(one.alpha, one.R[:, i, n] / length[:, i], linestyle=dash, color=colour, linewidth=1.6,
                       marker=marker, markevery=14 + 2 * i, label=f"student {i + 1}, teacher {n + 1}")  # fmt: skip
    right.set(ylim=(-0.3, 1.05), ylabel="cosine", title="... until students part")
    for ax in (left, right):
        ax.set_xlabel("samples over dimension α = n/d")
    fig.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return fig


def heights(steps: Sequence[float], risks: Sequence[float], waiting: xr.DataArray) -> Figure:
    """Height of the plateau over the step size by the equations, its closed form, and SGD at step size 1/2."""
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(LOW)
    ax.plot(steps, risks, "--", color=plots.THEORY, label="equations")
    ax.plot(0, plateau.height(2), "*", color=plots.THEORY, markersize=12, label="small steps")
    ax.errorbar(0.5, waiting.mean(), 2 * waiting.std(ddof=1) / waiting.size**0.5, fmt="o", color=plots.TEST,
                markersize=7, label="SGD")  # fmt: skip
    ax.axhline(plateau.linear(2), color=plots.THEORY, linestyle=":", label="best linear model")
    ax.set(xlabel="step size η", ylabel="risk ε on the plateau", title="Hardly better than a linear model")
    fig.legend(loc="outside lower center", ncols=2)
    return fig


def alike(curves: Mapping[float, xr.Dataset], chosen: float, linear: float) -> Figure:
    """The risk of nearly alike students over alpha by the equations, for one difference at the start among others."""
    fig, ax = plt.subplots(figsize=(4.4, 2.8))
    for difference, curve in curves.items():
        strong = difference == chosen
        ax.plot(curve.alpha, curve.risk, "--" if strong else "-", color=plots.THEORY if strong else plots.TRAIN,
                linewidth=1.8 if strong else 0.7)  # fmt: skip
    ax.axhline(linear, color=plots.CHANCE, linestyle=":", linewidth=1.3)
    ax.set(yscale="log", xlim=(0, 480), ylim=(1e-4, 0.5), xlabel="samples over dimension α = n/d", ylabel="risk ε",
           title=f"Students that differ by {chosen:g}")  # fmt: skip
    return fig


def waits(longer: xr.DataArray, growth: float) -> Figure:
    """By how much the plateau is longer than in the first dimension, with the law. longer: over (seed, d)."""
    d, (mean, error) = longer.d, (longer.mean("seed"), longer.std("seed", ddof=1) / longer.sizes["seed"] ** 0.5)
    law = np.log(d / d[0]) / growth
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(LOW)
    ax.set_xscale("log")
    ax.plot(d, law / 2, "--", color=plots.THEORY, label="difference $d^{-1/2}$")
    ax.plot(d, law, "-.", color=plots.THEORY, linewidth=1.4, label="difference $1/d$")
    ax.errorbar(d, mean, 2 * error, fmt="o", color=plots.SIGNAL, markersize=7, label="SGD")
    ax.set(xlabel="dimension d", ylabel="samples over dimension,\nmore than at d = 64", ylim=(-10, 100),
           title="The wait grows by a logarithm")  # fmt: skip
    ax.set_xticks(d.to_numpy(), [f"{value:g}" for value in d.to_numpy()])
    ax.minorticks_off()
    fig.legend(loc="outside lower center", ncols=3)
    return fig
