"""The book as an EPUB 3 with MathML and without scripts: ``python -m flbook.book.epub _build/html OUT.epub``.

One file a page. What a reader needs beside the leaves is written here: the package, the table of contents, the cover.
"""

import hashlib
import re
import sys
import uuid
import zipfile
from base64 import b64decode
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from urllib.parse import unquote, urlparse

from flbook.book import lectures, press

KINDS = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".svg": "image/svg+xml"}
CONTAINER = """<?xml version="1.0" encoding="UTF-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles><rootfile full-path="book/package.opf" media-type="application/oebps-package+xml"/></rootfiles>
</container>
"""
PAGE = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" lang="en" xml:lang="en">
<head><meta charset="utf-8"/><title>{title}</title><link rel="stylesheet" type="text/css" href="book.css"/></head>
<body>{body}</body>
</html>
"""
ACCESSIBILITY = """\
<meta property="schema:accessMode">textual</meta>
<meta property="schema:accessMode">visual</meta>
<meta property="schema:accessModeSufficient">textual</meta>
<meta property="schema:accessibilityFeature">alternativeText</meta>
<meta property="schema:accessibilityFeature">MathML</meta>
<meta property="schema:accessibilityFeature">structuralNavigation</meta>
<meta property="schema:accessibilityFeature">tableOfContents</meta>
<meta property="schema:accessibilityHazard">none</meta>
<meta property="schema:accessibilitySummary">Figures have texts that say what they show; formulas are MathML.</meta>"""


def write(site, out, names=None):
    """Bind the pages of the built book; returns how many there are.

    Parameters
    ----------
    site
        Folder of the built book, as ``_build/html``.
    out
        The file to write; its folder is made if it is missing.
    names
        Names of the pages to bind, if not all.

    Raises
    ------
    ValueError
        If a page is not built, a formula is in error, or a picture has no words.
    """
    site, root = site.resolve(), lectures.root(site)
    edition, wanted = press.edition(root), press.names(root) if names is None else list(names)
    with press.chromium() as browser:
        leaves = press.leaves(browser, site, wanted, files=True)
    pictures = {}
    pages = {f"{leaf.key}.xhtml": _page(leaf, pictures) for leaf in leaves}
    _refuse(pages)
    cover = root / "book" / "_static" / "phase.png"
    pictures["images/cover.png"] = cover.read_bytes()
    own = {
        "book.css": _style(site),
        "cover.xhtml": _cover(edition),
        "nav.xhtml": _contents(leaves, edition),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        book.writestr("META-INF/container.xml", CONTAINER)
        book.writestr("book/package.opf", _package(edition, pages, pictures))
        for name, content in (own | pages | pictures).items():
            book.writestr(f"book/{name}", content, zipfile.ZIP_STORED if name.endswith(".png") else None)
    return len(pages)


def _page(leaf, pictures):
    """A leaf as a file; its pictures are added to the others, under names that are their content."""

    def stored(match):
        kind, content = _picture(match[1])
        name = f"images/{hashlib.sha256(content).hexdigest()[:24]}{kind}"
        pictures[name] = content
        return f'src="{name}"'

    body = re.sub(r'\bsrc="([^"]*)"', stored, leaf.html)
    return PAGE.format(title=escape(leaf.title), body=body)


def _picture(address):
    """Kind and content of a picture, from its data URI or its file."""
    inside = re.match(r"data:(image/[\w+]+);base64,(.*)", address, flags=re.DOTALL)
    if inside:
        return next(kind for kind, name in KINDS.items() if name == inside[1]), b64decode(inside[2])
    file = Path(unquote(urlparse(address).path))
    return file.suffix, file.read_bytes()


def _refuse(pages):
    """One sentence about formulas in error and pictures without words, before anything is written."""
    errors = [name for name, text in pages.items() if "<merror" in text]
    if errors:
        raise ValueError(f"the EPUB would have formulas in error on {', '.join(errors)}.")
    silent = [name for name, text in pages.items() if re.search(r'<img(?![^>]*\balt="\s*[^"\s])', text)]
    if silent:
        raise ValueError(f"the EPUB would have pictures without alt text on {', '.join(silent)}.")


def _style(site):
    """The style sheet: that of leaves, and the colours of code in the light theme."""
    pygments = site / "_static" / "pygments.css"
    colours = pygments.read_text(encoding="utf-8") if pygments.is_file() else ""
    light = re.findall(r'^html\[data-theme="light"\] (\.highlight \.\w+ \{[^}]*\})', colours, flags=re.MULTILINE)
    return (press.HERE / "leaves.css").read_text(encoding="utf-8") + "\n".join(light) + "\n"


def _cover(edition):
    body = (
        f'<section epub:type="cover"><h1>{escape(edition.title)}</h1>'
        f'<p><img src="images/cover.png" alt="{escape(press.COVER)}"/></p>'
        f"<p>{escape(edition.author)}, version {escape(edition.version)}</p><p>{escape(press.LEFT_OUT)} "
        f'<a href="{escape(edition.address)}">{escape(edition.address)}</a></p></section>'
    )
    return PAGE.format(title=escape(edition.title), body=body)


def _contents(leaves, edition):
    """The table of contents, in which lectures stand below their chapter."""
    rows, open_below = [], False
    for leaf, after in zip(leaves, [*leaves[1:], None], strict=True):
        deeper = after is not None and press.depth(after.name) > press.depth(leaf.name)
        rows.append(f'<li><a href="{leaf.key}.xhtml">{escape(leaf.title)}</a>')
        if deeper:
            rows.append("<ol>")
            open_below = True
            continue
        rows.append("</li>")
        if open_below and (after is None or press.depth(after.name) < press.depth(leaf.name)):
            rows.append("</ol></li>")
            open_below = False
    body = f'<nav epub:type="toc" id="toc"><h1>Contents</h1><ol>{"".join(rows)}</ol></nav>'
    return PAGE.format(title=escape(edition.title), body=body)


def _package(edition, pages, pictures):
    """The package: what the book is called, every file in it, and their order."""
    identity = uuid.uuid5(uuid.NAMESPACE_URL, f"{edition.address}/{edition.version}")
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    items = ['<item id="style" href="book.css" media-type="text/css"/>']
    items += ['<item id="cover" href="cover.xhtml" media-type="application/xhtml+xml"/>']
    items += ['<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>']
    for name, text in pages.items():
        held = " ".join(kind for kind, tag in (("mathml", "<math"), ("svg", "<svg")) if tag in text)
        properties = f' properties="{held}"' if held else ""
        items.append(f'<item id="{_id(name)}" href="{name}" media-type="application/xhtml+xml"{properties}/>')
    for name in sorted(pictures):
        properties = ' properties="cover-image"' if name == "images/cover.png" else ""
        items.append(f'<item id="{_id(name)}" href="{name}" media-type="{KINDS[Path(name).suffix]}"{properties}/>')
    spine = "".join(f'<itemref idref="{name}"/>' for name in ["cover", "nav", *map(_id, pages)])
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="identity" xml:lang="en"
 prefix="schema: http://schema.org/">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:identifier id="identity">urn:uuid:{identity}</dc:identifier>
<dc:title>{escape(edition.title)}</dc:title>
<dc:language>en</dc:language>
<dc:creator>{escape(edition.author)}</dc:creator>
<dc:rights>Text and figures CC BY 4.0, code BSD-3-Clause</dc:rights>
<dc:source>{escape(edition.address)}</dc:source>
<meta property="dcterms:modified">{now}</meta>
{ACCESSIBILITY}
</metadata>
<manifest>
{chr(10).join(items)}
</manifest>
<spine>{spine}</spine>
</package>
"""


def _id(name):
    """A file's name as an id of XML."""
    return "f." + re.sub(r"[^\w.-]", ".", name)


def main(argv):
    """Bind the book into the file that the arguments name; returns the exit status."""
    if len(argv) != 2:
        print("usage: python -m flbook.book.epub BUILT OUT.epub", file=sys.stderr)
        return 2
    site, out = map(Path, argv)
    try:
        pages = write(site, out)
    except ValueError as error:
        print(f"flbook: {error}", file=sys.stderr)
        return 1
    print(f"{out}: {pages} pages, {out.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
