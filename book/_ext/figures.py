"""Figures as the page shows them: with a caption and a number, and the variant that fits its width and its theme.

A notebook stores a picture, under it the caption as Markdown, and in the output's metadata the picture's variants (see
flbook.plots.picture). Here, before MyST-NB reads the notebook, the two outputs become one figure.
"""

import hashlib
import json
from base64 import b64decode
from html import escape
from pathlib import Path

from sphinx.application import Sphinx

WIDE = "(min-width: 700px)"  # of the window: where two panels stand beside each other


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Rewrite the outputs of a notebook that is about to be read."""
    if not Path(app.env.doc2path(docname)).suffix == ".ipynb":
        return
    notebook = json.loads(source[0])
    images = Path(app.outdir, "_images")
    up = "../" * docname.count("/")
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            captioned(cell)
            for output in cell["outputs"]:
                responsive(output, images, up)
    source[0] = json.dumps(notebook)


def captioned(cell: dict) -> None:
    """Take the caption from under a cell's picture and give it to MyST-NB, which numbers the figure."""
    captions = [output for output in cell["outputs"] if "caption" in _flbook(output)]
    for output in captions:
        cell["outputs"].remove(output)
        found = _flbook(output)
        figure = {"caption": found["caption"]} | ({"name": found["name"]} if found["name"] else {})
        cell["metadata"].setdefault("mystnb", {})["figure"] = figure


def responsive(output: dict, images: Path, up: str) -> None:
    """Replace a picture that has variants by all of them; the browser takes the one that fits."""
    found = _flbook(output)
    variants = {key: found[key] for key in ("wide", "dark", "wide_dark") if key in found}
    if not variants and "axes" not in found:
        return
    data = output["data"]
    variants["narrow"] = "".join(data.pop("image/png"))
    files = {key: f"{up}_images/{_stored(b64decode(picture), images)}" for key, picture in variants.items()}
    scales = f" data-axes='{escape(json.dumps(found['axes']))}'" if "axes" in found else ""
    alt = " ".join(found["alt"].split())

    def picture(narrow: str, wide: str | None, look: str) -> str:
        beside = f'<source media="{WIDE}" srcset="{wide}">' if wide else ""
        return f'<picture class="{look}">{beside}<img src="{narrow}" alt="{escape(alt)}" class="{look}"></picture>'

    if "dark" in files:
        shown = picture(files["narrow"], files.get("wide"), "map only-light")
        shown += picture(files["dark"], files.get("wide_dark"), "map only-dark")
    else:
        shown = picture(files["narrow"], files.get("wide"), "lines")
    data["text/html"] = f'<div class="figure{" two" if "wide" in files else ""}"{scales}>{shown}</div>'


def _flbook(output: dict) -> dict:
    return output.get("metadata", {}).get("flbook", {})


def _stored(picture: bytes, images: Path) -> str:
    """Write a picture beside those of MyST-NB, under a name that is its content; returns the name."""
    images.mkdir(parents=True, exist_ok=True)
    name = f"{hashlib.sha256(picture).hexdigest()[:24]}.png"
    (images / name).write_bytes(picture)
    return name


def setup(app: Sphinx) -> dict:
    """Register with Sphinx."""
    app.connect("source-read", read)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
