"""Pictures: a figure as a small PNG, and as the one output of a cell, together with its alt text."""

import base64
import io

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

DPI = 110  # at which a figure's inches are shown; the PNG has more, for screens with finer dots


def png(fig: Figure, dpi: int = 200, colours: int = 256) -> bytes:
    """The figure as a PNG with a palette: the same picture in a third of the bytes, without date or version in it."""
    from PIL import Image

    raw = io.BytesIO()
    fig.savefig(raw, format="png", dpi=dpi, facecolor="white", bbox_inches=None)
    whole = Image.open(raw).convert("RGB")
    picture = whole.quantize(colours, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    small = io.BytesIO()
    picture.save(small, format="png", optimize=True)
    return small.getvalue()


def show(fig: Figure | plt.Axes, alt: str) -> None:
    """Show a figure as the output of a cell, with the text that stands for it where it is not seen; closes the figure.

    The text goes into the output's metadata, from where the book's pages take it, and into its plain-text form.
    Raises ValueError if `alt` is empty.
    """
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError("alt must say in words what the figure shows, for readers who do not see it; it is empty")
    from IPython.display import display

    fig = fig.figure if isinstance(fig, plt.Axes) else fig
    data = {"image/png": base64.b64encode(png(fig)).decode(), "text/plain": alt}
    width = round(fig.get_figwidth() * DPI)
    plt.close(fig)
    display(data, raw=True, metadata={"image/png": {"width": width, "alt": alt}, "flbook": {"alt": alt}})
