"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Callable, Mapping

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.plots.schematic import Schematic, curve, op, out, stack, strip

MODEL = Schematic(
    "A two-layer denoiser with tied weights",
    [
        ("a patch", {"x": strip(r"$\alpha x$", "of the data", "signal+noise"),
                     "e": strip(r"$\beta\,\epsilon$", "diffusion noise", "grey")}),
        ("sum", {"+": op("$+$")}),
        ("neurons", {"w": stack(r"$w_r$", lane=0)}),
        ("squares", {"s": curve(r"$z^2$", holds="square", lane=0, alt="the square")}),
        ("the same neurons", {"w2": stack(r"$w_r$", "transposed", lane=0)}),
        ("output", {"f": out(r"$f$", lane=0, alt="the predicted diffusion noise")}),
    ],
    ["x e > +", "+ > w > s > w2 > f"],
    says="The output is to be the diffusion noise that was added.",
)

SMALLER = "classifier, smaller start"
PAINT = {"denoiser": plots.look.OTHERS[3], "classifier": plots.look.OTHERS[1], SMALLER: plots.look.OTHERS[0]}
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


def at_time(line: tuple[np.ndarray, np.ndarray], t: float) -> Figure:
    """The denoiser's ratio against n SNR² at one diffusion time, by the three variables."""
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(5.2, 3.4)
    ax.plot(*line, color=PAINT["denoiser"], linewidth=2.5, label="denoiser, three variables")
    ax.plot(line[0], line[0] / 2, color=plots.THEORY, linestyle="--", linewidth=1.4, label="n SNR²/2")
    ax.set(xscale="log", yscale="log", xlabel="n SNR²", ylabel=RATIO, title=f"Diffusion time {t:g}")
    ax.legend()
    return fig


def one_variable(ratio: xr.DataArray, theory: Callable[[np.ndarray], np.ndarray]) -> Figure:
    """The ratio against the signal strength, at several times, and against the one variable that both make."""
    fig, (left, right) = plots.panels(2, sharey=True)
    plots.collapse(ratio, "mu", "t", title="Against |μ|: one row per diffusion time", log="xy", ax=left)
    fig.legends.clear()
    return plots.collapse(ratio, "strength", "t", theory=theory, title="Against α|μ|/β: one curve", log="xy", ax=right)
