"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Callable, Mapping

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import fits, plots
from flbook.plots.look import log_ticks
from flbook.plots.schematic import Schematic, curve, op, out, stack, strip

SIGNS = {"+": "+1", "-": "-1"}

MODEL = Schematic(
    "A two-layer convolutional network, both layers trained",
    [
        ("two patches", {"mu": strip(r"$y\mu$", "signal", "signal", alt="the signal, y times mu"),
                         "xi": strip(r"$\xi$", "noise", "noise", alt="the noise, xi")}),
        ("filters", {f"w{s}": stack(rf"$w_{{{j},r}}$", rf"$\sim\sigma_0$, label ${j}$", alt=f"those for the label {j}")
                     for s, j in SIGNS.items()}),
        ("activation", {f"s{s}": curve(r"$\sigma$", holds="relu", alt="ReLU") for s in SIGNS}),
        ("output weights", {f"v{s}": op(r"$\times$", rf"$v_{{{j},r}}$", holds="label",
                                        alt=f"those of the filters for {j}, which start at {s}v0")
                            for s, j in SIGNS.items()}),
        ("mean over $r$", {"sum": op(r"$\Sigma$", alt="of all filters")}),
        ("output", {"f": out(r"$f$", alt="f(w, v, x)")}),
    ],
    ["mu xi >> w+ w-", "w+ w- > s+ s- > v+ v-", "v+ v- > sum > f"],
    says="Every filter meets both patches; filters and output weights are trained.",
)  # fmt: skip


def apart_and_together(error: xr.DataArray, start: xr.DataArray, law: Callable, linear: float) -> Figure:
    """Test errors over output weights, one curve per size of the filters, and the same over the start.

    error: over (v_0, sigma_0, seed). start: s over (v_0, sigma_0). law: s to a test error. linear: error of averaging.
    """
    fig, (left, right) = plots.panels(2, sharey=True)
    names = {float(size): f"σ₀ = {power_of_ten(size)}" for size in error.sigma_0}
    looks = plots.looks(list(names.values()))
    for (size, name), ms in zip(names.items(), (13, 9, 5), strict=False):
        one, (colour, mark) = error.sel(sigma_0=size), looks[name]
        mean, bars = one.mean("seed"), one.quantile([0.1, 0.9], "seed")
        spread = np.abs(np.stack([mean - bars[0], bars[1] - mean]))
        left.errorbar(one.v_0, mean, spread, fmt=mark + "-", c=colour, ms=6, lw=1, label=name, mec="white")
        right.plot(start.sel(sigma_0=size), mean, mark, c=colour, ms=ms, mfc="none", mew=1.8)
    grid = np.geomspace(0.2, 8e4, 200)
    right.plot(grid, law(grid), "--", c=plots.THEORY, lw=1.5, label="closed form")
    for ax in (left, right):
        ax.axhline(linear, ls=":", c=plots.THEORY, lw=1.2, label="averaging" if ax is right else None)
        ax.set(xscale="log", ylabel="test error [fraction]")
        ax.legend(loc="upper left")
    left.set(xlabel="output weights at the start $v_0$", title="Large output weights do harm ...")
    right.set(xlabel=r"start $s = v_0\sigma_0\sigma_\xi d/\sqrt{n}$", title="... as much as filters that start larger")
    return fig


def power_of_ten(size: float) -> str:
    """A power of ten, or what is near one, for a label."""
    return rf"$10^{{{round(np.log10(float(size)))}}}$"


def answers(values: np.ndarray, width: float, title: str) -> Figure:
    """A histogram of y f(x) on new samples, in units of its mean in theory, with the closed form's normal density."""
    fig, (ax,) = plots.panels()
    bins = np.linspace(-4, 6, 81)
    ax.hist(values, bins, density=True, color=plots.TEST, alpha=0.75, label="right")
    ax.hist(values[values < 0], bins, color=plots.NOISE, label="wrong",
            weights=np.full((values < 0).sum(), 1 / len(values) / (bins[1] - bins[0])))  # fmt: skip
    ax.plot(bins, np.exp(-(((bins - 1) / width) ** 2) / 2) / width / np.sqrt(2 * np.pi), "--", c=plots.THEORY,
            label="closed form")  # fmt: skip
    ax.set(xlim=(-4, 6), ylim=(0, 2), xlabel="answer $y f(x)$ to a new sample, $A = 1$", ylabel="density", title=title)
    ax.legend(loc="upper right")
    return fig


def borders(found: Mapping[str, xr.DataArray], law: Callable, averaging: float) -> Figure:
    """Where the test error is 1/4, over the start, for several samples and dimensions.

    found: label -> r over s. law: s to r. averaging: r of the averaging classifier.
    """
    fig, (ax,) = plots.panels()
    looks = plots.looks(list(found))
    for (name, border), ms in zip(found.items(), (13, 9, 5), strict=True):
        colour, mark = looks[name]
        ax.loglog(border.s, border, mark, c=colour, ms=ms, mfc="none", mew=1.8, label=name)
    s = np.geomspace(3, 300, 100)
    ax.loglog(s, law(s), "--", c=plots.THEORY, label="closed form")
    ax.axhline(averaging, ls=":", c=plots.THEORY, lw=1.2, label="averaging classifier")
    ax.set(xlabel=r"start $s = v_0\sigma_0\sigma_\xi d/\sqrt{n}$", ylabel="$r$ where the test error is 1/4")
    ax.set_title("The border rises like the square of the start")
    log_ticks(ax)
    ax.legend()
    return fig


def usual(rows: Mapping[str, tuple[xr.DataArray, fits.Fit]]) -> Figure:
    """Signal strength at the border against the dimension. rows: label -> (|mu| over d, exponent)."""
    fig, (ax,) = plots.panels()
    looks = plots.looks(list(rows))
    for name, (border, slope) in rows.items():
        colour, mark = looks[name]
        line = float(border[0]) * (border.d / border.d[0]) ** slope.value
        ax.loglog(border.d, line, "-", c=colour, lw=1.2)
        ax.loglog(border.d, border, mark, c=colour, ms=8, mec="white", label=f"{name}: {slope.value:.3f}")
    ax.set(xlabel="patch dimension $d$", ylabel=r"$\|\mu\|$ where the test error is 1/4")
    ax.set_title(r"The usual start asks for $\sqrt{d}$")
    ax.legend(title="exponent in d")
    return fig


def layers(run: xr.Dataset, sizes: Mapping[str, float]) -> Figure:
    """Lengths of both layers over time for two sizes of the output weights; sizes: title -> v_0."""
    fig, axes = plots.panels(2, sharex=True, sharey=True)
    lines = {"filter": "filter |w|", "output": "output weight |v|"}
    lengths = run[list(lines)].sel(v_0=list(sizes.values())).to_array()
    axes[0].set_ylim(0.5 * float(lengths.min()), 2 * float(lengths.max()))  # before labels stand at the lines' ends
    for ax, (title, v_0) in zip(axes, sizes.items(), strict=True):
        plots.learning_curves(run.sel(v_0=v_0), lines, x="time", log="xy", title=title, ax=ax)
        ax.set(xlabel="learning time κt", ylabel="length")
    return fig
