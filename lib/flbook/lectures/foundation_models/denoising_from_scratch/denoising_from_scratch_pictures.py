"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from torch import Tensor

from flbook import plots
from flbook.plots.schematic import Schematic, encoder, matrix, op, out

_CLEAN = "SSSSSSSS SSssssSS SSSSSssS SSSsssSS SSSSSssS SSSSSssS SSssssSS SSSSSSSS"
_NOISE = " ".join(["n" * 8] * 8)
MODEL = Schematic(
    "A denoiser and its loss",
    [
        ("drawn", {"x0": matrix(r"$x_0$", "clean", _CLEAN, lane=0),
                   "eps": matrix(r"$\epsilon$", "noise", _NOISE, lane=1)}),
        ("mixed", {"plus": op("$+$", lane=0)}),
        ("noisy", {"xt": matrix(r"$x_t$", "step $t$", _CLEAN.replace("S", "n"), lane=0)}),
        ("network", {"net": encoder(r"$f_W$", lane=0)}),
        ("its guess", {"hat": matrix(r"$f_W(x_t,t)$", "", _NOISE, lane=0)}),
        ("loss", {"L": out(r"$\frac{1}{d}\,\|f_W-\epsilon\|^2$", lane=0, alt="the mean squared error")}),
    ],
    [r"x0 > plus | $\sqrt{\bar\alpha_t}$", r"eps > plus | $\sqrt{1-\bar\alpha_t}$",
     "plus > xt > net > hat > L", "eps > L"],
    says="The network sees the mixture and the number of the step, and is to name the noise in it.",
)  # fmt: skip

NAMES = {"network_test": "network", "memoriser_test": "exact minimiser", "kernel_smoothed": "smoothed",
         "linear_wiener": "linear", "test_class_gaussians": "Gaussians"}  # fmt: skip


def sheet(rows: Mapping[str, Tensor]) -> Figure:
    """Grey pictures ``(k, 1, 8, 8)`` in rows, each row under its name; ink is dark."""
    fig, (ax,) = plots.panels()
    count, size = len(next(iter(rows.values()))), 8
    whole = np.full((len(rows) * (size + 4), count * (size + 1) - 1), np.nan)
    for k, pictures in enumerate(rows.values()):
        for i, picture in enumerate(pictures):
            top, left = k * (size + 4) + 4, i * (size + 1)
            whole[top : top + size, left : left + size] = picture[0].numpy().clip(-0.9, 1.9)
    ax.imshow(whole, cmap="gray_r", interpolation="nearest")
    for k, name in enumerate(rows):
        ax.text(-0.5, k * (size + 4) + 3, name, fontsize=9, fontweight="bold", va="bottom")
    ax.axis("off")
    fig.set_size_inches(5.2, 5.2 * whole.shape[0] / whole.shape[1] + 0.1)
    return fig


def nearest_pictures(x: Tensor, training: Tensor) -> Tensor:
    """For each picture the nearest training picture."""
    return training[(x.flatten(1)[:, None] - training.flatten(1)).square().sum(-1).argmin(-1)]


def by_noise(found: xr.Dataset) -> Figure:
    """Losses against the number of noising steps: on new pictures, and on training pictures."""
    fig, (left, right) = plots.panels(2)
    found = found.rename(wiener_test="linear_wiener", smoothed_test="kernel_smoothed",
                         class_gaussians_test="test_class_gaussians")  # colours go by name
    plots.learning_curves(found, NAMES, x="t", log="xy", title="New pictures", ylabel="loss per pixel", ax=left)
    seen = {"network_train": "network", "memoriser_train": "exact minimiser"}
    plots.learning_curves(found, seen, x="t", log="x", title="Training pictures", ylabel="loss per pixel", ax=right)
    right.set_ylim(-0.04, 1.0)
    return fig


def in_the_plane(points: Tensor, places: Tensor, arrows: Mapping[str, Tensor], title: str) -> Figure:
    """Samples on their way, and at some places arrows that lead to less noise: the network's and the exact ones."""
    fig, (ax,) = plots.panels()
    fig.set_size_inches(4.6, 3.4)
    ax.plot(*points.T.numpy(), ".", color=plots.TRAIN, markersize=3, alpha=0.6, zorder=1)
    colours = {"exact": (plots.THEORY, 0.012), "network": (plots.looks(["network"])["network"][0], 0.005)}
    for name, arrow in arrows.items():
        colour, width = colours[name]
        ax.quiver(*places.T.numpy(), *arrow.T.numpy(), color=colour, width=width, label=name, angles="xy",
                  scale_units="xy", scale=3, alpha=0.35 if name == "exact" else 1.0)  # fmt: skip
    ax.set(xlim=(-4, 4), ylim=(-3, 3), title=title, xlabel="first coordinate", ylabel="second coordinate")
    if arrows:
        fig.legend(loc="outside lower center", ncols=2, fontsize=9)
    return fig
