"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from torch import Tensor

from flbook import plots
from flbook.plots.schematic import Schematic, encoder, matrix, out, stack, strip

MODEL = Schematic(
    "Contrastive training of pictures with captions",
    [
        ("pairs", {"x": strip(r"$x_i$", "digit, colour", "signal*3 noise*3"),
                   "c": strip(r"$c_i$", "label, colour", "label*3 noise*3")}),
        ("encoders", {"f": encoder(r"$f$"), "g": encoder(r"$g$")}),
        ("features", {"u": stack(r"$u_i$"), "v": stack(r"$v_i$")}),
        ("similarities", {"sim": matrix(r"$\langle u_i,v_j\rangle/\tau$", "pairs, others",
                                        " ".join("g" * i + "c" + "g" * (4 - i) for i in range(5)))}),
        ("loss", {"L": out("InfoNCE")}),
    ],
    ["x c > f g > u v", "u v > sim > L"],
    says="The diagonal holds the pairs; every other sample of the batch is a negative.",
)  # fmt: skip
LOOKS = {"same": (plots.look.TRAIN, "s", "palette of training"), "shifted": (plots.look.TEST, "o", "palette shifted")}
NAMES = {"pixels": "pixels, no network", "grey pixels": "grey pixels, no network", "untrained": "untrained encoder",
         "views": "two views", "recoloured views": "two recoloured views", "captions": "captions: digit, colour",
         "class captions": "captions: digit", "classes": "classifier", "weighted classes": "weighted classifier"}


@plots.look.styled
def both_palettes(found: xr.Dataset, probed: Sequence[str], answered: Sequence[str]) -> Figure:
    """Accuracies on both palettes, of probes (left) and of own answers (right); bars of one standard deviation."""
    fig, (left, right) = plots.panels(2, sharex=True)
    _rows(left, found, probed, "", "A linear probe on top")
    _rows(right, found, answered, "answers_", "Own answers")
    return fig


def _rows(ax: plt.Axes, found: xr.Dataset, partners: Sequence[str], prefix: str, title: str) -> None:
    places = np.arange(len(partners))[::-1]
    for name, (colour, marker, text) in LOOKS.items():
        share = found[prefix + name].sel(partner=list(partners))
        ax.errorbar(share.mean("seed"), places, xerr=share.std("seed"), fmt=marker, color=colour, label=text)
    ax.axvline(0.1, color=plots.look.CHANCE, linestyle=":", linewidth=1)
    ax.set_yticks(places, [NAMES[name] for name in partners])
    ax.set(xlim=(0, 1), ylim=(-0.6 if prefix else -2.1, len(partners) - 0.4), xlabel="accuracy [fraction]", title=title)
    if not prefix:
        ax.legend(loc="lower right", fontsize=9)


@plots.look.styled
def sheet(x: Tensor, digits: Tensor, test: Tensor, test_digits: Tensor, columns: int = 10) -> Figure:
    """One picture of every class from the training pictures above, and one from the test pictures below."""
    rows = [part[(own == digit).nonzero()[0, 0]] for part, own in ((x, digits), (test, test_digits))
            for digit in range(columns)]
    title = "Above: training. Below: palette shifted"
    return plots.picture_sheet(np.stack([row.numpy() for row in rows]), columns=columns, title=title)


@plots.look.styled
def confusion(share: xr.DataArray, title: str) -> Figure:
    """Answers (columns) to every digit (rows), captions without the colour on the left, with it on the right."""
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(5.2, 3.3)
    tables = [share.sel(partner=name).mean("seed").transpose("digit", "answer").values
              for name in ("class captions", "captions")]
    gap = np.full((10, 2), np.nan)
    image = ax.imshow(np.concatenate([tables[0], gap, tables[1]], 1), vmin=0, vmax=1,
                      cmap=plt.get_cmap("viridis", 10))  # few colours, because frames are saved with few
    for middle, text in ((4.5, "captions: digit"), (16.5, "captions: digit, colour")):
        ax.text(middle, -1.2, text, ha="center")
    ax.set_xticks([*range(0, 10, 3), *range(12, 22, 3)], [*range(0, 10, 3)] * 2)
    ax.set_yticks(range(0, 10, 3))
    ax.set(xlabel="answer", ylabel="digit")
    ax.set_title(title, pad=22)
    fig.colorbar(image, ax=ax, label="share", shrink=0.7)
    return fig


@plots.look.styled
def otherwise(found: xr.Dataset) -> Figure:
    """Accuracy on the shifted palette for every way to train."""
    fig, (left, right) = plots.panels(2, sharex=True)
    places = np.arange(found.sizes["variation"])[::-1]
    fig.set_size_inches(5.2, 7.6)
    shown = ((left, "shifted", ("untrained", "views", "recoloured views"), "A linear probe on top"),
             (right, "answers_shifted", ("class captions", "captions"), "Own answers"))
    for ax, name, partners, title in shown:
        for (colour, marker), partner in zip(plots.look.looks(list(partners)).values(), partners, strict=True):
            share = found[name].sel(partner=partner)
            ax.errorbar(share.mean("seed"), places, xerr=share.std("seed"), fmt=marker, color=colour,
                        label=NAMES[partner])
        ax.set_yticks(places, found.variation.values)
        ax.set(xlim=(0, 1), ylim=(-3.6, len(places) - 0.4), xlabel="accuracy [fraction]", title=title)
        ax.legend(loc="lower left", fontsize=9)
    return fig
