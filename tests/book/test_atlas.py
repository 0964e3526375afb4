"""The atlas: complete, true to the claims and figures, and filtered; its small pictures, cut without a library."""

import base64
import io
import re
import struct
import subprocess
import sys
import tomllib
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from flbook.book import atlas, ledger
from flbook.book.thumbnails import thumbnail

ROOT = Path(__file__).parents[2]
ENTRIES = atlas.read(ROOT)
RECORD = dict(
    name="x.slope", kind="claim", says="It falls: exponent", value=-0.26, theory=-0.25, interval=[-0.28, -0.24],
    seeds=None, excludes={"the SNR, kou2023benign": 0.0, "averages": -0.5}, z=-1.0, mark="agrees", because="",
    differs="", holds=True, book=-0.26, command="", claim=[-0.3, -0.2], tol=0.01,
)  # fmt: skip


LAW = re.compile(r"\bexponent\b|\bborder\b|\bpower of\b|like [\w|μ()]+\^")


def is_law(record):
    """Does a claim state an exponent or a border?"""
    return record["kind"] == "claim" and bool(LAW.search(record["says"]))


@pytest.fixture(scope="module")
def found():
    return {record["name"]: record for record in ledger.collect(ROOT)}


def test_every_lecture_with_a_law_has_an_entry_or_a_reason(found):
    out = tomllib.loads((ROOT / atlas.FILE).read_text())["left_out"]
    named = {entry.lecture for entry in ENTRIES} | set(out)
    notebooks = {record["notebook"] for record in found.values() if is_law(record)}
    missing = sorted({name.removeprefix("book/").removesuffix(".ipynb") for name in notebooks} - named)
    assert not missing, f"{', '.join(missing)}: give it an entry in lib/flbook/book/atlas.toml, or a reason in left_out"
    assert all(len(reason.split()) >= 5 for reason in out.values())
    assert not set(out) & {entry.lecture for entry in ENTRIES}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.title)
def test_an_entry_is_of_claims_and_figures_that_are_there(entry, found):
    missing = [name for name in atlas.names(entry) if name not in found]
    assert not missing, f"{entry.lecture} checks no {', '.join(missing)}; atlas.toml names it"
    if entry.figure:
        output = atlas.find(ROOT / "book", entry.lecture, entry.figure)
        assert output, f"{entry.lecture} shows no {entry.figure}; atlas.toml names it"
        about = output["metadata"]["flbook"]
        assert len(about["alt"]) >= 20
        assert not entry.panel or "wide" in about, "a panel of a figure that has one"
    assert entry.figure or not entry.panel


def test_filters_have_few_values_with_several_entries():
    for field in atlas.FILTERS:
        values = {getattr(entry, field) for entry in ENTRIES}
        assert 4 <= len(values) <= 20 and len(values) < len(ENTRIES) / 2, field


def test_no_claim_stands_twice():
    claims = [(entry.lecture, name) for entry in ENTRIES for name in entry.claims.split()]
    assert len(claims) == len(set(claims)) >= 80


