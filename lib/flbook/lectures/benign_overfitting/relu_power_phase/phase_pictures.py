"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import fits, plots
from flbook.lectures.benign_overfitting.relu_power_phase.exchange_law import signal_at
from flbook.plots.look import log_ticks, typeset
from flbook.plots.schematic import two_layer_cnn

MODEL = two_layer_cnn(activation="squared_relu", called="a power of ReLU")


def known_before(network: xr.DataArray, forecast: xr.DataArray, shown: Mapping[str, float]) -> Figure:
    """Test errors of several dimensions over n SNR^q with the forecast's mean, and every network against its forecast.

    network, forecast: over (d, seed, phase), the second at the largest d. shown: labels, and values of the phase.
    """
    fig, (left, right) = plots.panels(2)
    mean = forecast.mean("seed")
    told = {"forecast from the start": lambda x: np.interp(x, mean.phase, mean)}
    plots.collapse(network, "phase", "d", theory=told, title="From guessing to certainty", ax=left)
    largest = network.isel(d=-1)
    look = plots.looks(list(shown))
    for name, phase in shown.items():
        pick = dict(phase=phase, method="nearest")
        colour, mark = look[name]
        right.plot(forecast.sel(**pick), largest.sel(**pick), mark, c=colour, ms=6, label=name, mec="white")
    right.plot([0, 0.5], [0, 0.5], "--", color=plots.THEORY, lw=1.4)
    right.set(xlabel="forecast before training", ylabel="test error after training")
    right.set_title("The start tells the end")
    right.legend(title=typeset("n SNR³"))
    return fig


def race(run: xr.Dataset, ends: Mapping[str, float], title: str) -> Figure:
    """All filters and samples of one network over time.

    run: u over (time, filter) and z over (time, sample). ends: a label and when it blows up in closed form.
    """
    fig, ax = plt.subplots(figsize=(5.2, 2.7), layout="constrained")
    ax.plot(run.time, run.z, color=plots.NOISE, lw=1, ls="--", alpha=0.7)
    ax.plot(run.time, run.u, color=plots.SIGNAL, lw=1.6)
    for time, colour in zip(ends.values(), (plots.SIGNAL, plots.NOISE), strict=True):
        if time < 200:
            ax.axvline(time, color=colour, lw=1.4, ls=":")
    ax.set(xlim=(0, 200), ylim=(-0.3, 3), xlabel="learning time τ", ylabel="response", title=typeset(title))
    return fig


def between(paths: Mapping[float, xr.Dataset], n_snr2: float, errors: xr.Dataset) -> Figure:
    """Signal against noise while training, for several powers, and test errors under the square of ReLU.

    paths: by power, `signal` and `noise` over step, as `responses` returns them, of one network and label. errors:
    `network` and `forecast` over (n, seed, snr).
    """
    fig, (left, right) = plots.panels(2)
    names = {1.0: "ReLU", 2.0: "ReLU²", 3.0: "ReLU³"}
    look = plots.looks(list(names.values()))
    for q, path in paths.items():
        u, z = path.signal.to_numpy(), path.noise.to_numpy()
        grid = np.geomspace(z[0], z[-1], 100)
        left.plot(grid, signal_at(grid, u[0], z[0], n_snr2, q), color=plots.THEORY, ls="--", lw=1.3)
        some = np.unique(np.searchsorted(np.log(z), np.linspace(np.log(z[0]), np.log(z[-1]), 12)).clip(0, len(z) - 1))
        colour, mark = look[names[q]]
        left.plot(z[some], u[some], mark, c=colour, ms=7, mec="white", label=names[q])
    left.set(xscale="log", yscale="log", xlabel="response to a sample's noise", ylabel="response to the signal")
    left.set_title(typeset(f"One start, n SNR² = {n_snr2:g}"))
    log_ticks(left)
    left.legend()
    sizes = [f"n = {n}" for n in errors.n.to_numpy()]
    paint = plots.looks(sizes)
    for n, name in zip(errors.n, sizes, strict=True):
        mean = errors.sel(n=n).mean("seed")
        x = int(n) * mean.snr**2
        colour, mark = paint[name]
        right.semilogx(x, mean.network, mark, c=colour, ms=6, mec="white", label=name)
        right.semilogx(x, mean.forecast, "--", color=plots.THEORY, lw=1.1)
    right.set(xlabel=typeset("n SNR²"), ylabel="test error", title="ReLU²: the border rises with n")
    right.set(xlim=(0.2, 5))
    right.set_xticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
    right.set_xticks([], minor=True)
    right.legend()
    return fig


def price(rivals: xr.DataArray, rows: Mapping[str, tuple[xr.DataArray, fits.Fit]]) -> Figure:
    """Test errors of all models over SNR, and where three of them cross 1/4 against the dimension.

    rivals: over (model, seed, snr). rows: label -> (test errors over (d, seed, snr), fitted exponent of |mu|).
    """
    fig, (left, right) = plots.panels(2)
    curves = rivals.to_dataset("model")
    plots.learning_curves(curves, {name: name for name in curves}, x="snr", ylabel="test error [fraction]",
                          title="A linear classifier sees further", ax=left)  # fmt: skip
    look = plots.looks(list(rows)) | {"ReLU": ("#117777", "D")}
    for name, (row, slope) in rows.items():
        border = fits.crossing(row, "snr", 0.25) * row.d**0.5
        colour, mark = look[name]
        right.loglog(border.d, border, mark + "-", c=colour, ms=7, label=f"{name}: {slope.value:.3f}")
    right.set(xlabel="patch dimension d", ylabel="|μ| where the test error is 1/4")
    ticks = next(iter(rows.values()))[0].d.to_numpy()
    right.set_xticks(ticks, [f"{d // 1000} 000" for d in ticks])
    right.set_xticks([], minor=True)
    right.set_title("Three borders, three exponents")
    right.legend(title="exponent in d")
    return fig
