"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.plots.schematic import Schematic, curve, op, out, stack, strip

MODEL = Schematic(
    "Mixup, and a two-layer network of squares",
    [
        ("two samples", {"i": strip(r"$x_i$", "common feature", "signal+noise"),
                         "j": strip(r"$x_j$", "rare feature", "context+noise")}),
        ("blend", {"+": op("$+$")}),
        ("filters", {"w+": stack(r"$w_{+,r}$", "for label $+1$"), "w-": stack(r"$w_{-,r}$", "for label $-1$")}),
        ("squares", {sign: curve(r"$z^2$", holds="square", alt="the square") for sign in ("s+", "s-")}),
        ("difference", {"minus": op("$-$")}),
        ("output", {"f": out(r"$f(\tilde x_{ij})$", alt="the difference of the two means")}),
    ],
    ["i > + | $\\lambda_x$", "j > + | $1-\\lambda_x$", "+ >> w+ w-", "w+ w- > s+ s-", "s+ s- > minus > f"],
    says="Both patches of the two samples are blended alike.",
)

SHORT = {"standard": "standard", "balanced": "rare × 9", "labels": "labels only", "inputs": "inputs only",
         "mixup": "Mixup", "early": "stopped early"}  # fmt: skip
_ALL = dict(zip(SHORT, ("#5F6B76", plots.NOISE, "#8C6D00", "#A3447A", plots.SIGNAL, plots.TEST), strict=True))
PAINT = {SHORT[rule]: colour for rule, colour in _ALL.items()}
DASHES = {"standard": "-", "balanced": "--", "labels": "--", "inputs": "-.", "mixup": "-", "early": "--"}


def over_training(ax, ds: xr.DataArray, rules: Sequence[str], title: str, ylabel: str, log: str = "") -> None:
    """One line for each rule, the mean over the seeds, with a band that holds 80 % of them."""
    ends = []
    for rule in rules:
        one = ds.sel(rule=rule)
        low, high = one.quantile([0.1, 0.9], "seed").values
        mean = one.mean("seed")
        ax.fill_between(one.step, low, high, color=_ALL[rule], alpha=0.2, linewidth=0)
        ax.plot(one.step, mean, color=_ALL[rule], linestyle=DASHES[rule], linewidth=1.8)
        ends.append((float(mean[-1]), SHORT[rule], _ALL[rule]))
    if "y" in log:
        ax.set_yscale("log")
    ax.set(xlabel="step t", ylabel=ylabel, title=title)
    plots.look.direct_labels(ax, ends)


def race(course: xr.Dataset, rules: Sequence[str]) -> Figure:
    """Test error on samples with the rare feature, and the output on that feature, over training."""
    fig, (left, right) = plots.panels(2)
    over_training(left, course.rare_error, rules, "Errors on rare samples", "test error [fraction]")
    left.axhline(0.5, color=plots.CHANCE, linestyle=":", linewidth=1.3)
    over_training(right, course.rare_output, rules, "The rare feature learned", "output on the rare feature", "y")
    right.set_ylim(bottom=3e-6)
    return fig


def halves(course: xr.Dataset, rules: Sequence[str]) -> Figure:
    """Test error on samples with the rare feature over training, where only labels or only inputs are blended."""
    fig, (ax,) = plots.panels(1)
    over_training(ax, course.rare_error, rules, "Half of Mixup is not enough", "test error, rare [fraction]")
    ax.axhline(0.5, color=plots.CHANCE, linestyle=":", linewidth=1.3)
    return fig


def growth(found: xr.Dataset, lines: Mapping, ratios: tuple) -> Figure:
    """Growth of the rare response in a step, and its ratio to the common one, against the share of rare samples.

    lines: label -> (shares, growths). ratios: (shares, ratios) of theory.
    """
    fig, (left, right) = plots.panels(2)
    measured = {SHORT[rule]: found.rare.sel(rule=rule) for rule in found.rule.values}
    plots.series(measured, "share", paint=PAINT, lines=lines, title="Growth of the rare response", ax=left)
    left.set_ylabel("growth of $\\log|a_u|$ in a step")
    ratio = {"Mixup": found.ratio.sel(rule="mixup")}
    plots.series(ratio, "share", paint=PAINT, lines={"theory": ratios}, title="Rare over common", legend=False,
                 ax=right)
    right.set_ylabel("$a_u/a_v$")
    return fig


def borders(error: xr.DataArray, crossings: Mapping[str, xr.DataArray]) -> Figure:
    """Errors on rare samples over the noise, and the noise where they pass 1/4 over the share of rare samples."""
    fig, (left, right) = plots.panels(2)
    few = {SHORT[rule]: error.sel(rule=rule) for rule in crossings}
    plots.series(few, "noise_square", paint=PAINT, joined=True, log="x",
                 title=f"Rare share ρ = {float(error.share):g}", legend=False, ax=left)
    named = {SHORT[rule]: border for rule, border in crossings.items()}
    shares = np.array([0.02, 0.4])
    few_noise = float(crossings["standard"][0])
    plots.series(named, "share", paint=PAINT, joined=True, title="The noise that hides it",
                 lines={"∝ ρ": (shares[:1].repeat(2) * [1, 12], few_noise * np.array([1, 12]))}, legend=False, ax=right)
    plots.shared_legend((right,))
    right.set_ylabel("noise S at a test error of 1/4")
    return fig
