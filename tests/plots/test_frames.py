"""Frames: a slider over pictures, small, the same at every run, and working in a browser from the file system."""

import base64
import io
import os
import sys
from html.parser import HTMLParser
from pathlib import Path

import IPython.display
import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from flbook.plots.frames import FRAME_LIMIT, frames

BLUE = (0, 114, 178)


def draw(value):
    figure, axes = plt.subplots(figsize=(4, 3))
    axes.plot(np.linspace(0, 1, 50) ** value, color="#0072B2", linewidth=3)
    return figure


def busy(value):
    figure, axes = plt.subplots(figsize=(4, 3))
    axes.imshow(np.random.default_rng(0).random((400, 400)), aspect="auto")
    return figure


@pytest.fixture
def show(monkeypatch):
    def shown(draw=draw, values=(0.5, 1, 2), label="power p", alt=lambda p: f"A curve of power {p}.", **more):
        outputs = []
        monkeypatch.setattr(IPython.display, "display", lambda data, raw, metadata: outputs.append((data, metadata)))
        frames(draw, values, label=label, alt=alt, **more)
        return outputs[0]

    return shown


class Tags(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.tags = {}
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.setdefault(tag, []).append(dict(attrs))


def test_it_opens_where_it_is_told(show):
    data, metadata = show(opens=2)
    tags = Tags(data["text/html"]).tags
    assert data["text/plain"] == tags["img"][0]["alt"] == metadata["image/png"]["alt"] == "A curve of power 2."
    assert tags["input"][0]["value"] == "2" and tags["img"][0]["src"].endswith(data["image/png"])
    with pytest.raises(ValueError, match="opens must be one of"):
        show(opens=3)


def test_large_numbers_are_said_whole(show):
    data, _ = show(lambda value: draw(1), values=(10_000.5, 8_000_000, 0.125), alt=lambda value: f"At {value}.")
    assert "<strong>8\u202f000\u202f000</strong>" in data["text/html"] and '"text": "0.125"' in data["text/html"]


def test_one_output_for_every_place(show):
    data, metadata = show()
    png = base64.b64decode(data["image/png"])
    image = Image.open(io.BytesIO(png))
    assert image.mode == "P" and image.size == (576, 432) and len(png) <= FRAME_LIMIT
    near = np.abs(np.asarray(image.convert("RGB")).astype(int) - BLUE).sum(-1).min()
    assert near <= 12, "the palette keeps the colour code"
    assert data["text/plain"] == "A curve of power 1." == metadata["image/png"]["alt"] == metadata["flbook"]["alt"]
    tags = Tags(data["text/html"]).tags
    assert tags["img"][0]["src"].endswith(data["image/png"]) and tags["img"][0]["alt"] == "A curve of power 1."
    assert (tags["img"][0]["width"], tags["img"][0]["height"]) == ("384", "288")
    slider = tags["input"][0]
    assert (slider["max"], slider["value"], slider["aria-label"]) == ("2", "1", "power p")
    assert not plt.get_fignums()


def test_it_is_the_same_at_every_run_and_asks_nobody(show):
    first, again = show(), show()
    assert first == again
    assert first[0]["text/html"] != show(label="exponent p")[0]["text/html"]
    assert "://" not in first[0]["text/html"]


def test_words_cannot_end_the_markup(show):
    data, _ = show(label='p < "q"', alt=lambda p: f'</script><b> "{p}" & more')
    tags = Tags(data["text/html"]).tags
    assert "b" not in tags and len(tags["script"]) == 1
    assert tags["input"][0]["aria-label"] == 'p < "q"'
    assert tags["img"][0]["alt"] == '</script><b> "1" & more'


def test_too_large_a_frame_is_refused(show):
    with pytest.raises(ValueError, match=r"largest, at 0.5, \d+ kB of at most 25; draw one panel") as error:
        show(draw=busy)
    assert "\n" not in str(error.value) and not plt.get_fignums()


def test_too_many_frames_are_refused(show, monkeypatch):
    monkeypatch.setattr(sys.modules[frames.__module__], "TOTAL_LIMIT", 10_000)
    with pytest.raises(ValueError, match=r"all 9 take \d+ kB of at most 10, .* fewer frames"):
        show(values=np.linspace(0.5, 2, 9))


def test_bad_arguments(show):
    with pytest.raises(ValueError, match="values has 1 entries; a slider needs at least two"):
        show(values=[1])
    with pytest.raises(ValueError, match=r"alt\(2\) is empty; it must describe the frame"):
        show(alt=lambda p: "" if p == 2 else "words")


@pytest.fixture(scope="module")
def browser():
    """The system's Chromium; required where FLBOOK_BROWSER says so."""
    found = next(
        (p for p in ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome") if Path(p).exists()),
        None,
    )
    required = os.environ.get("FLBOOK_BROWSER") == "required"
    if found is None and not required:
        pytest.skip("no Chromium on this machine")
    playwright = (
        pytest.importorskip("playwright.sync_api") if not required else __import__("playwright.sync_api").sync_api
    )
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.mark.parametrize("width", [360, 1000])
def test_the_slider_moves_the_picture_and_its_words(show, browser, tmp_path, width):
    file = tmp_path / "page.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><body>{show()[0]['text/html']}", encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 700})
    troubles = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
    page.goto(file.as_uri())
    image, slider = page.locator("img"), page.locator("input")

    def state():
        said = slider.get_attribute("aria-valuetext"), page.locator("strong").inner_text()
        return image.get_attribute("src"), image.get_attribute("alt"), *said

    seen = [state()]
    slider.focus()
    for key in ("ArrowRight", "Home"):
        page.keyboard.press(key)
        seen.append(state())
        page.wait_for_function("document.images[0].complete && document.images[0].naturalWidth > 0")
    assert [words for _, *words in seen] == [[f"A curve of power {p}.", f"{p}", f"{p}"] for p in (1, 2, 0.5)]
    assert len({source for source, *_ in seen}) == 3
    page.keyboard.press("ArrowRight")
    assert state() == seen[0]
    assert page.evaluate("document.documentElement.scrollWidth") <= width and not troubles
    page.close()
