"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Callable, Sequence

import torch
import xarray as xr
from matplotlib.figure import Figure
from torch import Tensor

from flbook import fits, plots
from flbook.plots.schematic import strip, two_layer_cnn

MODEL = two_layer_cnn(strip(r"$y\mu+u$", "picture", "signal", alt="a picture, y times mu plus u"))


def side_by_side(parts: Sequence[Tensor], names: Sequence[str], brightest: float, height: float = 2.0) -> Figure:
    """Square pictures beside each other, on one grey scale from -brightest to brightest."""
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(1.25 * len(parts), height)
    edge = round(parts[0].numel() ** 0.5)
    gap = torch.full((edge, 4), torch.nan)
    row = torch.cat([torch.cat([part.reshape(edge, edge), gap], 1) for part in parts], 1)
    ax.imshow(row[:, :-4], cmap="gray", vmin=-brightest, vmax=brightest)
    for k, name in enumerate(names):
        ax.text((edge + 4) * k + edge / 2, edge + 2, name, ha="center", va="top", fontsize=12)
    ax.axis("off")
    return fig


def errors_and_share(network: xr.Dataset, error: Callable, share: Callable) -> Figure:
    """Errors of the network against the SNR, and what its decisions rest on.

    error, share: of the averaging classifier, by the SNR.
    """
    fig, (left, right) = plots.panels(2, sharex=True)
    curves = {"test_error": "unseen digits", "train_error": "training"}
    plots.learning_curves(network, curves, x="snr", levels={"chance": 0.5}, title="Zero training error, any test error",
                          ylabel="error [fraction]", theory={"averaging": error}, ax=left)
    both = network.rename(noise_share="noise_in_decision")
    curves = {"noise_in_decision": "noise share", "test_error": "test error"}
    plots.learning_curves(both, curves, x="snr", title="Memorised, and yet right", ylabel="fraction",
                          theory={"averaging": share}, ax=right)
    return fig


def one_formula(simulated: xr.Dataset, closed_form: Callable) -> Figure:
    """Test error of the averaging classifier against r, for three shares of flips. closed_form: by r and the share."""
    lines = {"closed form": lambda r: closed_form(r, 0), "_": lambda r: closed_form(r, 0.1),
             "__": lambda r: closed_form(r, 0.2)}
    return plots.collapse(simulated.test_error, x="r", groups="flip_prob", levels={"chance": 0.5},
                          title="One formula, every r and p", theory=lines)


def where_half(boundary: Callable, held: Sequence[str]) -> Figure:
    """Where half of a decision rests on noise, and where the error is one quarter, against d and against n.

    boundary: curves and fitted law by quantity, level and what varies.
    """
    fig, axes = plots.panels(2, sharey=True)
    axes[0].set_ylim(0.03, 1.0)
    parts = ("noise_share", 0.5, "share ½:", plots.NOISE, "s"), ("test_error", 0.25, "error ¼:", plots.TEST, "o")
    for ax, along, title in zip(axes, held, ("Larger pictures", "More samples"), strict=True):
        for quantity, level, name, colour, marker in parts:
            curves, law = boundary(quantity, level, along)
            where = fits.crossing(curves, "snr", level).assign_attrs(long_name="SNR")
            plots.scaling(where, along, law, name=name, colour=colour, marker=marker, title=title, ax=ax)
    return fig