def test_what_a_lecture_does_not_show_yet_is_left_out(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.ipynb").write_text('{"cells": []}')
    assert atlas.with_pictures("A <!-- picture: a/x fig-none b --> B", tmp_path, tmp_path, "../") == "A  B"


def test_a_line_shows_number_interval_theory_and_rivals():
    drawn = atlas.line(RECORD)
    said = re.search('aria-label="([^"]*)"', drawn)[1]
    assert said == ("measured −0.26, 95 % interval −0.28 to −0.24, theory −0.25; "
                    "excluded: the SNR, Kou et al. 2023 0, averages −0.5")

    def places(pattern):
        return [float(x) for x in re.findall(pattern, drawn)]

    (ours,), (theory,), (low,) = (places(p) for p in (
        'class="ours" cx="([^"]+)"', 'class="theory" x1="([^"]+)"', 'class="interval" x1="([^"]+)"'))
    rivals = places(r'class="rival" d="M([\d.]+)')
    assert min(rivals) < low < ours < theory < max(rivals)
    per_unit = (max(rivals) - min(rivals)) / 0.5
    assert (theory - ours) / per_unit == pytest.approx(0.01, abs=0.001)
    assert atlas.line({**RECORD, "theory": None, "interval": None, "excludes": {}}).count("<circle") == 1


def picture(draw):
    """A picture with a palette, as notebooks store it."""
    image = Image.new("P", (8, 60))
    image.putpalette([255, 255, 255, 0, 0, 0, 255, 0, 0] + [128] * 759)
    draw(image.load())
    held = io.BytesIO()
    image.save(held, "png")
    return held.getvalue()


def pixels(image):
    return np.asarray(image.convert("RGB"))


def two_panels(pixel):
    for y in (*range(2, 26), *range(34, 58)):
        for x in range(8):
            pixel[x, y] = (1 if y < 30 else 2) if (x // 2) % 2 else 0


@pytest.mark.parametrize(("panel", "height", "colours"), [
    ("", 30, {(255, 255, 255), (0, 0, 0), (255, 0, 0)}),
    ("a", 15, {(255, 255, 255), (0, 0, 0)}),
    ("b", 15, {(255, 255, 255), (255, 0, 0)}),
])
def test_a_panel_at_half_its_size(panel, height, colours):
    small = Image.open(io.BytesIO(thumbnail(picture(two_panels), panel)))
    assert small.size == (4, height) and {tuple(colour) for colour in pixels(small).reshape(-1, 3).tolist()} == colours


def test_four_pixels_become_the_colour_nearest_to_their_mean():
    small = thumbnail(picture(lambda pixel: pixel.__setitem__((0, 0), 1) or pixel.__setitem__((1, 1), 1)))
    assert Image.open(io.BytesIO(small)).convert("RGB").getpixel((0, 0)) == (128, 128, 128)


def coded(code: int) -> bytes:
    """A picture of 16 rows, coded by one of PNG's five filters, as its specification has them."""
    rows = np.random.default_rng(0).integers(0, 256, (16, 12)).astype(int)
    left, above, corner = np.zeros_like(rows), np.zeros_like(rows), np.zeros_like(rows)
    left[:, 1:], above[1:], corner[1:, 1:] = rows[:, :-1], rows[:-1], rows[:-1, :-1]
    near = np.abs(np.stack([above - corner, left - corner, left + above - 2 * corner])).argmin(0)
    paeth = np.choose(near, [left, above, corner])
    data = (rows - [0 * rows, left, above, (left + above) // 2, paeth][code]) % 256
    packed = zlib.compress(b"".join(bytes([code, *row]) for row in data.tolist()))
    palette = bytes(k for k in range(256) for _ in range(3))
    head = struct.pack(">IIBBBBB", 12, 16, 8, 3, 0, 0, 0)
    parts = {b"IHDR": head, b"PLTE": palette, b"IDAT": packed, b"IEND": b""}
    chunks = (struct.pack(">I", len(part)) + kind + part + struct.pack(">I", zlib.crc32(kind + part))
              for kind, part in parts.items())
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize("code", range(1, 5))
def test_rows_are_read_however_they_are_coded(code):
    other, plain = (pixels(Image.open(io.BytesIO(coded(k)))) for k in (code, 0))
    assert (other == plain).all(), "as another program reads it"
    assert thumbnail(coded(code)) == thumbnail(coded(0))


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if entry.figure][:6], ids=lambda entry: entry.figure)
def test_a_stored_figure_is_cut_as_another_program_reads_it(entry):
    """Whatever rows were coded by: each small pixel lies near the mean of its four."""
    output = atlas.find(ROOT / "book", entry.lecture, entry.figure)
    png = base64.b64decode("".join(output["data"]["image/png"]))
    whole, small = (pixels(Image.open(io.BytesIO(data))).astype(float) for data in (png, thumbnail(png)))
    rows, columns = whole.shape[0] // 2, whole.shape[1] // 2
    fours = whole[: 2 * rows, : 2 * columns].reshape(rows, 2, columns, 2, 3)
    away = abs(small - fours.mean((1, 3))).max(-1)
    assert away.mean() < 3 and np.quantile(away, 0.99) < 60


@pytest.mark.parametrize(("png", "panel", "said"), [
    (b"GIF", "", "a picture must be a PNG"),
    (picture(two_panels), "c", "panel must be 'a' or 'b', or empty; got 'c'"),
])
def test_other_pictures_are_refused(png, panel, said):
    with pytest.raises(ValueError, match=said):
        thumbnail(png, panel)


def test_it_is_made_without_any_package(tmp_path):
    out = str(tmp_path / "a.md")
    code = f"import runpy, sys; sys.path.insert(0, {str(ROOT / 'lib')!r}); sys.argv[1:] = [{out!r}]; "
    code += "runpy.run_module('flbook.book.atlas', run_name='__main__')"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    page = (tmp_path / "a.md").read_text()
    assert page.count('<div class="atlas-entry') == len(ENTRIES)
    assert page.count("<!-- picture: ") == sum(bool(entry.figure) for entry in ENTRIES)


# The built page.


@pytest.fixture
def opened(browser, built):
    tab = browser.new_page()
    tab.goto((built / "book/atlas.html").as_uri())
    tab.locator("#atlas-filter").wait_for(state="visible", timeout=5000)
    yield tab
    tab.close()


def test_it_filters_and_remembers(opened):
    status = opened.locator("#atlas-status")
    assert status.inner_text() == f"All {len(ENTRIES)} borders and laws are shown."
    wanted = [entry for entry in ENTRIES if entry.data == "XOR clusters"]
    opened.get_by_label("Data").select_option("XOR clusters")
    assert opened.locator(".atlas-entry:visible h3").all_inner_texts() == [entry.title for entry in wanted]
    assert status.inner_text() == f"{len(wanted)} of {len(ENTRIES)} borders and laws."
    assert opened.locator("section:has(.atlas-entry) > h2:visible").count() == 1, "chapters without an entry go"
    assert opened.url.endswith("atlas.html?data=XOR+clusters")
    opened.reload()
    assert opened.locator(".atlas-entry:visible").count() == len(wanted)
    opened.get_by_label("Rule").select_option("SAM")
    assert status.inner_text().startswith(f"None of {len(ENTRIES)} fits")


def test_pictures_lead_to_figures_and_numbers_to_the_ledger(built):
    page = (built / "book/atlas.html").read_text()
    for address, label in re.findall(r'class="atlas-picture" href="([^"#]+)#([^"]+)"', page):
        assert f'id="{label}"' in (built / "book" / address).read_text(), label
    rows = set(re.findall(r' id="([^"]+)"', (built / "book/ledger.html").read_text()))
    assert set(re.findall(r'href="ledger\.html#([^"]+)"', page)) <= rows


def test_pictures_are_loaded_when_they_are_near(opened):
    pictures = opened.locator(".atlas-picture img")
    assert pictures.count() >= 30 and all(one.get_attribute("loading") == "lazy" for one in pictures.all())
    first = opened.locator(".atlas-picture img:visible").first
    first.scroll_into_view_if_needed()
    opened.wait_for_function("one => one.naturalWidth > 100", arg=first.element_handle())


def test_without_scripts_the_page_is_whole(browser, built):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto((built / "book/atlas.html").as_uri())
    assert tab.locator("#atlas-filter").is_hidden()
    assert tab.locator(".atlas-entry:visible").count() == len(ENTRIES)
    context.close()


def test_no_other_page_loads_its_script(built, pages):
    loading = [page.name for page in pages if "atlas.js" in page.html.read_text()]
    assert loading == ["book/atlas"]
