"""Pictures of this lecture: what a page should not have to spell out."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.lectures.training_strategies.federated_learning.exchange import agreements
from flbook.plots.schematic import Schematic, box, curve, op, out, stack, strip

MODEL = Schematic(
    "Federated averaging of a two-layer network with cubic ReLU",
    [
        ("samples of", {"x1": strip(r"$y\mu_1,\ \xi$", "client 1", "signal*2 noise*2"),
                        "xM": strip(r"$y\mu_M,\ \xi$", "client M", "signal*2 noise*2")}),
        ("filters", {f"W{k}": stack(f"$W_{k}$") for k in "1M"}),
        ("cubic ReLU", {f"s{k}": curve(holds="squared_relu", alt="cubic ReLU") for k in "1M"}),
        ("local steps", {f"g{k}": box(rf"$-\eta\nabla L_{k}$", alt="H gradient steps on its own loss") for k in "1M"}),
        ("mean", {"mean": op(r"$\Sigma$", alt="the mean of all weights")}),
        ("next round", {"W": out("$W$", alt="the same weights W for all")}),
    ],
    [*(f"x{k} > W{k} > s{k} > g{k}" for k in "1M"), "g1 gM >> mean", "mean > W"],
    says="Two of M clients are drawn; samples stay with their client.",
)


def exchange(federated: xr.DataArray, alone: xr.DataArray, samples: int) -> Figure:
    """Mean test error against the agreement of the signals, and against what it is worth in samples of one's own."""
    fig, (left, right) = plots.panels(2, sharey=True)
    mean, worth = federated.mean("seed", keep_attrs=True), samples * agreements(federated) ** 1.5
    curves = {f"M = {k}": mean.sel(clients=k, drop=True) for k in federated.clients.values}
    plots.series(curves, "agreement", joined=True, log="", ylim=(-0.02, 0.53), title="Federated clients",
                 levels={"chance": 0.5}, legend=False, ax=left)
    left.set_xlabel(r"agreement $\chi$ of the signals")
    name = {"long_name": "worth in samples of one's own"}
    yardstick = alone.mean("seed", keep_attrs=True).rename(n="worth")
    moved = {f"M = {k}": curve.assign_coords(worth=("agreement", worth.sel(clients=k).values, name)).swap_dims(
        agreement="worth") for k, curve in zip(federated.clients.values, curves.values(), strict=True)}
    line = {"a client alone": (yardstick.worth.values, yardstick.values)}
    plots.series(moved, "worth", lines=line, ylim=(-0.02, 0.53), log="x", title="The same dots, in samples",
                 legend=False, ax=right)
    right.set_xlim(1, 120)
    plots.look.log_ticks(right)
    plots.shared_legend((left, right), ncols=3)
    return fig


def race(racing: xr.Dataset, title: str) -> Figure:
    """Largest responses to signal and noise over training; the same axes for every frame."""
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(5.2, 3.0)
    plots.learning_curves(racing, {"gamma": "signal", "rho": "noise"}, log="xy", title=title, ylabel="largest response",
                          ax=ax)
    ax.set_ylim(0.015, 8)
    return fig


def rounds(error: xr.DataArray, fits_alone: float) -> Figure:
    """Mean test error against the local steps between averages. fits_alone: step at which a client has fitted noise."""
    fig, (ax,) = plots.panels(1)
    mean = error.mean("seed", keep_attrs=True)
    lines = {"a client alone fits its noise": (np.array([fits_alone] * 2), np.array([0.0, 0.5]))}
    return plots.series({"federated averaging": mean}, "every", joined=True, log="x", ylim=(-0.02, 0.53), lines=lines,
                        levels={"chance": 0.5}, title="Averages must come in time", ax=ax)
