"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.plots.schematic import two_layer_cnn

MODEL = two_layer_cnn()


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
    plots.collapse(error, "mu", "d", title="Over the signal: four curves", legend=False, ax=left)
    plots.collapse(error.assign_coords(r=r), "r", "d", theory=theory, title="Over r: one curve", ax=right)
    right.set_xlim(0.01, 50)
    return fig


def rivals_and_rate(errors: xr.Dataset, theory: Mapping, quantiles: Mapping, laws: Mapping) -> Figure:
    """Test errors of all models over r, and normal quantiles of the test error far beyond the border.

    errors: a variable for each model, over (r, seed). theory: a closed form in r, by name. quantiles: by model, over
    (r, seed). laws: name -> (r, quantile).
    """
    fig, (left, right) = plots.panels(2)
    names = {name: name for name in errors}
    plots.learning_curves(
        errors, names, "r", ylabel="test error [fraction]", theory=theory, title="Network and rivals", ax=left
    )
    return plots.series(quantiles, "r", lines=laws, log="x", ylim=(0.4, 1.8), title="Rate far beyond", ax=right)
