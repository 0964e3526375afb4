"""Pictures of this lecture: what a page should not have to spell out."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.plots.schematic import Schematic, curve, op, out, stack, strip

MODEL = Schematic(
    "An average of N neurons, each with noise of its own",
    [
        ("input", {
            "x": strip("$x$", "input", "grey*4", lane=0.5, alt="an input x"),
            "xi": strip(r"$\xi_j$", "each step", "noise*4", lane=-0.5, alt="fresh noise xi j in every step"),
        }),
        ("neurons", {"theta": stack(r"$\theta_j$", "$N$ of them", alt="N neurons with the weights theta j")}),
        ("activation", {"h": curve("$h$", holds="tanh", alt="tanh")}),
        ("mean over $j$", {"m": op(r"$\Sigma$", alt="of the neurons")}),
        ("output", {"f": out(r"$f_\mu(x)$", alt="f mu of x")}),
    ],
    ["x > theta > h > m > f", "xi ~> theta"],
    says="All neurons are trained, in the potential that their common output makes; noise moves each of them alone.",
)  # fmt: skip


def descent(shown: xr.Dataset, other: xr.Dataset, rate: float) -> Figure:
    """The objective from two starts at one temperature, its guarantee, and the slope of the linearised flow."""
    fig, (ax,) = plots.panels()
    ax.semilogy(shown.time, shown.gap, color=plots.SIGNAL, label="start at −2.5")
    ax.semilogy(other.time, other.gap, "-.", color=plots.TEST, label="start at 4")
    ax.semilogy(shown.time, shown.bound, color=plots.NOISE, label="guarantee")
    at = shown.sel(time=6.0)
    ax.semilogy(shown.time, 2 * at.gap * np.exp(-rate * (shown.time - 6)), "--", color=plots.THEORY, label="linearised")
    ax.set(xlabel="time $t$", ylabel=r"objective above its minimum", ylim=(1e-7, 1e3), xlim=(0, 20))
    ax.set_title(rf"Temperature $\lambda = {float(shown.lam):g}$")
    fig.legend(loc="outside lower center", ncols=2)
    return fig


def landscapes(share: np.ndarray, moved: np.ndarray, mixed: np.ndarray) -> Figure:
    """The loss on two ways from one network to another."""
    fig, (ax,) = plots.panels()
    ax.plot(share, moved, "--", color=plots.NOISE, label="neurons move")
    ax.plot(share, mixed, color=plots.SIGNAL, label="distributions mix")
    ax.set(xlabel="share of the way", ylabel="loss on the samples", title="The same two networks, two landscapes")
    ax.legend()
    return fig


def rates(smooth: xr.Dataset, wells: xr.Dataset, tilted: xr.Dataset) -> Figure:
    """Measured rates over the inverse temperature, beside the frozen, the guaranteed and the barrier's rate.

    wells, tilted: of two wells whose sides the data do not see, and see; `tilted` has `kramers` with its factor.
    """
    fig, axes = plots.panels(2, sharey=True)
    titles = "One well, tanh: no barrier at rest", "Two wells, cos: a barrier at rest"
    for ax, found, title in zip(axes, (smooth, wells), titles, strict=True):
        ax.semilogy(1 / found.lam, found.at_rest, color=plots.NOISE, label=r"guaranteed, $e^{-B/\lambda}$")
        ax.set(ylabel="rate of the objective", title=title, xlabel=r"inverse temperature $1/\lambda$")
    bent = smooth.isel(lam=np.flatnonzero(smooth.curved > 0))
    axes[0].semilogy(1 / bent.lam, bent.curved, ":", lw=3, color=plots.NOISE, label="guaranteed, curvature")
    axes[0].semilogy(1 / smooth.lam, smooth.frozen_rate, "-.", color=plots.TRAIN, label="frozen potential")
    axes[0].semilogy(1 / smooth.lam, smooth.rate, "--", color=plots.THEORY, label="derived")
    for found in (tilted, wells):
        axes[1].semilogy(1 / found.lam, found.kramers, "--", color=plots.THEORY)
    axes[0].semilogy(1 / smooth.lam, smooth.measured, "o", color=plots.SIGNAL, label="measured")
    axes[1].semilogy(1 / wells.lam, wells.measured, "o", color=plots.SIGNAL)
    axes[1].semilogy(1 / tilted.lam, tilted.measured, "s", color=plots.TEST, label="sides seen")
    plots.shared_legend(axes, 3)
    return fig
