"""Pictures of this lecture: what a page should not have to spell out."""

import numpy as np
import xarray as xr
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from flbook import plots
from flbook.plots.schematic import Schematic, encoder, matrix, out, stack, strip

SHORT = {"one": "one modality", "two": "two modalities"}
LABELS = "+-+--"
PAIRS = (["c" if i == j else "g" if a != b else "." for j, b in enumerate(LABELS)] for i, a in enumerate(LABELS))
MODEL = Schematic(
    "Contrastive learning with two modalities",
    [
        ("pairs", {"x": strip(r"$x_i$", "signal, noise", "signal*3 noise*3"),
                   "t": strip(r"$\tilde x_i$", "signal, noise", "signal*3 noise*3")}),
        ("encoders", {"h": encoder(r"$w_r$"), "g": encoder(r"$\tilde w_r$")}),
        ("features", {"hx": stack(r"$h_r(x_i)$"), "gx": stack(r"$g_r(\tilde x_i)$")}),
        ("similarities", {"sim": matrix(r"$\mathrm{Sim}(x_i,\tilde x_j)$", "partners, negatives",
                                        " ".join("".join(row) for row in PAIRS))}),
        ("loss", {"L": out("InfoNCE")}),
    ],
    ["x t > h g > hx gx", "hx gx > sim > L"],
    says="The diagonal holds the partners; a negative is a sample of the other label.",
)  # fmt: skip


def by_modalities(da: xr.DataArray) -> xr.Dataset:
    """One variable for each number of encoders."""
    return xr.Dataset({name: da.sel(encoders=k, drop=True) for k, name in ((1, "one"), (2, "two"))})


def loss_and_accuracy(followed: xr.Dataset, ceiling: float) -> Figure:
    """Training loss and accuracy downstream over the epochs, with one modality and with two."""
    fig, (left, right) = plots.panels(2, sharex=True)
    plots.learning_curves(by_modalities(followed.train_loss), SHORT, log="y", title="The same training loss",
                          ylabel="training loss [nats]", ax=left)
    levels = {"signal alone": ceiling, "chance": 0.5}
    plots.learning_curves(by_modalities(followed.accuracy), SHORT, log="", levels=levels,
                          title="Different features", ylabel="accuracy downstream [fraction]", ax=right)
    return fig


def growth(races: dict[str, xr.Dataset], rates: dict[str, tuple[float, float]]) -> Figure:
    """Signal and noise responses over the first epochs, from a small start, beside exponential growth at given rates.

    races: by title, variables ``signal`` and ``noise``. rates: by title, what a step adds to either.
    """
    fig, axes = plots.panels(2, sharey=True)
    names = {"signal": "signal", "noise": "noise"}
    for ax, (title, race) in zip(axes, races.items(), strict=True):
        plots.learning_curves(race, names, log="y", title=title, ylabel="largest response", ax=ax)
        for name, rate in zip(names, rates[title], strict=True):
            line = float(race[name].mean("seed")[0]) * (1 + rate) ** race.step.to_numpy()
            ax.plot(race.step[line < 3], line[line < 3], color=plots.look.THEORY, linestyle="--", linewidth=1.4)
    return fig


def diagram(accuracy: xr.DataArray, border: float) -> Figure:
    """Accuracy over n SNR² and the ratio of the signals, with the border of two modalities and that of one."""
    two = {"two modalities": lambda ratio: border / ratio,
           "one modality alone": lambda ratio: np.full_like(np.asarray(ratio, float), border)}
    return plots.phase_diagram(accuracy, "ratio", "n_snr2", boundary=two, limits=(0.5, 1.0),
                               title="Who learns: the product decides")


def starts(accuracy: xr.DataArray, border: float, ceiling: float) -> Figure:
    """Accuracy over the product of the signal-to-noise ratios, by the size of the start; dashed, the border."""
    fig, (ax,) = plots.panels(1)
    names = [f"start {size:g}" for size in accuracy.start.to_numpy()]  # from the smallest to the largest
    paint = dict(zip(names, map(to_hex, plots.look.SHADES(np.linspace(0, 1, len(names)))), strict=True))
    plots.series({name: accuracy.isel(start=k) for k, name in enumerate(paint)}, "pair", paint=paint, joined=True,
                 log="x", levels={"signal alone": ceiling, "chance": 0.5},
                 title="The larger the start, the less there is a border", ax=ax)
    ax.axvline(border, color=plots.look.THEORY, linestyle="--", linewidth=1.4)
    ax.set_xlabel(r"product $n\,\mathrm{SNR}\,\widetilde{\mathrm{SNR}}$")
    return fig


def variation(followed: xr.Dataset, title: str) -> Figure:
    """Accuracy over the epochs with one modality and with two; the same axes for every frame."""
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(5.2, 3.0)
    plots.learning_curves(by_modalities(followed.accuracy), SHORT, log="", levels={"chance": 0.5}, title=title,
                          ylabel="accuracy downstream [fraction]", ax=ax)
    ax.set_ylim(0.45, 1.02)
    return fig
