"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.plots.schematic import Schematic, box, op, out, stack

MODEL = Schematic(
    "A step of sharpness-aware minimisation",
    [
        ("filters", {"W": stack("$W$", lane=-1)}),
        ("gradient", {"g": box(r"$\nabla L(W)$", lane=1.3, alt="the gradient of the loss")}),
        ("uphill", {"up": op("$+$", r"length $\tau$", lane=0.4)}),
        ("gradient there", {"there": box(r"$\nabla L$", holds="signal", lane=0.4, alt="that at filters uphill")}),
        ("descent", {"down": op("$-$", r"times $\eta$", lane=-1)}),
        ("next filters", {"next": out("$W$", lane=-1)}),
    ],
    ["W > g", "W > up", "g > up", "up > there > down", "W > down", "down > next"],
    says="The step is taken from the filters themselves, with the gradient at the perturbed ones.",
)

COLOURS = {"GD": "#332288", "SAM": "#00707A", "SAM then GD": "#00707A", "GD then SAM": "#9A1B1E"}
LOSSES = ("#767676", "#00707A", "#332288")


def maps(error: xr.DataArray, borders: Mapping) -> Figure:
    """Test errors over dimension and signal of two rules, and where theory expects either border.

    error: over (rule, d, mu, seed). borders: rule -> function of d.
    """
    fig, axes = plots.panels(2, sharey=True)
    titles = {"GD": "Gradient descent", "SAM then GD": "SAM, then gradient descent"}
    for ax, (rule, border) in zip(axes, borders.items(), strict=True):
        one = error.sel(rule=rule)
        plots.phase_diagram(one, "d", "mu", boundary=border, limits=(0, 0.5), title=titles[rule], legend=False, ax=ax)
    return fig


def switched(survival: xr.DataArray, law: tuple, memorised: xr.DataArray, unit: xr.DataArray) -> Figure:
    """Noise neurons that survive the first perturbation, and noise memorised under SAM, over the radius.

    survival: over (ratio, seed); law: its closed form. memorised: over (radius, d, seed), in units of one step; unit:
    the radius that keeps neurons off, over d, in the units of the axis.
    """
    fig, (left, right) = plots.panels(2)
    measured = {"simulation": survival}
    plots.series(measured, "ratio", paint={"simulation": plots.NOISE}, lines={"2(1−Φ)": law}, log="",
                 title="Switched off at once ...", legend=False, ax=left)
    series = {f"d = {d}": memorised.sel(d=d).drop_vars("d").assign_coords(
        radius=("radius", (memorised.radius / unit.sel(d=d)).values,
                {"long_name": "radius τ / τ_c", "units": "1"})) for d in memorised.d.values}
    plots.series(series, "radius", joined=True, title="... and kept off", ax=right)
    right.axvline(1.0, color=plots.THEORY, linestyle="--", linewidth=1.5)
    right.set_xlim(0.02, 50)
    plots.log_ticks(right)
    return fig


def race(path: xr.Dataset, title: str) -> Figure:
    """Signal learned and noise memorised over training under one rule. path: over (step, seed)."""
    later = path.isel(step=slice(1, None))
    fig = plots.learning_curves(later, {"gamma": "γ", "rho": "ρ"}, log="xy", title=title, ylabel="coefficient")
    fig.axes[0].set_ylim(0.003, 40)
    plots.log_ticks(fig.axes[0])
    return fig


def borders(crossings: Mapping[str, xr.DataArray], laws: Mapping) -> Figure:
    """The signal that each rule needs over the dimension. crossings: by rule, over d. laws: name -> function of d."""
    grid = np.geomspace(400, 40000, 40)
    lines = {name: (grid, law(grid)) for name, law in laws.items()}
    paint = {name: COLOURS[name] for name in crossings if name in COLOURS}
    fig = plots.series(crossings, "d", paint=paint, lines=lines, title="Which signal a rule needs")
    for line in fig.axes[0].get_lines():
        if line.get_label() == "GD":  # the others lie on it
            line.set_markersize(13)
    return fig


def ratios(steepest: xr.DataArray, traces: xr.DataArray) -> Figure:
    """SAM's curvature over that of gradient descent, over the signal, a line for each training loss.

    Both over (loss, d, seed, mu). A signal at which some data set misses a loss has no dot.
    """
    fig, axes = plots.panels(2, sharey=True)
    for ax, ratio, title in zip(axes, (steepest, traces), ("Largest eigenvalue", "Trace"), strict=True):
        for place, (loss, look) in enumerate(zip(ratio.loss.values, ("s:", "o-", "^--"), strict=True)):
            logs = np.log(ratio.sel(loss=loss)).mean("d", skipna=False)
            mean, error = logs.mean("seed", skipna=False), logs.std("seed", ddof=1) / logs.sizes["seed"] ** 0.5
            x, kept = mean.mu.values * (1 + 0.015 * (place - 1)), np.isfinite(mean.values)
            low, y, high = (np.exp(mean + sign * error).values[kept] for sign in (-2, 0, 2))
            ax.errorbar(x[kept], y, [y - low, high - y], fmt=look, capsize=3, color=LOSSES[place],
                        label=f"loss {loss:g}")
        ax.axhline(1.0, color=plots.TRAIN, linewidth=1)
        ax.set(xscale="log", yscale="log", title=title, xlabel=r"signal strength $|\mu|$ [$\sigma_\xi$]",
               ylabel="SAM over gradient descent")
        plots.log_ticks(ax)
    axes[1].legend(loc="lower right")
    return fig
