"""What the page makes of a notebook's figure: one figure with caption and number, and the variant that fits."""

import json
from base64 import b64encode

import pytest

from flbook.book import figures

PICTURE = b64encode(b"narrow").decode()


@pytest.fixture
def read(tmp_path):
    """A function that reads a notebook of these outputs as the page does, and returns its only cell."""

    def notebook(*outputs):
        cell = {"cell_type": "code", "metadata": {}, "outputs": list(outputs)}
        figures.on_page({"cells": [cell]}, tmp_path / "_images", "../../")
        return cell

    return notebook


def picture(**flbook):
    return {"data": {"image/png": PICTURE}, "metadata": {"flbook": {"alt": 'a "b"\nc', **flbook}}}


def test_the_output_below_becomes_the_caption(read):
    caption = {"caption": "Look.", "name": "fig-x"}
    below = {"data": {"text/markdown": "*Figure.* Look."}, "metadata": {"flbook": caption}}
    cell = read(picture(), below)
    assert cell["outputs"] == [picture()]
    assert cell["metadata"]["mystnb"]["figure"] == caption


def test_a_picture_without_variants_stays(read):
    assert read(picture()) == {"cell_type": "code", "metadata": {}, "outputs": [picture()]}


def test_the_browser_chooses_by_width(read, tmp_path):
    (output,) = read(picture(wide=b64encode(b"wide").decode()))["outputs"]
    html = output["data"]["text/html"]
    assert "image/png" not in output["data"] and 'alt="a &quot;b&quot; c"' in html and 'class="figure two"' in html
    stored = {path.read_bytes(): path.name for path in (tmp_path / "_images").iterdir()}
    assert set(stored) == {b"narrow", b"wide"}
    assert f'media="(min-width: 700px)" srcset="../../_images/{stored[b"wide"]}"' in html
    assert f'<img src="../../_images/{stored[b"narrow"]}"' in html


def test_the_theme_chooses_the_map(read):
    dark = b64encode(b"dark").decode()
    (output,) = read(picture(dark=dark))["outputs"]
    assert output["data"]["text/html"].count("<picture") == 2
    assert 'class="map only-light"' in output["data"]["text/html"]
    assert 'class="map only-dark"' in output["data"]["text/html"]


def test_a_named_figure_says_where_a_prediction_goes(read):
    axes = {"box": [0.1, 0.1, 0.9, 0.9], "y": {"from": 0, "to": 1, "log": False}}
    (output,) = read(picture(axes=axes))["outputs"]
    assert "data-axes='{&quot;box&quot;: [0.1" in output["data"]["text/html"]


def test_a_page_borrows_a_live_figure_from_its_lecture(tmp_path):
    live = {"data": {"text/html": ["<p>`one`</p>\n", "<p>two</p>"]}, "metadata": {"flbook": {"live": "benign"}}}
    (tmp_path / "chapter").mkdir()
    cells = [{"cell_type": "markdown"}, {"cell_type": "code", "outputs": [picture(), live]}]
    (tmp_path / "chapter/lecture.ipynb").write_text(json.dumps({"cells": cells}))
    text = figures.with_live("# Title\n\n<!-- live: benign -->\n\nText\n", tmp_path)
    assert text == "# Title\n\n~~~~~~~~~~~~{raw} html\n<p>`one`</p>\n<p>two</p>\n~~~~~~~~~~~~\n\nText\n"
    with pytest.raises(ValueError, match="the live figure 'malign', which no lecture shows"):
        figures.with_live("<!-- live: malign -->", tmp_path)
