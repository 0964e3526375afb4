"""Figures as the page shows them: with a caption and a number, and the variant that fits its width and its theme.

A notebook stores a picture, under it the caption as Markdown, and in the output's metadata the picture's variants (see
flbook.plots.picture). Before MyST-NB reads the notebook, the two outputs become one figure.
"""

import hashlib
import json
import re
from base64 import b64decode
from html import escape

WIDE = "(min-width: 700px)"  # of the window: where two panels stand beside each other
PHONE = "(max-width: 699px)"  # where a schematic runs from top to bottom


def on_page(notebook, images, up):
    """Rewrite the outputs of a notebook, in place.

    Parameters
    ----------
    notebook
        The notebook, as JSON.
    images
        Folder of the built book into which pictures are written.
    up
        The way from the page to the root of the book, as ``"../../"``.
    """
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            _captioned(cell)
            for output in cell["outputs"]:
                _schematic(output, images, up)
                _responsive(output, images, up)


def with_live(text, book):
    """A Markdown page with the live figures that it asks for by ``<!-- live: name -->``, taken from their lectures.

    Parameters
    ----------
    text
        The page's source.
    book
        The folder of the pages, in whose notebooks the figures are.

    Raises
    ------
    ValueError
        If no lecture shows a figure of that name.
    """

    def shown(match):
        fence = "~" * 12  # JavaScript has backticks of its own
        return f"{fence}{{raw}} html\n{_live(match[1], book)}\n{fence}"

    return re.sub(r"^<!-- live: (\w+) -->$", shown, text, flags=re.MULTILINE)


def _live(name, book):
    """The HTML of the live figure of this name."""
    for path in sorted(book.glob("*/*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for output in cell.get("outputs", []):
                if _flbook(output).get("live") == name:
                    return "".join(output["data"]["text/html"])
    raise ValueError(f"a page asks for the live figure {name!r}, which no lecture shows.")


def _captioned(cell):
    """Take the caption from under a cell's picture and give it to MyST-NB, which numbers the figure."""
    captions = [output for output in cell["outputs"] if "caption" in _flbook(output)]
    for output in captions:
        cell["outputs"].remove(output)
        found = _flbook(output)
        figure = {"caption": found["caption"]} | ({"name": found["name"]} if found["name"] else {})
        cell["metadata"].setdefault("mystnb", {})["figure"] = figure


def _responsive(output, images, up):
    """Replace a picture that has variants by all of them; the browser takes the one that fits."""
    found = _flbook(output)
    variants = {key: found[key] for key in ("wide", "dark", "wide_dark") if key in found}
    if not variants and "axes" not in found:
        return
    data = output["data"]
    variants["narrow"] = "".join(data.pop("image/png"))
    files = {key: f"{up}_images/{stored(b64decode(picture), images)}" for key, picture in variants.items()}
    scales = f" data-axes='{escape(json.dumps(found['axes']))}'" if "axes" in found else ""
    alt = " ".join(found["alt"].split())

    def picture(narrow, wide, look):
        beside = f'<source media="{WIDE}" srcset="{wide}">' if wide else ""
        return f'<picture class="{look}">{beside}<img src="{narrow}" alt="{escape(alt)}" class="{look}"></picture>'

    if "dark" in files:
        shown = picture(files["narrow"], files.get("wide"), "map only-light")
        shown += picture(files["dark"], files.get("wide_dark"), "map only-dark")
    else:
        shown = picture(files["narrow"], files.get("wide"), "lines")
    data["text/html"] = f'<div class="figure{" two" if "wide" in files else ""}"{scales}>{shown}</div>'


def _schematic(output, images, up):
    """Replace a schematic by its four pictures; the browser takes what fits its width and theme."""
    found = _flbook(output)
    if "schematic" not in found:
        return
    pictures = {"light": "".join(output["data"].pop("image/png")), **found["schematic"]}
    files = {look: f"{up}_images/{stored(b64decode(picture), images)}" for look, picture in pictures.items()}
    alt = escape(" ".join(found["alt"].split()))
    shown = "".join(
        f'<picture class="map only-{theme}"><source media="{PHONE}" srcset="{files[phone]}">'
        f'<img src="{files[theme]}" alt="{alt}" class="map only-{theme}"></picture>'
        for theme, phone in (("light", "phone"), ("dark", "phone_dark"))
    )
    output["data"]["text/html"] = f'<div class="figure schematic">{shown}</div>'


def _flbook(output):
    return output.get("metadata", {}).get("flbook", {})


def stored(picture, images):
    """Write a picture beside those of MyST-NB, under a name that is its content; returns the name."""
    images.mkdir(parents=True, exist_ok=True)
    name = f"{hashlib.sha256(picture).hexdigest()[:24]}.png"
    (images / name).write_bytes(picture)
    return name
