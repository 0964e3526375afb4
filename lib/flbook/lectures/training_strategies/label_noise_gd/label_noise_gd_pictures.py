"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.plots.schematic import two_layer_cnn

MODEL = two_layer_cnn(activation="squared_relu", called="squared ReLU")

SHORT = {"gradient descent": "GD", "label smoothing": "smoothing", "label noise": "label noise"}
HEIGHTS = {"gamma": "signal coefficient γ", "rho": "noise coefficient ρ", "train_loss": "training loss [nats]",
           "test_error": "test error [fraction]"}  # fmt: skip


def by_rule(racing: xr.Dataset, names: tuple[str, str], titles: tuple[str, str], levels: Mapping, log: str) -> Figure:
    """Two quantities over training, a line for each rule. levels: dotted heights, by quantity and label."""
    fig, axes = plots.panels(2, sharex=True)
    for ax, name, title in zip(axes, names, titles, strict=True):
        lines = racing[name].to_dataset("rule")
        scale = log if name in ("gamma", "rho") else "x"
        plots.learning_curves(lines, SHORT, log=scale, levels=levels.get(name), title=title,
                              ylabel=HEIGHTS[name], ax=ax)
    return fig


def lead_and_rate(racing: xr.Dataset, drift: float, rates: xr.DataArray, lines: Mapping) -> Figure:
    """The signal's lead over training under each rule, and its gain in a step against the step size.

    drift: the gain in a step that the chain predicts. lines: laws of the rate, label -> (step sizes, rates).
    """
    fig, (left, right) = plots.panels(2)
    leads = racing.lead.to_dataset("rule")
    plots.learning_curves(leads, SHORT, log="", theory={"chain": lambda t: drift * np.asarray(t)},
                          title="The signal's lead", ylabel="lead Λ", ax=left)
    own = {"label noise": plots.look.OTHERS[2]}  # the colour that it has on the left
    return plots.series({"label noise": rates}, "lr", paint=own, lines=lines, title="Its gain in a step", ax=right)
