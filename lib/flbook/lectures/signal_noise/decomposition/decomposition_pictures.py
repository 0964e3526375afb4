"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.lectures.signal_noise.decomposition.race_recursion import Race, share_after_one_step
from flbook.plots.schematic import two_layer_cnn

MODEL = two_layer_cnn()
REACH = 5.0  # coefficients at which the colours of `state` saturate


def two_races(book: xr.Dataset, told: Callable[[float], Race], titles: Mapping[float, str]) -> Figure:
    """Signal and noise coefficients over training, a panel for each share of flips.

    book: over (flip_prob, seed, step). told: the race in three numbers, by the share of flips. titles: by the same.
    """
    fig, axes = plots.panels(2, sharex=True, sharey=True)
    steps = book.step.to_numpy()
    for ax, (p, title) in zip(axes, titles.items(), strict=True):
        race = told(p)
        lines = {"gamma": "γ", "rho": "ρ"}
        plots.learning_curves(book.sel(flip_prob=p), lines, log="xy", title=title, ylabel="coefficient", ax=ax)
        for curve in (race.gamma, race.rho):
            ax.plot(steps[1:], curve[steps[1:]], color=plots.THEORY, linestyle="--", linewidth=1.4, zorder=4)
        ax.label_outer()
    return fig


def state(table: np.ndarray, step: int, flips: Sequence[int], m: int) -> Figure:
    """All coefficients of a network after a step, as a map.

    table: (filters, 1 + samples), gamma first, the samples of label +1 before the others. flips: places of the samples
    with a wrong label.
    """
    fig, ax = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
    image = ax.imshow(np.insert(table, 1, np.nan, axis=1), "RdBu_r", vmin=-REACH, vmax=REACH, aspect="auto")
    ax.axhline(m - 0.5, color="black", lw=0.8)
    ax.set_yticks([(m - 1) / 2, 1.5 * m - 0.5], ["j = +1", "j = −1"])
    quarter = (table.shape[1] - 1) / 4
    ax.set_xticks([0, 1.5 + quarter, 1.5 + 3 * quarter], ["γ", "label +1", "label −1"])
    ax.plot(np.array(flips) + 2, [-0.5] * len(flips), "kv", ms=7, clip_on=False)
    ax.set_xlabel("γ and ρ, one column per sample (▼ flipped)")
    ax.set_title(f"step {step}: {table.size} numbers")
    fig.colorbar(image, ax=ax, label="coefficient", extend="both")
    return fig


def last_over_first(kept: xr.DataArray, told: Mapping[float, Mapping[str, Callable]], titles: Mapping) -> Figure:
    """The last ratio in units of the first step's, against n SNR², a panel for each share of flips.

    kept: over (start, flip_prob, n_snr2, seed). told: closed forms by name, for each share of flips.
    """
    fig, axes = plots.panels(2, sharex=True, sharey=True)
    for ax, (p, title) in zip(axes, titles.items(), strict=True):
        plots.collapse(kept.sel(flip_prob=p), "n_snr2", "start", theory=told[p], title=title, legend=False, ax=ax)
        ax.set(ylim=(0, 1.3), ylabel="last ratio over first")
    handles, texts = axes[-1].get_legend_handles_labels()
    names = [f"start {_power(text)}" if text[0].isdigit() else text for text in texts]
    fig.legend(handles, names, loc="outside lower center", ncols=2, fontsize=9)
    return fig


def shares(stored: xr.Dataset, a: float, p: float) -> Figure:
    """Share of a label's filters that are active on a sample, against the start and against the start over an overlap.

    stored: over (start, d, seed), with n = 40 samples.
    """
    fig, (left, right) = plots.panels(2, sharey=True)
    zeta = (stored.start * (stored.d / 40) ** 0.5).assign_attrs(long_name="start over overlap ζ", units="1")
    first, last = (stored[f"share_{end}"].assign_attrs(long_name="active share s", units="fraction")
                   for end in ("first", "last"))
    plots.collapse(last, "start", "d", title="Against the start: three curves", legend=False, ax=left)
    left.set_xlabel(r"size of the start $\sigma_0\sigma_\xi\sqrt{d}$")
    last, first = last.assign_coords(zeta=zeta), first.assign_coords(zeta=zeta)
    plots.collapse(last, "zeta", "d", title="Against ζ: one curve", legend=False, ax=right)
    at = zeta.transpose("d", "start").to_numpy()
    for k, marker in enumerate(("o", "s", "^")):
        right.plot(at[k], first.mean("seed").transpose("d", "start")[k], marker, markerfacecolor="none",
                   color=plots.TRAIN, markersize=6, zorder=3, label="" if k else "after one step (hollow)")
    line = np.geomspace(at.min(), at.max(), 200)
    right.plot(line, share_after_one_step(line, a, p), "--", color=plots.THEORY, linewidth=1.6, zorder=4,
               label="after one step, derived")
    handles, texts = right.get_legend_handles_labels()
    names = [f"d = {_power(text)}" if text[0].isdigit() else text for text in texts]
    fig.legend(handles, names, loc="outside lower center", ncols=2, fontsize=9)
    return fig


def _power(text: str) -> str:
    """A power of ten as one."""
    exponent = np.log10(float(text))
    return f"$10^{{{exponent:.0f}}}$" if abs(exponent) > 2 else text
