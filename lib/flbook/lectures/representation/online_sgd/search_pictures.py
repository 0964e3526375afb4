"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.fits import Fit
from flbook.lectures.representation.online_sgd import equation, experiment
from flbook.plots.schematic import Schematic, box, op, out, strip

LOW = (5.2, 2.9)  # inches: a page has five figures
LINKS = {1: "h₁", 2: "h₂", 3: "h₃"}
MODEL = Schematic(
    "One neuron that looks for a hidden direction",
    [
        ("sample", {"x": strip("$x$", "fresh", "grey")}),
        ("inputs", {"z": box(r"$z=\langle\beta,x\rangle$", holds="context", alt="z, the input along beta"),
                    "a": box(r"$a=\langle w,x\rangle$", holds="signal", alt="a, the input along w")}),
        ("link, slope", {"h": box("$y=h_k(z)$", alt="y, the link of z"), "s": box("$h_k'(a)$", alt="its slope at a")}),
        ("factor", {"g": op(r"$\times$", alt="label times slope, g")}),
        ("step of w", {"w": out(r"$\frac{\eta}{d}\,g_t\,x_\perp$", alt="eta over d times g times x across w")}),
    ],
    ["x >> z a", "z > h", "a > s", "h > g", "s > g", "g > w | $g_t$"],
    says="The label times the slope at the neuron's input is the factor of the step along the sample; then the weights "
    "return to length one.",
)  # fmt: skip


def opening(found: xr.Dataset) -> Figure:
    """Twelve runs at one dimension and their equation, where no script runs. found: of the preset `opening`."""
    paths = np.abs(found.overlap.squeeze()).transpose("time", "seed")
    d = found.d.item()
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(LOW)
    ax.plot(paths.time * d, paths, color=plots.SIGNAL, linewidth=0.9, alpha=0.7)
    ax.plot(paths.time * d, equation(experiment.setting("opening")).squeeze(), "--", color=plots.THEORY)
    ax.axhline(0.5, color=plots.CHANCE, linestyle=":", linewidth=1.3)
    ax.set(xlabel="samples n", ylabel="overlap |m|", ylim=(0, 0.85), title=f"Twelve searches on $h_2$, d = {d}")
    return fig


def sizes(found: xr.Dataset) -> Figure:
    """The size of the overlap over time at each dimension: means over the runs, which may end at either sign."""
    size = np.abs(found.overlap).assign_attrs(long_name="overlap |m| with β", units="1")
    return plots.overview(size.to_dataset())


def mean_square(square: xr.DataArray, formula: xr.DataArray, drift_alone: xr.DataArray) -> Figure:
    """The mean of m^2 over the runs, the closed form, and the closed form without random steps, over n/d."""
    mean, error = square.mean("seed"), square.std("seed", ddof=1) / square.sizes["seed"] ** 0.5
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(LOW)
    ax.set_yscale("log")
    ax.plot(formula.time, formula, "--", color=plots.THEORY, label="formula (a)")
    ax.plot(drift_alone.time, drift_alone, "-.", color=plots.THEORY, linewidth=1.4, label="drift alone")
    few = slice(None, None, 5)
    ax.errorbar(mean.time[few], mean[few], 2 * error[few], fmt="o", color=plots.SIGNAL, markersize=6, label="SGD")
    ax.set(xlabel="samples over dimension n/d", ylabel="mean of $m^2$", title="Random steps make overlap, too")
    fig.legend(loc="outside lower center", ncols=3)
    plots.log_ticks(ax)
    return fig


def waits(found: xr.DataArray, law: xr.DataArray) -> Figure:
    """Samples per dimension of the search over the dimension, and the equation's. found: over (d, seed)."""
    found = found.assign_attrs(long_name="samples per dimension n/d", units="1")
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(LOW)
    return plots.series({"SGD": found}, "d", paint={"SGD": plots.SIGNAL}, lines={"equation": (law.d, law)}, log="x",
                        ylim=(0, 8), title="The wait grows by a logarithm", ax=ax)  # fmt: skip


def speeds(found: Mapping[int, xr.DataArray], fitted: Mapping[int, Fit]) -> Figure:
    """Speed 1/n of the search over the dimension for the links h_k, by k, with their exponents."""
    laws = {LINKS[k]: (da.assign_attrs(long_name="speed of the search 1/n", units="1"), fitted[k])
            for k, da in found.items()}  # fmt: skip
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(LOW)
    plots.exponents(laws, "d", {"h₁": -1.0, "h₃": -2.0}, title="A flatter start, a longer search", ax=ax)
    for name, (colour, _) in plots.looks(list(laws)).items():  # the labels at the right are far from the first dots
        da = laws[name][0].isel(d=0)
        ax.annotate(name, (da.d.item(), da.mean().item()), xytext=(6, 5), textcoords="offset points", color=colour)
    return fig


def looks(once: xr.Dataset, twice: xr.Dataset, law: xr.DataArray, gated: xr.DataArray, d: int = 400) -> Figure:
    """Overlap over n/d with one and two looks at each sample, at one dimension."""
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(LOW)
    for name, found, colour, marker in (("two looks", twice, plots.SIGNAL, "^"), ("one look", once, plots.NOISE, "s")):
        m = found.overlap.sel(d=d).squeeze("link")
        ax.errorbar(m.time, m.mean("seed"), m.std("seed"), fmt=marker, color=colour, markersize=5, label=name)
    ax.plot(law.time, law.sel(d=d).squeeze("link"), "--", color=plots.THEORY, label="equation")
    ax.plot(gated.time, gated, "-.", color=plots.THEORY, label="average, best gate")
    ax.set(xlabel="samples over dimension n/d", ylabel="overlap m", ylim=(-0.1, 1), title="A second look finds $h_3$")
    fig.legend(loc="outside lower center", ncols=2)
    return fig
