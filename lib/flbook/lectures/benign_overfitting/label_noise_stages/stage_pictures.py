"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.plots.look import log_ticks
from flbook.plots.schematic import two_layer_cnn

MODEL = two_layer_cnn()
UNIT = "$\\sigma_0$ in units of $\\sqrt{n}/(\\sigma_\\xi d)$"


@plots.look.styled
def stages(run: xr.Dataset, title: str) -> Figure:
    """Shares fitted, and both test errors, over the steps of training. run: of one signal and one dimension."""
    fig, ax = plt.subplots(figsize=(5.2, 3.2), layout="constrained")
    names = {"fitted_clean": "train_clean", "fitted_flipped": "noise_fitted", "test_recycled": "repeated"}
    shown = {"train_clean": "clean, fitted", "noise_fitted": "flipped, fitted", "repeated": "error, repeated",
             "test_fresh": "error, fresh"}
    ax.set_ylim(-0.03, 1.12)
    plots.learning_curves(run.rename(names), shown, ylabel="share of samples", title=title, ax=ax)
    return fig


@plots.look.styled
def tie(stay: xr.Dataset, fresh: xr.Dataset, lines: Mapping[str, xr.Dataset]) -> Figure:
    """Signal and noise in the output over learning time, for labels that stay wrong and for fresh flips.

    stay, fresh: `signal`, `noise_clean` and, of the first, `noise_flipped` over (time, seed). lines: the same in closed
    recursion, "stay" and "fresh", over time.
    """
    fig, axes = plots.panels(2, sharey=True)
    groups = {"signal": "signal S", "noise_flipped": "noise N, flipped", "noise_clean": "N, clean"}
    shown = (("stay", stay, groups, "Wrong for good"),
             ("fresh", fresh, {"signal": "signal S", "noise_clean": "noise N"}, "Wrong afresh in every step"))
    for ax, (name, run, names, title) in zip(axes, shown, strict=True):
        plots.learning_curves(run, names, x="time", log="xy", ylabel="part of the output", title=title, ax=ax)
        for part in names:
            line = lines[name][part]
            ax.plot(line.time, line, "--", color=plots.THEORY, lw=1.3)
        ax.set(xlim=(0.2, 50), ylim=(0.03, 12))
    return fig


@plots.look.styled
def starts(run: xr.Dataset, found: Mapping[str, xr.DataArray], lines: Mapping[str, xr.DataArray],
           levels: Mapping[str, float], count: float) -> Figure:  # fmt: skip
    """Carriers over the size of the start, and both borders. run: means over seeds, over (d, start).

    found, lines: borders as measured and from the carriers, "early" and "late", over (d, start). levels: of models
    whose early border does not depend on the start. count: the share of carriers that very small starts lead to.
    """
    fig, (left, right) = plots.panels(2, sharex=True)
    marks = dict(zip(run.d.to_numpy(), ("s", "o"), strict=True))
    paint = {"early": (plots.SIGNAL, "stage I begins"), "late": (plots.NOISE, "repeated noise harmless")}
    for d, mark in marks.items():
        size = f"10^{{{round(np.log10(d))}}}"
        for name, (colour, text) in paint.items():
            hollow = "white" if mark == "s" else colour
            style = dict(color=colour, mfc=hollow, ms=7 if mark == "s" else 5, ls="none", marker=mark)
            end = {"early": "early", "late": "late, harmonic mean"}[name]
            left.plot(run.start, run[f"phi_{name}"].sel(d=d), label=f"{end}, $d={size}$", **style)
            right.plot(run.start, found[name].sel(d=d), label=f"{text}, $d={size}$", **style)
    for name in paint:
        right.plot(run.start, lines[name].sel(d=max(marks)), "--", color=plots.THEORY, lw=1.4)
    for name, height in levels.items():
        right.axhline(height, color=plots.look.MODELS[name][0], lw=1.2, ls="-.")
        right.text(run.start.min(), height, f" {name}", color=plots.look.MODELS[name][0], va="bottom", fontsize=9)
    left.axhline(0.5, color=plots.CHANCE, ls=":")
    left.axhline(count, color=plots.THEORY, ls="--", lw=1.2)
    left.set(ylabel="share of carriers φ", ylim=(0.4, 0.85), title="A small start makes more carriers")
    right.set(ylabel="n SNR² at the border", ylim=(1, 2.9), title="Both borders rise with them")
    for ax in (left, right):
        ax.set(xscale="log", xlabel=UNIT)
        log_ticks(ax)
    plots.shared_legend((right,), ncols=2)
    return fig


@plots.look.styled
def rate(run: xr.Dataset, lines: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """-ln(test error) on fresh noise over d/n at the end of either stage. lines: closed forms."""
    fig, (ax,) = plots.panels(1)
    named = {"long_name": "$-\\ln$(test error)", "units": "1"}
    measured = {"end of stage I": run.minus_log_first.assign_attrs(named), "end of stage II": run.minus_log_last}
    return plots.series(measured, "ratio", paint={"end of stage I": plots.TEST, "end of stage II": plots.NOISE},
                        lines=lines, title="Memorising slows the fall of the error", ax=ax)  # fmt: skip
