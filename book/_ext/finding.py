"""What the search page knows of every page: its title, the line under it, what the glossary calls it, and its text.

Sphinx's search takes excerpts by a request, which a browser refuses to pages from the file system, and ranks a word of
a title beside one of the prose. So each page's text is written as a script, which may be loaded from anywhere, and
`search.js` ranks by the lines of `_static/search/pages.js`.
"""

import json
import re
from html import unescape
from pathlib import Path

from sphinx.application import Sphinx

from flbook.book import lectures

_SILENT = (
    r'<(script|style|svg|pre|button)\b.*?</\1>|<details class="flbook-claim".*?</details>|<a class="headerlink".*?</a>'
)
SCRIPT = "flbookSearch.{kind}({content});\n"


def plain(html: str) -> str:
    """The words of a piece of HTML, without code, drawings, the lines of claims and what only links to itself."""
    html = re.sub(_SILENT, " ", html, flags=re.DOTALL)
    html = re.sub(r"\\[()\[\]]", "", html)  # around a formula
    return " ".join(unescape(re.sub(r"<[^>]+>", "", re.sub(r"</?(?:p|div|h\d|li|td|br)\b[^>]*>", " ", html))).split())


def line_under(body: str) -> str:
    """Topic and papers of a lecture, without what to read first; or what another page says in large letters."""
    found = re.search(r"</h1>\s*(?:<p><em>(.*?)</em></p>|<p class=\"lead\">(.*?)</p>)", body, re.DOTALL)
    line = plain(next(filter(None, found.groups()), "")) if found else ""
    return re.split(r" · Level \d| Lectures?:| Read first:", line)[0]


def called(glossary: str) -> dict[str, list[str]]:
    """What the glossary calls the subject of a page: our word and the literature's, by the page's name."""
    found = {}
    for term, other, page in re.findall(r"^(\S.*)\n  \*(.+?)\.?\*.*\{doc\}`([^`<]+)`", glossary, re.MULTILINE):
        other = "" if other in ("The same", "No standard name") else other
        found.setdefault(f"book/{page}", []).extend([term, *filter(None, other.split(", "))])
    return found


def keep(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Write a page's text beside the search, and keep its title and its line; the search page gets its script."""
    if page == "search":
        app.add_js_file("search.js", loading_method="defer")
        app.add_js_file("search/pages.js", loading_method="defer")
    elif doctree is not None:
        title = re.sub(r"^[\d.]+\s+", "", plain(context["title"]))
        app.found_pages[page] = {"title": title, "line": line_under(context["body"])}
        _write(app, page.replace("/", "-"), "text", [page, plain(context["body"])])


def finish(app: Sphinx, error: Exception | None) -> None:
    """Write titles, lines and the glossary's words of all pages, in the order of the book."""
    book = Path(app.srcdir, "book")
    if error or not app.found_pages:
        return
    words = called((book / "glossary.md").read_text(encoding="utf-8")) if (book / "glossary.md").exists() else {}
    listed, found = lectures.listed(Path(app.srcdir)), {}
    for name in lectures.pages(Path(app.srcdir)):
        page = f"book/{name}"
        if page in app.found_pages:
            found[page] = {**app.found_pages[page], "called": words.get(page, []), "lecture": name in listed}
    _write(app, "pages", "pages", [found])


def _write(app: Sphinx, name: str, kind: str, content: list) -> None:
    folder = Path(app.outdir, "_static", "search")
    folder.mkdir(parents=True, exist_ok=True)
    text = ", ".join(json.dumps(part, ensure_ascii=False) for part in content)
    (folder / f"{name}.js").write_text(SCRIPT.format(kind=kind, content=text), encoding="utf-8")


def setup(app: Sphinx) -> dict:
    """Register with Sphinx; all pages are written by one process, which remembers their titles."""
    app.found_pages = {}
    app.connect("html-page-context", keep)
    app.connect("build-finished", finish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": False}
