"""Colours and markers: one for each model by name, all of them readable, and none given by hand on a page."""

import ast
import json
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

from flbook.book import kinds
from flbook.plots import look

PAGES = sorted((Path(__file__).parents[2] / "book").glob("*/*.ipynb"))
NAMED = {*look.MODELS, "network_small", "network, 90°", "kernel ridge", "pretrained attention"}


def test_every_model_has_a_look_of_its_own():
    found = list(look.MODELS.values())
    kin = {("linear attention", "attention")}  # one architecture under two names
    twins = {(a, b) for a in look.MODELS for b in look.MODELS if a > b and look.MODELS[a] == look.MODELS[b]}
    assert twins <= kin and len(set(found)) >= len(found) - len(kin)


@pytest.mark.parametrize("colour", [*(colour for colour, _ in look.MODELS.values()), *look.OTHERS])
def test_thin_lines_and_labels_are_readable(colour):
    assert look.contrast(colour) >= 4.5


@pytest.mark.parametrize("colour", [look.SIGNAL, look.NOISE, look.TEST, look.TRAIN])
def test_text_in_the_colours_of_quantities_is_darkened_until_it_is_readable(colour):
    assert look.contrast(look.ink(colour)) >= 4.5
    hue, own = (np.array(mpl.colors.rgb_to_hsv(mpl.colors.to_rgb(c)))[0] for c in (look.ink(colour), colour))
    assert abs(hue - own) < 0.01


def test_contrast_is_that_of_the_guidelines():
    assert look.contrast("black") == pytest.approx(21) and look.contrast("white") == pytest.approx(1)
    assert look.contrast("#777777") == pytest.approx(4.48, abs=0.01)  # the guidelines' well-known near miss


@pytest.mark.parametrize("name", sorted(NAMED))
def test_a_model_looks_the_same_wherever_it_stands(name):
    alone, among = look.looks([name])[name], look.looks(["other", "gamma", name])[name]
    assert alone == among == look.MODELS[look.model(name)]


def test_variants_of_a_model_share_its_colour_only():
    found = look.looks(["network 90°", "network 30°", "lazy"])
    assert found["network 90°"][0] == found["network 30°"][0] != found["lazy"][0]
    assert len(set(found.values())) == 3


def test_quantities_have_the_colours_of_their_meaning():
    found = look.looks(["gamma", "rho", "train_error", "test_error", "test_flipped", "other"])
    assert [colour for colour, _ in found.values()][:4] == [look.SIGNAL, look.NOISE, look.TRAIN, look.TEST]
    assert len({colour for colour, _ in found.values()}) == 6


def test_what_is_no_model_gets_a_colour_not_yet_taken():
    found = look.looks(["a", "b", "gamma", "c", "lazy"])
    assert len({colour for colour, _ in found.values()}) == 5


def test_series_along_a_scale_are_seen_on_white():
    assert min(look.contrast(look.SHADES(part / 10)[:3]) for part in range(11)) >= 3


def test_the_style_cycles_through_readable_colours():
    with mpl.rc_context():
        mpl.style.use(look._FILE)
        cycle = mpl.rcParams["axes.prop_cycle"].by_key()["color"]
    meanings = {look.SIGNAL, look.NOISE, look.TEST, look.TRAIN}
    assert all(
        look.contrast(f"#{c.removeprefix('#')}") >= 4.5 for c in cycle if f"#{c.removeprefix('#')}" not in meanings
    )


@pytest.mark.parametrize("path", PAGES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_page_paints_a_model_by_hand(path):
    """No colour of the palette by position, and no colour in numbers, in any figure's code."""
    cells = json.loads(path.read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    found = sum(by_hand(source) for source in code if kinds.kind(kinds.untitled(source)) in ("figure", "check"))
    assert found == 0


def by_hand(source: str) -> int:
    """Places in a cell that name a colour by position (C3, OTHERS[1]) or in numbers."""
    tree = ast.parse(re.sub(r"^(\s*)[%!].*$", r"\1pass", source, flags=re.M))
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    names = [getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(tree)]
    return sum(bool(re.fullmatch(r"C\d|#[0-9a-fA-F]{6}", text)) for text in texts) + names.count("OTHERS")
