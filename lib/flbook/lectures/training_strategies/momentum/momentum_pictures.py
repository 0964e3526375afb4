"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.lectures.training_strategies.momentum.coasting import coast
from flbook.plots.schematic import Schematic, curve, op, out, stack, strip

MODEL = Schematic(
    "A two-layer network of cubes",
    [
        ("two patches", {"v": strip(r"$\theta\,y\,v$", "feature", "signal"), "xi": strip(r"$\xi$", "noise", "noise")}),
        ("filters", {"w+": stack(r"$w_r$", "sign $+$", alt="filters with the sign plus"),
                     "w-": stack(r"$w_r$", "sign $-$", alt="filters with the sign minus")}),
        ("cubes", {sign: curve(r"$z^3$", holds="cube", alt="the cube") for sign in ("c+", "c-")}),
        ("signs", {"sum": op("$-$")}),
        ("output", {"f": out(r"$f(x)$", alt="the sum of all cubes with the filters' signs")}),
    ],
    ["v xi >> w+ w-", "w+ w- > c+ c-", "c+ c- > sum > f"],
    says="Every filter meets both patches; the feature is common to all samples, the noise is each sample's own.",
)  # fmt: skip


def race(racing: xr.Dataset, names: Mapping[float, str]) -> Figure:
    """Feature and test error on small margins over flow time, a curve for each memory.

    racing: as `race` of this lecture returns it. names: label of each memory.
    """
    fig, axes = plots.panels(2, sharex=True)
    titles = {"feature": "The feature", "test_error": "Errors on samples of small margin"}
    for ax, (quantity, title) in zip(axes, titles.items(), strict=True):
        one = racing[quantity]
        curves = xr.Dataset({f"memory {k}": one.sel(memory=tau, drop=True) for k, tau in enumerate(names)})
        log = "xy" if quantity == "feature" else "x"
        lines = dict(zip(curves, names.values(), strict=True))
        plots.learning_curves(curves, lines, x="flow", log=log, title=title, ax=ax)
        ax.label_outer()
    return fig


def apart_and_together(loss: xr.DataArray) -> Figure:
    """Test loss of several step sizes over 1 - gamma, and over the memory.

    loss: over (lr, memory, seed).
    """
    fig, (left, right) = plots.panels(2, sharey=True)
    forgetting = (loss.lr / loss.memory).assign_attrs(long_name="forgetting 1 - γ", units="1")
    apart = loss.assign_coords(forgetting=forgetting.transpose("lr", "memory"))
    plots.collapse(apart, "forgetting", "lr", title="Over 1 - γ: three curves", legend=False, ax=left)
    plots.collapse(loss, "memory", "lr", title="Over the memory: one curve", ax=right)
    return fig


def ball(places: np.ndarray, memory: float, share: float) -> Figure:
    """The loss of the easy samples over the feature, and a ball on it at equal intervals of time.

    places: coefficients at these times. share: p, of the easy samples.
    """
    fig, ax = plt.subplots(figsize=(5.2, 2.8))
    a, at = np.linspace(0, 12.5, 400), places
    ax.plot(a, share * np.logaddexp(0, -(a**3)), color=plots.TRAIN, lw=1.6)
    ax.plot(at, share * np.logaddexp(0, -(at**3)), "o", color=plots.SIGNAL, mec="white", ms=8)
    ax.set(xlim=(0, 12.5), ylim=(-0.06, 0.65), xlabel="feature coefficient a", ylabel="loss V [nats]")
    ax.set_title(f"memory {memory:g}: at {at[-1]:.1f} in the end")
    return fig


def coasting(
    rest: xr.DataArray, of_noise: np.ndarray, parts: xr.DataArray, tie: float, share: float, noise: float
) -> Figure:
    """Where feature and noise come to rest over the memory, and how much of a hard sample's margin is the feature.

    rest: over (memory, seed), the network's feature. of_noise: of the smallest model, a number for each memory.
    parts: over (memory, seed). tie: memory at which the two are expected to tie. share, noise: what pulls either.
    """
    fig, (left, right) = plots.panels(2)
    memory, smallest = np.geomspace(20, 2000, 50), rest.isel(seed=0, drop=True).copy(data=of_noise)
    laws = {"$\\sqrt{2\\tau_\\gamma p_1\\,\\log 2}+\\kappa_0$": (memory, coast(memory, share)),
            "$\\|\\xi_i\\|^2/n$ for $p_1$": (memory, coast(memory, noise))}
    shown = {"feature, network": rest, "noise, smallest model": smallest}
    paint = {"feature, network": plots.SIGNAL, "noise, smallest model": plots.NOISE}
    plots.series(shown, "memory", paint=paint, lines=laws, title="Four times the memory, twice as far", ax=left)
    part = {"feature's part": parts}
    plots.series(part, "memory", paint={"feature's part": plots.SIGNAL}, log="x", legend=False,
                 title="Who fits a hard sample", ax=right)
    right.axvline(tie, color=plots.THEORY, linestyle="--", linewidth=1.4)
    right.set(ylim=(-0.05, 1.05), ylabel="the feature's part of the margin")
    return fig


def landing(starts: Mapping[str, tuple[np.ndarray, Mapping[str, np.ndarray]]]) -> Figure:
    """Where the feature ends, over where it starts: the smallest model and the network.

    starts: title -> (start, label -> end).
    """
    fig, axes = plots.panels(2, sharex=True, sharey=True)
    for ax, (title, (start, ends)) in zip(axes, starts.items(), strict=True):
        axis = {"start": ("start", start, {"long_name": "feature coefficient at the start", "units": "1"})}
        named = {"long_name": "feature coefficient at the end", "units": "1"}
        dots = {name: xr.DataArray(end, axis, ("start",), attrs=named) for name, end in ends.items()}
        plots.series(dots, "start", title=title, legend=False, ax=ax)
        ax.label_outer()
    plots.shared_legend(axes)
    return fig
