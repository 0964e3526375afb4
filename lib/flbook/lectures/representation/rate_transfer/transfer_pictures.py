"""Pictures of this lecture: what a page should not have to spell out."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flbook import plots
from flbook.plots.schematic import Schematic, op, out, stack, strip

PAINT = {"standard": plots.NOISE, "neural tangent": "#AA3377", "maximal update": "#3F6F21"}
MARKERS = {"standard": "s", "neural tangent": "^", "maximal update": "P"}
SERIES = {"standard": "standard", "neural tangent": "tangent", "maximal update": "maximal"}
MODEL = Schematic(
    "A linear network of two layers with an output scale",
    [
        ("input", {"x": strip("$x$", "$d$ coordinates", "signal*4", alt="the input, d coordinates")}),
        ("neurons", {"u": stack("$u_i$", "trained", alt="N neurons, trained")}),
        ("output weights", {"v": strip("$v_i$", "trained", "label*2 -label*2", alt="output weights, trained")}),
        ("sum", {"sum": op(r"$\Sigma$")}),
        ("scale", {"c": op(r"$\times$", r"$1/(\gamma N)$", alt="times one over gamma N")}),
        ("output", {"f": out("$f(x)$", alt="the scaled sum")}),
    ],
    ["x > u > v > sum > c > f"],
    says="Both layers are trained; the number gamma says how far they have to move.",
)  # fmt: skip


@plots.look.styled
def digits(best: xr.DataArray, lowest: xr.DataArray) -> Figure:
    """Best rate, and loss at that rate, of three parametrisations over the width."""
    fig, (left, right) = plots.panels(2)
    widths = best.width.to_numpy().astype(float)
    for name, series in SERIES.items():
        _dots(left, best.sel(series=series), name)
        _dots(right, lowest.sel(series=series), name)
    top = float(np.exp(np.log(best.sel(series="standard", width=64)).mean()))
    left.plot(widths, top * widths[0] / widths, "--", color=plots.THEORY, label="1/N")
    left.set(yscale="log", title="Two of three rates stay", ylabel="best rate η*")
    right.set(yscale="log", title="Loss at the best rate", ylabel="training loss at it")
    _finish(fig, (left, right), widths)
    return fig


@plots.look.styled
def growth(change: xr.DataArray, law: xr.DataArray, rise: xr.DataArray) -> Figure:
    """By how much the kernel of linear networks grows over the width, and the sharpness of networks on digits."""
    fig, (left, right) = plots.panels(2)
    for name, k in (("neural tangent", 0.0), ("between", 0.25), ("maximal update", 0.5)):
        _dots(left, change.sel(k=k), name)
        left.plot(law.width, law.sel(k=k), "--", color=plots.THEORY, label="theory" if k == 0.0 else None)
    for name in ("neural tangent", "maximal update"):
        _dots(right, rise.sel(series=SERIES[name]), name)
    left.set(yscale="log", title="Kernel, linear network", ylabel="share by which it grows")
    right.set(yscale="log", title="Sharpness, digits", ylabel="share by which it grows")
    _finish(fig, (left, right), rise.width.to_numpy().astype(float))
    left.set_xticks([64, 1024, 16384], ["64", "1024", "16384"])
    return fig


@plots.look.styled
def sharpness(found: xr.Dataset) -> Figure:
    """Sharpness of networks on digits along training: one line a width."""
    fig, panels = plots.panels(2, sharey=True)
    shades = plots.look.SHADES(np.linspace(0, 1, found.sizes["width"]))
    for ax, name in zip(panels, ("maximal update", "neural tangent"), strict=True):
        for colour, width in zip(shades, found.width.values, strict=True):
            lines = found.sharpness.sel(series=SERIES[name], width=width)
            middle, error = lines.mean("seed"), lines.std("seed", ddof=1) / found.sizes["seed"] ** 0.5
            ax.fill_between(found.step, middle - error, middle + error, color=colour, alpha=0.15, linewidth=0)
            ax.plot(found.step, middle, marker="o", color=colour, label=f"N = {width}")
        ax.set(title=name.capitalize(), xlabel="step")
    panels[0].set(ylabel="sharpness λ", ylim=(0, None))
    plots.look.shared_legend(panels, ncols=4)
    return fig


@plots.look.styled
def others(best: xr.DataArray) -> Figure:
    """Best rates with cross-entropy and with Adam, standard and maximal update, over the width."""
    fig, panels = plots.panels(2)
    widths = best.width.to_numpy().astype(float)
    for ax, what, title in zip(panels, ("cross-entropy", "Adam"), ("Cross-entropy", "Adam, squared loss"), strict=True):
        for name in ("standard", "maximal update"):
            _dots(ax, best.sel(series=f"{SERIES[name]}, {what}"), name)
        top = float(np.exp(np.log(best.sel(series=f"standard, {what}", width=64)).mean()))
        ax.plot(widths, top * widths[0] / widths, "--", color=plots.THEORY, label="1/N")
        ax.set(yscale="log", title=title, ylabel="best rate η*")
    _finish(fig, panels, widths)
    return fig


def _dots(ax: Axes, values: xr.DataArray, name: str) -> None:
    """Medians over the seeds, joined, with bars that hold 80 % of them."""
    colour, marker = PAINT.get(name, plots.TRAIN), MARKERS.get(name, "o")
    low, middle, high = (values.quantile(q, "seed") for q in (0.1, 0.5, 0.9))
    ax.vlines(values.width, low, high, color=colour, linewidth=1.4, alpha=0.6)
    ax.plot(values.width, middle, marker=marker, color=colour, markeredgecolor="white", markersize=8, linewidth=1.1,
            label=name)


def _finish(fig: Figure, panels: list[Axes], widths: np.ndarray) -> None:
    """Axes over the widths, and one legend."""
    for ax in panels:
        ax.set(xscale="log", xlabel="neurons N of a layer")
        plots.look.log_ticks(ax)
        ax.set_xticks(widths, [f"{width:.0f}" for width in widths])
        ax.minorticks_off()
    plots.look.shared_legend(panels, ncols=4)


@plots.look.styled
def still(loss: xr.DataArray) -> Figure:
    """The live figure's still picture: risk over the rate at four widths, standard and maximal update."""
    fig, panels = plots.panels(2, sharey=True)
    shades = plots.look.SHADES(np.linspace(0, 1, 4))
    for ax, name in zip(panels, ("standard", "maximal"), strict=True):
        for colour, width in zip(shades, (16, 256, 4096, 65536), strict=True):
            curve = np.exp(np.log(loss.sel(parametrisation=name, width=width)).mean("seed"))
            ax.plot(loss.rate, curve, color=colour, label=f"N = {width}")
        ax.set(xscale="log", yscale="log", xlim=(3e-6, 2), ylim=(1e-6, 1e2), xlabel="rate η",
               title="Standard" if name == "standard" else "Maximal update")
    panels[0].set_ylabel("risk over its start")
    plots.look.shared_legend(panels, ncols=4)
    return fig
