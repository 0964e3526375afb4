"""Pictures: a figure as a small PNG, and as the output of a cell, with its alt text, its caption and its variants.

A notebook shows one picture. The page, which knows its width and its theme, has more to choose from: panels side by
side, and maps whose colours stay while everything around them is turned to a dark ground. They travel in the output's
metadata, where a notebook's other readers do not look.
"""

import base64
import io
from typing import cast

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.image import AxesImage

from flbook.plots.schematic import WIDTH, Schematic

DPI = 110  # at which a figure's inches are shown; the PNG has more, for screens with finer dots
WIDE = (8.2, 3.5)  # inches of two panels side by side: shown in the page's column, their text is still 9 pt


def png(fig: Figure, dpi: int = 200, colours: int = 256) -> bytes:
    """The figure as a PNG with a palette: the same picture in a third of the bytes, without date or version in it.

    Parameters
    ----------
    fig
        The figure, which stays open.
    dpi
        Pixels an inch.
    colours
        Size of the palette, at most 256.

    Returns
    -------
    bytes
        The content of the file.
    """
    return small(drawn(fig, dpi), colours)


def show(fig: Figure | plt.Axes | Schematic, alt: str = "", caption: str = "", name: str = "") -> None:
    """Show a figure as the output of a cell, with the text that stands for it where it is not seen; closes the figure.

    Parameters
    ----------
    fig
        The figure, or one of its axes; or the schematic of a model, which a page shows as its width and theme ask.
    alt
        What the figure shows, in words; it goes into the output's metadata, from where the book's pages take it. A
        schematic says it itself if this is empty.
    caption
        What to look for, as Markdown with formulas but without cross-references, because it stands under the figure in
        every notebook too. The page numbers the figures that have one.
    name
        By which the page refers to the figure, such as ``fig-relu-heatmap-race``.

    Raises
    ------
    ValueError
        If `alt` is empty, or if there is a name and no caption.
    """
    if isinstance(fig, Schematic):
        _show_schematic(fig, alt or fig.alt, caption, name)
        return
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError("alt must say in words what the figure shows, for readers who do not see it; it is empty")
    from IPython.display import display

    figure = cast(Figure, fig.figure) if isinstance(fig, plt.Axes) else fig
    picture, variants = _variants(figure)
    scales = {"axes": _scales(figure.axes[0])} if name and figure.axes else {}
    data = {"image/png": _text(picture), "text/plain": alt}
    width = round(figure.get_figwidth() * DPI)
    plt.close(figure)
    flbook = {"alt": alt} | scales | {key: _text(value) for key, value in variants.items()}
    display(data, raw=True, metadata={"image/png": {"width": width, "alt": alt}, "flbook": flbook})
    under(caption, name)


def _show_schematic(schematic: Schematic, alt: str, caption: str, name: str) -> None:
    """A notebook shows the light picture of a schematic, on a light ground; the others travel with it."""
    from IPython.display import display

    pictures = {key: _text(value) for key, value in schematic.pictures().items()}
    data = {"image/png": pictures.pop("light"), "text/plain": alt}
    shown = {"width": WIDTH, "alt": alt, "needs_background": "light"}
    display(data, raw=True, metadata={"image/png": shown, "flbook": {"alt": alt, "schematic": pictures}})
    under(caption, name)


def under(caption: str, name: str = "") -> None:
    """Write a caption under the figure that was shown last; nothing if it is empty.

    Parameters
    ----------
    caption
        Markdown; line breaks become spaces.
    name
        By which the page refers to the figure; empty for none.
    """
    from IPython.display import display

    if not caption:
        if name:
            raise ValueError(f"the figure {name!r} has a name but no caption; only a figure with one is numbered")
        return
    text = " ".join(caption.split())
    data = {"text/markdown": f"*Figure.* {text}", "text/plain": f"Figure. {text}"}
    display(data, raw=True, metadata={"flbook": {"caption": text, "name": name}})


