"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Callable, Mapping

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots

PAINT = {"denoiser": plots.look.OTHERS[3], "classifier": plots.look.OTHERS[1]}
RATIO = "signal over noise"


def two_networks(races: Mapping[str, xr.Dataset]) -> Figure:
    """The ratio of signal to noise over training, a line for each setting, in a denoiser and in a classifier."""
    fig, axes = plots.panels(2, sharex=True, sharey=True)
    titles = {"denoiser": "Denoiser: both, whatever the SNR", "classifier": "Classifier: one of the two"}
    for ax, (network, title) in zip(axes, titles.items(), strict=True):
        lines = xr.Dataset({name: race[network] for name, race in races.items()})
        plots.learning_curves(lines, {name: name for name in races}, log="xy", levels={"equal": 1.0}, title=title,
                              ylabel=RATIO, ax=ax)
    return fig


def over_strength(ratios: Mapping[str, xr.DataArray], lines: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """Ratios of both networks at the end of training against n SNR², at one noise level."""
    return plots.series(ratios, "n_snr2", paint=PAINT, lines=lines, title="The denoiser levels off")


def at_time(ratio: xr.DataArray, line: tuple[np.ndarray, np.ndarray], t: float) -> Figure:
    """The denoiser's ratio against n SNR² at one diffusion time; the same axes for every frame."""
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(5.2, 3.4)
    lines = {"three variables": line, "n SNR²/2": (line[0], line[0] / 2)}
    plots.series({"denoiser": ratio}, "n_snr2", paint=PAINT, lines=lines, ylim=(0.1, 5), title=f"Diffusion time {t:g}",
                 ax=ax)
    return fig


def one_variable(ratio: xr.DataArray, theory: Callable[[np.ndarray], np.ndarray]) -> Figure:
    """The ratio against the signal strength, at several times, and against the one variable that both make."""
    fig, (left, right) = plots.panels(2, sharey=True)
    plots.collapse(ratio, "mu", "t", title="Against |μ|: one row per diffusion time", log="xy", ax=left)
    fig.legends.clear()
    return plots.collapse(ratio, "strength", "t", theory=theory, title="Against α|μ|/β: one curve", log="xy", ax=right)
