"""What a shown figure brings with it: its caption, its variants for the page's width and theme, and its scales."""

import base64
import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from flbook import plots


@pytest.fixture
def shown(monkeypatch):
    """What was displayed: pairs of data and metadata."""
    outputs = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw, metadata: outputs.append((data, metadata)))
    return outputs


def pixels(text: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(text))).convert("RGB")).astype(int)


def a_map(count=1):
    fig, axes = plots.panels(count)
    fig.colorbar(axes[0].pcolormesh(np.arange(100.0).reshape(10, 10)), ax=axes[0])
    return fig, axes


def test_a_line_figure_brings_nothing_else(shown):
    fig, (ax,) = plots.panels()
    ax.plot([1, 2])
    plots.show(fig, alt="A line")
    assert [metadata["flbook"] for _, metadata in shown] == [{"alt": "A line"}]


def test_a_map_keeps_its_colours_on_a_dark_ground(shown):
    fig, _ = a_map()
    fig.axes[0].set_facecolor("white")
    plots.show(fig, alt="A map")
    ((data, metadata),) = shown
    light, dark = pixels(data["image/png"]), pixels(metadata["flbook"]["dark"])
    height, width, _ = light.shape
    assert (light[0, 0] > 250).all() and (dark[0, 0] < 5).all()
    inside = light[int(0.3 * height) : int(0.7 * height), int(0.3 * width) : int(0.7 * width)]
    same = dark[int(0.3 * height) : int(0.7 * height), int(0.3 * width) : int(0.7 * width)]
    assert np.abs(inside - same).max() <= 24  # two palettes of 256 colours
    assert np.ptp(inside) > 100


def test_two_panels_stand_side_by_side_where_there_is_room(shown):
    fig, axes = plots.panels(2, sharex=True)
    for ax in axes:
        ax.plot([1, 2])
    axes[1].set_xlabel("step")
    for ax in axes:
        ax.label_outer()
    plots.show(fig, alt="Two panels")
    ((data, metadata),) = shown
    stacked, beside = pixels(data["image/png"]), pixels(metadata["flbook"]["wide"])
    assert stacked.shape[0] > stacked.shape[1] and beside.shape[1] > 2 * beside.shape[0]
    assert "dark" not in metadata["flbook"]
    assert axes[0].get_xlabel() == "step", "the upper panel names its axis once it stands on the left"


def test_a_caption_stands_under_the_figure_and_a_name_brings_its_scales(shown):
    fig, (ax,) = plots.panels()
    ax.set(xscale="log", xlim=(1, 100), ylim=(-1, 2))
    plots.show(fig, alt="Axes", caption="What to *look*\n for: $x$.", name="fig-one")
    (_, metadata), (data, below) = shown
    assert data["text/markdown"] == "*Figure.* What to *look* for: $x$."
    assert below["flbook"] == {"caption": "What to *look* for: $x$.", "name": "fig-one"}
    axes = metadata["flbook"]["axes"]
    assert axes["x"] == {"from": 1, "to": 100, "log": True} and axes["y"] == {"from": -1, "to": 2, "log": False}
    left, low, right, high = axes["box"]
    assert 0 < left < right < 1 and 0 < low < high < 1


def test_a_name_without_a_caption_is_refused(shown):
    with pytest.raises(ValueError, match="^the figure 'fig-one' has a name but no caption"):
        plots.show(plots.panels()[0], alt="Axes", name="fig-one")
    plt.close("all")
