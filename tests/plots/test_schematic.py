"""Schematics: what they say, what they refuse, and that nothing in them overlaps or is cut off."""

import base64
import io
from itertools import combinations

import numpy as np
import pytest
from drawn_models import MODELS
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from flbook import plots
from flbook.plots.schematic import PHONE, WIDTH, Schematic, box, out, strip

LOOKS = [(dark, phone) for dark in (False, True) for phone in (False, True)]


def small(**kwargs):
    stages = [("input", {"x": strip("$x$", "a patch", "signal")}), ("output", {"f": out("$f(x)$", **kwargs)})]
    return Schematic("A linear network", stages, ["x > f | $w$"], says="It has no bias.")


def texts(fig):
    """The boxes of all texts that show, in pixels."""
    renderer = FigureCanvasAgg(fig).get_renderer()
    return {text: text.get_window_extent(renderer) for text in fig.axes[0].texts if text.get_text()}


@pytest.mark.parametrize("phone", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_texts_neither_overlap_nor_leave_the_picture(name, phone):
    fig = MODELS[name].draw(phone=phone)
    found = texts(fig)
    width, height = fig.get_size_inches() * fig.dpi
    for text, at in found.items():
        assert at.x0 >= 0 and at.y0 >= 0 and at.x1 <= width and at.y1 <= height, text.get_text()
    for (one, a), (two, b) in combinations(found.items(), 2):
        apart = min(a.x1, b.x1) - max(a.x0, b.x0) <= 0 or min(a.y1, b.y1) - max(a.y0, b.y0) <= 0
        assert apart, (one.get_text(), two.get_text())


@pytest.mark.parametrize("phone", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_things_neither_overlap_nor_leave_the_picture(name, phone):
    model = MODELS[name]
    fig = model.draw(phone=phone)
    width, height = fig.get_size_inches() * fig.dpi
    boxes = {}
    for key in model.nodes:
        (x, y), (w, h) = model._xy(*model.at[key]), model._xy(*model.size[key])
        boxes[key] = x - w / 2, x + w / 2, y - h / 2, y + h / 2
    for left, right, top, bottom in boxes.values():
        assert left >= 0 and top >= 0 and right <= width and bottom <= height
    for (one, a), (two, b) in combinations(boxes.items(), 2):
        assert min(a[1], b[1]) <= max(a[0], b[0]) or min(a[3], b[3]) <= max(a[2], b[2]), (one, two)


def test_the_words_make_the_alt_text():
    assert small().alt == "Schematic. A linear network. Input: a patch, x. Output: f(x). It has no bias."


def test_a_thing_can_be_said_otherwise():
    assert "Output: the answer." in small(alt="the answer").alt


@pytest.mark.parametrize("name", MODELS)
def test_no_tex_is_left_in_the_alt_text(name):
    assert not set("\\$_{}^") & set(MODELS[name].alt)


@pytest.mark.parametrize("wire", ["x > g", "z ~> f"])
def test_wires_name_known_things(wire):
    with pytest.raises(ValueError, match=r"wires name \['[gz]'\]; the things are x, f"):
        Schematic("A network", [("", {"x": strip("$x$")}), ("", {"f": out("$f$")})], [wire])


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match="two things are called 'x'"):
        Schematic("A network", [("", {"x": strip("$x$")}), ("", {"x": out("$f$")})], [])


def test_what_is_too_wide_is_refused():
    stages = [(f"stage {k}", {f"b{k}": box("$f(x) + g(x)$")}) for k in range(9)]
    with pytest.raises(ValueError, match=r"'A long one' does not fit: -?\d+ pixels between stages \(14 are needed\)"):
        Schematic("A long one", stages, ["b0 > b1"]).draw()


def test_what_is_too_wide_for_a_phone_is_refused():
    things = {f"b{k}": box("$f(x)$") for k in range(9)}
    wide = Schematic("A wide one", [("in", things), ("out", {"f": out("$f$")})], ["b0 > f"])
    with pytest.raises(ValueError, match="'A wide one' does not fit on a phone"):
        wide.draw(phone=True)


def test_a_page_gets_four_pictures_on_a_transparent_ground():
    pictures = {name: Image.open(io.BytesIO(png)).convert("RGBA") for name, png in small().pictures().items()}
    assert set(pictures) == {"light", "dark", "phone", "phone_dark"}
    for name, picture in pictures.items():
        assert picture.width == 2 * (PHONE if "phone" in name else WIDTH)
        pixels = np.asarray(picture).astype(int)
        assert pixels[0, 0, 3] == 0
        ink = pixels[pixels[..., 3] > 250][:, :3].mean(1)
        assert np.median(ink) > 120 if "dark" in name else np.median(ink) < 120


@pytest.mark.parametrize("name", MODELS)
def test_four_pictures_are_small(name):
    assert sum(map(len, MODELS[name].pictures().values())) < 100_000


def test_show_gives_the_notebook_one_and_the_page_all(monkeypatch):
    outputs = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw, metadata: outputs.append((data, metadata)))
    plots.show(small(), caption="One *layer*.", name="fig-small")
    (data, metadata), (_, below) = outputs
    assert data["text/plain"] == metadata["image/png"]["alt"] == small().alt
    assert set(metadata["flbook"]["schematic"]) == {"dark", "phone", "phone_dark"}
    assert Image.open(io.BytesIO(base64.b64decode(data["image/png"]))).width == 2 * WIDTH
    assert below["flbook"] == {"caption": "One *layer*.", "name": "fig-small"}


def test_a_drawing_leaves_the_session_alone():
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    for dark, phone in LOOKS:
        small().draw(dark, phone)
    assert plt.get_fignums() == before


def test_the_same_words_give_the_same_bytes():
    assert small().pictures() == small().pictures()
