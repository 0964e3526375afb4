"""The book as one PDF, and each chapter as another: ``python -m flbook.book.pdf _build/html _build/pdf``.

All leaves stand on one sheet, whose formulas are typeset once. Each PDF is that sheet with other leaves hidden, printed
twice: the first print tells on which page each leaf begins, the second has these numbers in its contents.
"""

import io
import logging
import sys
from html import escape
from pathlib import Path

from flbook.book import lectures, press

PAPER = {"prefer_css_page_size": True, "print_background": True, "outline": True, "tagged": True}


def write(site, out, names=None):
    """Print the book and its chapters; returns the files and how many pages each has.

    Parameters
    ----------
    site
        Folder of the built book, as ``_build/html``.
    out
        Folder for the PDFs, made if it is missing.
    names
        Names of the pages to print, if not all.

    Raises
    ------
    ValueError
        If a page is not built, a formula is in error, or something is wider than the paper.
    """
    site, root = site.resolve(), lectures.root(site)
    edition, wanted = press.edition(root), press.names(root) if names is None else list(names)
    with press.chromium() as browser:
        leaves = press.leaves(browser, site, wanted)
        body = _cover(edition, root) + _contents(leaves) + "".join(leaf.html for leaf in leaves)
        with press.opened(browser, press.sheet(site, body, ["leaves.css", "pdf.css"])) as tab:
            _ready(tab)
            prints = {file: _printed(tab, edition, *shown) for file, shown in _parts(root, leaves).items()}
    out.mkdir(parents=True, exist_ok=True)
    for file, pdf in prints.items():
        pdf.write(out / file)
    return {out / file: len(pdf.pages) for file, pdf in prints.items()}


def _parts(root, leaves):
    """The files to print: for each the title under the book's, and its leaves."""
    known = {leaf.name: leaf for leaf in leaves}
    parts = {"feature-learning.pdf": ("", leaves)}
    for folder, names in press.chapters(root).items():
        inside = [known[name] for name in names if name in known]
        if inside:
            parts[f"{folder}.pdf"] = (inside[0].title, inside)
    return parts


def _cover(edition, root):
    """The first page: title, what the book looks at, who wrote it, and where the rest is."""
    picture = root / "book" / "_static" / "phase.png"
    shown = f'<img src="{picture.as_uri()}" alt="{escape(press.COVER)}">' if picture.is_file() else ""
    return f"""<section class="cover">
<p class="title">{escape(edition.title)}</p>
<p class="part"></p>
{shown}
<p>{escape(edition.author)}, version {escape(edition.version)}</p>
<p class="foot">{escape(press.LEFT_OUT)} <a href="{escape(edition.address)}">{escape(edition.address)}</a>.
Text and figures CC BY 4.0, code BSD-3-Clause.</p>
</section>"""


def _contents(leaves):
    """The titles of all leaves, with room for their page numbers."""
    rows = [
        f'<li class="depth-{press.depth(leaf.name)}" data-leaf="{leaf.key}">'
        f'<a href="#{leaf.key}">{escape(leaf.title)}</a><span class="page"></span></li>'
        for leaf in leaves
    ]
    return f'<nav class="contents"><p class="title">Contents</p><ol>{"".join(rows)}</ol></nav>'


def _ready(tab):
    """Fit the sheet to the paper; refuse formulas in error, and what is still too wide."""
    tab.evaluate(f"window.paper = {(press.HERE / 'pdf.js').read_text(encoding='utf-8')}; true")
    for trouble, found in (("formulas in error", "errors"), ("parts that are wider than the paper", "fit")):
        places = tab.evaluate(f"paper.{found}()")
        if places:
            raise ValueError(f"the PDF would have {len(places)} {trouble}: {'; '.join(places[:5])}.")


def _printed(tab, edition, title, leaves):
    """The PDF of these leaves, with the pages at which they begin in its contents and its outline."""
    tab.evaluate("([keys, title]) => { paper.number({}); paper.show(keys, title); }", [[x.key for x in leaves], title])
    tab.evaluate("pages => paper.number(pages)", _begins(_read(tab)))
    from pypdf import PdfWriter

    pdf = PdfWriter(clone_from=_read(tab))
    pdf.add_metadata({"/Title": " – ".join(filter(None, [edition.title, title])), "/Author": edition.author})
    _entitle(pdf, [heading for leaf in leaves for heading in leaf.headings])
    return pdf


def _entitle(pdf, headings):
    """Give the outline the headings in words: Chromium leaves out their formulas, and spaces at line breaks."""
    from pypdf.generic import NameObject, TextStringObject

    def below(item):
        while item:
            yield item
            yield from below(item.get("/First"))
            item = item.get("/Next")
            item = item and item.get_object()

    for item, words in zip(below(pdf.root_object["/Outlines"]["/First"]), headings, strict=True):
        item.get_object()[NameObject("/Title")] = TextStringObject(words)


def _begins(pdf):
    """On which page each id is that something links to."""
    places = pdf.named_destinations.items()
    return {name.removeprefix("/"): pdf.get_destination_page_number(place) + 1 for name, place in places}


def _read(tab):
    """The sheet as a PDF."""
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.ERROR)  # it counts Chromium's objects otherwise, and says so
    return PdfReader(io.BytesIO(tab.pdf(**PAPER)))


def main(argv):
    """Print what the arguments name; returns the exit status."""
    if len(argv) != 2:
        print("usage: python -m flbook.book.pdf BUILT OUT", file=sys.stderr)
        return 2
    try:
        made = write(*map(Path, argv))
    except ValueError as error:
        print(f"flbook: {error}", file=sys.stderr)
        return 1
    for file, pages in made.items():
        print(f"{file}: {pages} pages, {file.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
