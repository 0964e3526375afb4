"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.lectures.foundation_models.linear_attention_dimension.gaussian_tokens import GaussianTokens
from flbook.lectures.foundation_models.shared.degrees_of_freedom import features_needed
from flbook.plots.schematic import Schematic, box, op, out, strip

MODEL = Schematic(
    "Linear attention of one head",
    [
        ("tokens", {"x": strip(r"$x$", "query", "context", lane=-1.2), "y": strip(r"$y_i$", "key", "signal", lane=0),
                    "v": strip(r"$v_i$", "value", "grey", lane=1.2)}),
        ("features", {"fx": box(r"$\phi(x)$", holds="context", lane=-1.2),
                      "fy": box(r"$\phi(y_i)$", holds="signal", lane=0)}),
        ("running sums", {"s": op(r"$\Sigma$", r"$\Sigma_i\,\phi(y_i)$", lane=0, alt="the sum of the keys' features"),
                          "S": op(r"$\Sigma$", r"$\Sigma_i\,\phi(y_i)v_i^\top$", lane=1.2,
                                  alt="the sum of the keys' features times the values")}),
        ("ratio", {"over": op(r"$\div$", lane=-0.6,
                             alt="the query's features times both sums, one divided by the other")}),
        ("output", {"o": out(r"$o(x)$", lane=-0.6)}),
    ],
    ["x > fx", "y > fy > s", "fy > S", "v > S", "fx > over", "s > over", "S > over", "over > o"],
    says="The two sums are all that is kept of earlier tokens.",
)  # fmt: skip
PAINT = dict(zip(("plain", "optimal", "wide", "orthogonal"), plots.look.OTHERS, strict=True))
MARKS = {"plain": "^", "orthogonal": "v", "wide": "s", "optimal": "o"}


def against_degrees(found: xr.Dataset, most: int) -> Figure:
    """Features needed against degrees of freedom; cells where most of the draws needed more than were tried on top."""
    fig, (ax,) = plots.panels(1)
    degrees = found.degrees.values.ravel()
    for law, shift in (("plain", 0.97), ("wide", 1.03), ("optimal", 1.0)):
        needed = found.needed.sel(law=law).values.reshape(len(degrees), -1)
        low, middle, high = np.quantile(np.where(np.isinf(needed), 2 * most, needed), [0.1, 0.5, 0.9], axis=1)
        beyond = middle > most
        middle, high = np.minimum(middle, 1.4 * most), np.minimum(high, 1.4 * most)
        ax.vlines(degrees * shift, np.minimum(low, 1.4 * most), high, color=PAINT[law], alpha=0.6, linewidth=1.4)
        ax.plot(degrees * shift, middle, MARKS[law], color=PAINT[law], markeredgecolor="white", label=law, zorder=3)
        for x in degrees[beyond] * shift:
            ax.annotate("", (x, 2.6 * most), (x, 1.5 * most), arrowprops={"arrowstyle": "->", "color": PAINT[law]})
    line = np.geomspace(2.6, 70, 40)
    ax.plot(line, [features_needed(n) for n in line], "k--", label="enough: 5 N log(160 N)")
    ax.plot(line, line, "k:", label="M = N")
    ax.set(xscale="log", yscale="log", xlabel=r"degrees of freedom $N_\lambda$", ylabel="features needed M",
           title="Degrees of freedom set the number", ylim=(1.5, 3.2 * most))  # fmt: skip
    plots.look.log_ticks(ax)
    ax.legend(fontsize=8, ncol=2, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    return fig


def two_errors(counts: Sequence[int], kernel: Mapping[str, np.ndarray], rates: Mapping[str, float],
               attention: Mapping[str, np.ndarray], sizes: Sequence[int], context: float) -> Figure:
    """Error of the kernel (a row a seed) and of attention's outputs (a row a seed) against the number of features."""
    fig, (left, right) = plots.panels(2)
    for law, errors in kernel.items():
        _medians(left, counts, errors, law)
        slope = np.asarray(counts, float) ** rates[law]
        left.plot(counts, np.median(errors[:, -1]) * slope / slope[-1], "k--", linewidth=1.2)
        place, side, shift = (3, "left", 1.15) if law == "plain" else (2, "right", 0.72)  # beside its line
        at = (counts[place], np.median(errors[:, place]) * shift)
        left.annotate(f"slope −{-rates[law]:g}", at, fontsize=9, ha=side)
    left.set(title="Plain features hardly improve", ylabel=r"error of the kernel in $L^2$")
    for law, errors in attention.items():
        _medians(right, sizes, errors, law)
    right.axhline(context, color="black", linestyle=":", label="no context: mean of the values")
    right.set(title="Wide features serve attention best", ylabel="squared error of outputs [fraction]")
    for ax in (left, right):
        ax.set(xscale="log", yscale="log", xlabel="features M")
        plots.look.log_ticks(ax)
        ax.legend(fontsize=8, loc="lower left")
    return fig


def over_level(levels: Sequence[float], measured: Mapping[int, np.ndarray], theory: Mapping[int, np.ndarray]) -> Figure:
    """Error of attention with optimal features over that with wide ones, by the level; a row of `measured` a seed."""
    fig, (ax,) = plots.panels(1)
    for (d, ratios), colour in zip(measured.items(), ("#440154", "#20854E"), strict=False):
        mean, error = ratios.mean(0), ratios.std(0, ddof=1) / len(ratios) ** 0.5
        ax.errorbar(np.asarray(levels) * 1.05 ** (d - 3), mean, 2 * error, color=colour, linestyle="", label=f"d = {d}",
                    marker="o" if d == 2 else "s")
        ax.plot(levels, theory[d], color="black", linestyle="--" if d == 2 else "-.", linewidth=1.3,
                label=f"mean squares of the kernel, d = {d}")
    ax.axhline(1, color="black", linestyle=":", label="wide features")
    ax.set(xscale="log", yscale="log", xlabel=r"level $\lambda$ [1]", ylabel="error, optimal over wide [1]",
           title="The finer the level, the worse for attention")
    plots.look.log_ticks(ax)
    ax.legend(fontsize=8, loc="upper right")
    return fig


def _medians(ax, x: Sequence[int], errors: np.ndarray, law: str) -> None:
    low, middle, high = np.quantile(errors, [0.1, 0.5, 0.9], axis=0)
    ax.vlines(x, low, high, color=PAINT[law], alpha=0.6, linewidth=1.4)
    ax.plot(x, middle, MARKS[law], color=PAINT[law], markeredgecolor="white", linestyle="-", linewidth=1, label=law)


def densities(tokens: GaussianTokens, lam: float) -> Figure:
    """Densities of a feature's length in the plane: plain, wide and optimal."""
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(5.2, 2.6)
    r = np.linspace(0, 7, 200)
    z = np.stack([r, 0 * r], 1)
    plain = r * np.exp(-(r**2) / 2)
    for law, dash in (("plain", ":"), ("wide", "--"), ("optimal", "-")):
        ax.plot(r, plain * tokens.density(z, law, lam), dash, color=PAINT[law], label=law)
    ax.set(xlabel=r"length $\|z\|$ of a feature", ylabel="density", ylim=(0, 0.65),
           title=rf"$\lambda = 2^{{{round(np.log2(lam))}}}$: $N_\lambda$ = {tokens.degrees(lam):.1f}")  # fmt: skip
    ax.legend(fontsize=9)
    return fig
