"""The press: a blank sheet in Chromium with the book's MathJax, and the built pages as leaves that go onto it.

A leaf is a page without what only a screen can do: folded parts are left out, live figures are stills, links and ids
share one name space. Paper (`flbook.book.pdf`) and readers (`flbook.book.epub`) are made of the same leaves.
"""

import re
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from flbook import __version__
from flbook.book import lectures

HERE = Path(__file__).parent
CHROMIUM = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking".split()
COVER = (
    "Phase diagram of 100 000 networks over dimension and signal strength. All of them fit their wrong labels; above a "
    "dashed curve they predict fresh data right, below it they guess."
)
LEFT_OUT = (
    "Code of figures, hints, solutions and checks are folded on the pages of the book, and left out here. The book:"
)
PATIENCE = 600_000  # milliseconds: a whole book is one document


@dataclass(frozen=True)
class Leaf:
    """A page as it is printed: its name and title, its headings in words, and its article as (X)HTML."""

    name: str
    title: str
    headings: list
    html: str

    @property
    def key(self):
        """The id of its article, and the name of its file."""
        return self.name.replace("/", ".")


@dataclass(frozen=True)
class Edition:
    """What the cover says."""

    title: str
    author: str
    address: str
    version: str = __version__


def edition(root):
    """The edition that `_config.yml` describes, read by its lines, as the table of contents is."""
    text = (root / "_config.yml").read_text(encoding="utf-8")

    def setting(name):
        found = re.search(rf"^\s*{name}:\s*(.+?)\s*$", text, flags=re.MULTILINE)
        return found[1].strip("\"'") if found else ""

    return Edition(setting("title"), setting("author"), setting("url"))


def sheet(site, body="", styles=()):
    """A blank page of HTML with the MathJax of the built book, if it has one, and style sheets of this folder."""
    config, script = _mathjax(site)
    links = [f'<link rel="stylesheet" href="{(site / "_static" / "pygments.css").as_uri()}">']
    rules = [f"<style>{(HERE / name).read_text(encoding='utf-8')}</style>" for name in styles]
    load = [f"<script>{config}</script>", f'<script defer src="{script}"></script>'] if script else []
    head = "\n".join(['<meta charset="utf-8">', "<title>Leaves</title>", *links, *rules, *load])
    return (
        f'<!DOCTYPE html>\n<html lang="en" data-theme="light">\n<head>\n{head}\n</head>\n<body>{body}</body>\n</html>\n'
    )


def _mathjax(site):
    """The configuration and the address of MathJax, as the built pages have them."""
    for page in sorted((site / "book").rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        script = re.search(r'<script[^>]*\ssrc="([^"]*mathjax/[^"]*)"', text)
        if script:
            config = re.search(r"<script>(window\.MathJax\s*=.*?)</script>", text, flags=re.DOTALL)
            return (config[1] if config else ""), (page.parent / script[1]).resolve().as_uri()
    return "", ""


@contextmanager
def opened(browser, html):
    """A tab that shows this page, after its formulas were typeset."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "sheet.html")
        file.write_text(html, encoding="utf-8")
        tab = browser.new_page(color_scheme="light")
        tab.set_default_timeout(PATIENCE)
        tab.emulate_media(media="print", color_scheme="light")
        tab.goto(file.as_uri(), timeout=PATIENCE)
        tab.evaluate("() => document.fonts.ready.then(() => window.MathJax?.startup?.promise).then(() => true)")
        yield tab
        tab.close()


@contextmanager
def chromium():
    """The system's Chromium, without a window."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not path:
        raise ValueError("no chromium on the PATH; PDF and EPUB are made by it (on Debian: apt-get install chromium).")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise ValueError("playwright is not installed; `make pdf` and `make epub` bring it.") from None
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=CHROMIUM)
        yield browser
        browser.close()


def depth(name):
    """How deep a page stands in the outline: 0 for what opens a chapter or stands by itself, 1 for what is below."""
    return int("/" in name and not name.endswith("/index"))


def leaves(browser, site, names, *, files=False):
    """The built pages of these names as leaves, in this order.

    Parameters
    ----------
    browser
        An open Chromium.
    site
        The folder of the built book.
    names
        Names of the pages, as ``"signal_noise/decomposition"``.
    files
        Whether each leaf becomes a file of its own, as XHTML with MathML, and links lead from file to file.

    Raises
    ------
    ValueError
        If a page is not built.
    """
    pages = []
    for name in names:
        path = (site / "book" / f"{name}.html").resolve()
        if not path.is_file():
            raise ValueError(f"the page {name!r} is not built: run `make book` first.")
        html = path.read_text(encoding="utf-8")
        pages.append({"name": name, "html": html, "address": path.as_uri(), "depth": 0 if files else depth(name)})
    with opened(browser, sheet(site)) as tab:
        script = (HERE / "leaves.js").read_text(encoding="utf-8")
        found = tab.evaluate(script, [pages, site.resolve().as_uri(), files])
    return [Leaf(**leaf) for leaf in found]


def names(root):
    """The pages of the book in its order."""
    return list(lectures.pages(root))


def chapters(root):
    """The chapters: the folder of each, and the names of its pages."""
    found = [list(below) for _, below in lectures.parts(root)]
    return {below[0].rpartition("/")[0]: below for below in found if below and below[0].endswith("/index")}
