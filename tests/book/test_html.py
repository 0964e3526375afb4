"""The built pages: nothing from another host, a name for every picture, glue that arrived, a weight one can load."""

import gzip
import re
from urllib.parse import unquote

TAG = re.compile(r"<(script|link|img|iframe|source|video|audio|object|embed)\b([^>]*)>", re.I)
LOADED_LINKS = {"stylesheet", "icon", "preload", "modulepreload"}
BUDGET = 600_000  # bytes, compressed, beyond what all pages share


def attributes(text: str) -> dict[str, str]:
    return dict(re.findall(r'([\w-]+)="([^"]*)"', text))


def loaded(html: str) -> list[str]:
    """What a page loads by itself: scripts, styles, pictures; not links to click."""
    found = []
    for tag, text in TAG.findall(html):
        given = attributes(text)
        if tag.lower() == "link" and not LOADED_LINKS & set(given.get("rel", "").split()):
            continue
        found += [given[name] for name in ("src", "href", "data") if name in given]
    return found


def test_it_loads_nothing_from_elsewhere(page, built):
    assert not [address for address in loaded(page.html.read_text()) if re.match(r"(https?:)?//", address)]


def test_what_it_loads_is_there(page, built):
    for address in loaded(page.html.read_text()):
        if not address.startswith("data:"):
            path = page.html.parent / unquote(re.split(r"[?#]", address)[0])
            assert path.exists(), address


def test_style_sheets_load_nothing_from_elsewhere(built):
    for sheet in built.rglob("*.css"):
        assert not re.findall(r"url\(\s*['\"]?(?:https?:)?//|@import\s+['\"]?https?:", sheet.read_text()), sheet.name


def test_every_picture_has_alt_text(page, built):
    pictures = [attributes(text) for tag, text in TAG.findall(page.html.read_text()) if tag.lower() == "img"]
    assert not [picture["src"] for picture in pictures if not picture.get("alt", "").strip()]


def test_glue_and_references_arrived(page, built):
    article = page.html.read_text().partition("<article")[2].partition("</article>")[0]
    visible = re.sub(r"<(pre|script|style)\b.*?</\1>", "", article, flags=re.S)
    assert not re.findall(r"\{(?:glue|cite|prf|ref|numref|doc|eq)[\w:]*\}", visible)


def test_its_weight_is_within_budget(page, built):
    html = page.html.read_text()
    own = {address for address in loaded(html) if "_images/" in address}
    weight = len(gzip.compress(html.encode())) + sum((page.html.parent / address).stat().st_size for address in own)
    assert weight <= BUDGET
