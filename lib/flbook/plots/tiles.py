"""Small pictures side by side: coloured images, and filters, each weight as bright as it is large."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from flbook.plots.look import SIZE, panels, styled


def sizes(filters: np.ndarray) -> np.ndarray:
    """Sizes of weights as colours: black is zero, full is 2.5 times a filter's rms.

    Parameters
    ----------
    filters
        Weights, shape ``(count, 3, rows, columns)``.

    Returns
    -------
    numpy.ndarray
        In [0, 1], of the same shape.
    """
    rms = np.sqrt((filters**2).mean(axis=(1, 2, 3), keepdims=True))
    return np.clip(np.abs(filters) / np.where(rms > 0, 2.5 * rms, 1.0), 0, 1)


def mosaic(tiles: np.ndarray, columns: int) -> np.ndarray:
    """Tiles in one picture, a white pixel between them.

    Parameters
    ----------
    tiles
        Colours in [0, 1], shape ``(count, 3, rows, columns)``.
    columns
        Tiles a row.

    Returns
    -------
    numpy.ndarray
        Of shape ``(height, width, 3)``.
    """
    count, _, height, width = tiles.shape
    lines = -(-count // columns)
    whole = np.ones((lines * (height + 1) - 1, columns * (width + 1) - 1, 3))
    for k, tile in enumerate(tiles):
        top, left = (k // columns) * (height + 1), (k % columns) * (width + 1)
        whole[top : top + height, left : left + width] = tile.transpose(1, 2, 0)
    return whole


@styled
def picture_sheet(pictures: np.ndarray, captions: Sequence[str] = (), columns: int = 6, title: str = "") -> Figure:
    """Coloured images, stretched together to the full range, with a word under each.

    Parameters
    ----------
    pictures
        Colours on any scale, shape ``(count, 3, rows, columns)``.
    captions
        The words, one an image; none for no words.
    columns
        Images a row.
    title
        Of the sheet.

    Returns
    -------
    Figure
        A new one.
    """
    pictures = np.asarray(pictures, dtype=float)
    scaled = (pictures - pictures.min()) / np.ptp(pictures)
    fig, (ax,) = panels()
    ax.imshow(mosaic(scaled, columns), interpolation="nearest")
    ax.axis("off")
    ax.set_title(title)
    height, width = pictures.shape[2:]
    for k, caption in enumerate(captions):
        x, y = (k % columns) * (width + 1) + width - 0.9, (k // columns) * (height + 1) + height - 0.9
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.2}
        ax.text(x, y, caption, ha="right", va="bottom", fontsize=9, fontweight="bold", bbox=box)
    fig.set_size_inches(SIZE[0], SIZE[0] * (len(pictures) // columns) / columns + 0.4)
    return fig


@styled
def filter_sheet(groups: Mapping[str, np.ndarray], columns: int = 8) -> Figure:
    """Groups of filters above each other, each group under its name; black is zero.

    Parameters
    ----------
    groups
        Name -> filters of shape ``(count, 3, rows, columns)``.
    columns
        Filters a row.

    Returns
    -------
    Figure
        A new one, a panel for each group.
    """
    import matplotlib.pyplot as plt

    sheets = {name: mosaic(sizes(np.asarray(filters, dtype=float)), columns) for name, filters in groups.items()}
    heights = [sheet.shape[0] / sheet.shape[1] * SIZE[0] for sheet in sheets.values()]
    fig, axes = plt.subplots(
        len(sheets), 1, squeeze=False, height_ratios=heights, figsize=(SIZE[0], sum(heights) + 0.36 * len(sheets))
    )
    for ax, (name, sheet) in zip(axes[:, 0], sheets.items(), strict=True):
        ax.imshow(sheet, interpolation="nearest")
        ax.set_title(name)
        ax.axis("off")
    return fig