def _variants(fig: Figure) -> tuple[bytes, dict[str, bytes]]:
    """The picture, and what the page shows instead where there is room, or on a dark ground."""
    stacked = drawn(fig)
    maps = any(map(holds_map, fig.axes))
    found = {"dark": small(_turned(stacked, fig))} if maps else {}
    if getattr(fig, "flbook_panels", 1) == 2:
        beside = _side_by_side(fig)
        found["wide"] = small(beside)
        if maps:
            found["wide_dark"] = small(_turned(beside, fig))
    return small(stacked), found


def _scales(ax: plt.Axes) -> dict:
    """Where the axes lie in the picture and what they span, so that the page can draw a reader's prediction there."""
    box = ax.get_position()
    spans = {
        name: {"from": float(f"{low:.6g}"), "to": float(f"{high:.6g}"), "log": scale == "log"}
        for name, (low, high), scale in (
            ("x", ax.get_xlim(), ax.get_xscale()),
            ("y", ax.get_ylim(), ax.get_yscale()),
        )
    }
    return {"box": [round(float(side), 4) for side in (box.x0, box.y0, box.x1, box.y1)], **spans}


def _side_by_side(fig: Figure):
    """The figure's two panels beside each other, drawn; its size is then as before."""
    size, grid = fig.get_size_inches(), GridSpec(1, 2, figure=fig)
    left, right = fig.axes[:2]
    if left.get_shared_x_axes().joined(left, right):  # above each other the lower one spoke for both
        left.tick_params(labelbottom=True)
        left.set_xlabel(left.get_xlabel() or right.get_xlabel())
    for k, ax in enumerate((left, right)):
        ax.set_subplotspec(grid[k])
    fig.set_size_inches(*WIDE)
    picture = drawn(fig)
    fig.set_size_inches(*size)
    return picture


def holds_map(ax: plt.Axes) -> bool:
    """Whether its colours are a scale, or a picture's own.

    Parameters
    ----------
    ax
        The axes.

    Returns
    -------
    bool
        Does it hold a mesh or an image?
    """
    return any(isinstance(artist, QuadMesh | AxesImage) for artist in ax.get_children())


def _turned(picture, fig: Figure):
    """The picture on a dark ground: light becomes dark and hues stay, except inside maps, which stay as they are."""
    from PIL import Image

    light = np.asarray(picture).astype(int)
    dark = 255 + light - light.max(-1, keepdims=True) - light.min(-1, keepdims=True)
    height, width = light.shape[:2]
    for ax in filter(holds_map, fig.axes):
        box = ax.get_position()
        rows = slice(round(height * (1 - box.y1)), round(height * (1 - box.y0)))
        columns = slice(round(width * box.x0), round(width * box.x1))
        dark[rows, columns] = light[rows, columns]
    return Image.fromarray(dark.astype(np.uint8))


def drawn(fig: Figure, dpi: int = 200):
    """The figure as an image without a palette: `savefig` would lay it out twice, and encode what is decoded here.

    Parameters
    ----------
    fig
        The figure, which stays open.
    dpi
        Pixels an inch.

    Returns
    -------
    PIL.Image.Image
        In RGB.
    """
    from PIL import Image

    before = fig.canvas, fig.dpi
    canvas, fig.dpi = FigureCanvasAgg(fig), dpi
    try:
        canvas.draw()
        return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    finally:
        fig.dpi = before[1]
        fig.set_canvas(before[0])


def small(picture, colours: int = 256) -> bytes:
    """An image as a PNG with a palette.

    Parameters
    ----------
    picture
        An image of PIL, in RGB.
    colours
        Size of the palette, at most 256.

    Returns
    -------
    bytes
        The content of the file.
    """
    from PIL import Image

    saved = io.BytesIO()
    few = picture.quantize(colours, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    few.save(saved, format="png", optimize=True)
    return saved.getvalue()


def _text(picture: bytes) -> str:
    return base64.b64encode(picture).decode()
