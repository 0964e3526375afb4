"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots


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
    ax.set_title(f"τ = {memory:g}: at {at[-1]:.1f} in the end")
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
