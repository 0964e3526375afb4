"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots


def race(racing: xr.Dataset, titles: Mapping[float, str]) -> Figure:
    """Signal learned, noise memorised and the response to fresh noise over training; a panel for each of two signals.

    racing: as `race` of this lecture returns it, without the dimension d. titles: by |mu|.
    """
    fig, axes = plots.panels(2, sharex=True, sharey=True)
    lines = {"rho": "ρ", "test_noise": "σ_ξ|w|", "gamma": "γ"}
    for ax, (mu, title) in zip(axes, titles.items(), strict=True):
        plots.learning_curves(racing.sel(mu=mu), lines, log="xy", title=title, ylabel="coefficient", ax=ax)
        ax.label_outer()
    return fig


def apart_and_together(error: xr.DataArray, r: xr.DataArray, theory: Mapping) -> Figure:
    """Test errors of several dimensions d, over the signal strength and over r.

    error: over (d, mu, seed). r: over (d, mu). theory: closed forms in r, by name.
    """
    fig, (left, right) = plots.panels(2, sharey=True)
    plots.collapse(error, "mu", "d", title="Over the signal: four curves", ax=left)
    fig.legends[0].remove()  # the other panel's says the same
    plots.collapse(error.assign_coords(r=r), "r", "d", theory=theory, title="Over r: one curve", ax=right)
    right.set_xlim(0.01, 50)
    return fig


def rates(errors: Mapping[str, xr.DataArray], laws: Mapping[str, tuple], rival: str, start: int) -> Figure:
    """Errors on a logarithmic axis over r, where an exponential law is a straight line.

    errors: over (r, seed), the network's first. laws: name -> (r, closed form). rival: names a law exp(c - k √r), which
    is drawn through the first errors, from place `start` to the last.
    """
    network = next(iter(errors.values()))[{"r": slice(start, None)}]
    middle, root = np.log(network.median("seed").to_numpy()), np.sqrt(network.r.to_numpy())
    fine = np.linspace(0, root[-1], 200)
    bent = middle[0] + (middle[-1] - middle[0]) * (fine - root[0]) / (root[-1] - root[0])
    return plots.series(errors, "r", lines=laws | {rival: (fine**2, np.exp(bent))}, log="y", ylim=(1e-12, 1))
