"""What pages have where they are published, and only there: `make site` says so by `FLBOOK_VERSION`.

The download menu offers the PDF and the EPUB that lie beside the index, the sidebar other versions; `sitemap.xml` lists
the pages; and where a page is shared, its title, its first sentences and its main figure are shown. A book that was
built for its reader alone has none of these: it has no address, and may have no PDF.
"""

import json
import os
import re
from base64 import b64decode
from html import escape
from pathlib import Path

from finding import plain
from sphinx.application import Sphinx

from flbook.book import lectures, press, site

SIDEBAR = ["navbar-logo.html", "icon-links.html", "version-switcher.html", "search-button-field.html"]
SIDEBAR += ["sbt-sidebar-nav.html"]
SCHEMA = "http://www.sitemaps.org/schemas/sitemap/0.9"
LONGEST = 200  # characters of a description


def say_where(app: Sphinx, config) -> None:
    """Give the theme the versions, and each page the address that search engines shall name: the latest version's."""
    where = site.address(config.html_theme_options["repository_url"])
    config.html_baseurl = f"{where}/{site.LATEST}/"
    switch = {"json_url": f"../{site.SWITCHER}", "version_match": os.environ["FLBOOK_VERSION"]}
    config.html_theme_options = {**config.html_theme_options, "switcher": switch, "check_switcher": False}
    config.html_sidebars = {"**": SIDEBAR}


def offer_prints(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Add the book's PDF and EPUB, and the chapter's PDF, to the menu of downloads."""
    root = Path(app.srcdir)
    folder = page.removeprefix("book/").rpartition("/")[0]
    offered = [(site.PDF, "Book as PDF", "fa-file-pdf"), (site.EPUB, "Book as EPUB", "fa-tablet-screen-button")]
    if folder in press.chapters(root):
        offered.insert(0, (f"{folder}.pdf", "Chapter as PDF", "fa-file-pdf"))
    for menu in context.get("header_buttons", []):
        if menu["label"] == "download-buttons":
            for button in menu["buttons"]:
                if button["label"] == "download-pdf-button":  # the theme calls printing this page ".pdf"
                    button["text"] = "Print page"
            menu["buttons"] += [
                {"type": "link", "url": context["pathto"](file, 1), "text": text, "icon": f"fas {icon}",
                 "tooltip": f"Download: {text}", "label": f"download-{file.rpartition('.')[2]}-button"}
                for file, text, icon in offered
            ]  # fmt: skip


def describe(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Write down what is shown where the page is shared (the Open Graph protocol)."""
    if doctree is None:
        return
    title = re.sub(r"^[\d.]+\s+", "", plain(context["title"]))
    picture, alt = _main_figure(app, page)
    said = first_sentences(context["body"])
    found = {
        "og:type": "article",
        "og:site_name": app.config.html_title,
        "og:title": title,
        "og:description": said,
        "og:url": app.config.html_baseurl + app.builder.get_target_uri(page),
        "og:image": app.config.html_baseurl + picture,
        "og:image:alt": alt,
    }
    tags = [f'<meta property="{name}" content="{escape(text)}" />' for name, text in found.items() if text]
    tags.append('<meta name="twitter:card" content="summary_large_image" />')
    tags += [f'<meta name="description" content="{escape(said)}" />'] if said else []
    context["metatags"] += "\n".join(tags) + "\n"


def first_sentences(body: str) -> str:
    """The first paragraph of prose, as far as it fits: not the line under the title, which is set in italics alone."""
    paragraphs = re.findall(r"<p(?: class=\"lead\")?>(.*?)</p>", body.partition("</h1>")[2], re.DOTALL)
    prose = [plain(text) for text in paragraphs if not re.fullmatch(r"<em>.*</em>", text.strip(), re.DOTALL)]
    text = next((text for text in prose if len(text) > 40), "")
    return text if len(text) <= LONGEST else text[:LONGEST].rpartition(" ")[0] + " …"


def _main_figure(app: Sphinx, page: str) -> tuple[str, str]:
    """Where the first picture of a notebook lies, which is its main figure, and its words; elsewhere the cover's."""
    path = Path(app.env.doc2path(page))
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"] if path.suffix == ".ipynb" else []
    for output in (output for cell in cells for output in cell.get("outputs", [])):
        if "image/png" in output.get("data", {}):
            name = f"_images/shared/{page.removeprefix('book/').replace('/', '-')}.png"
            file = Path(app.outdir, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(b64decode("".join(output["data"]["image/png"])))
            return name, " ".join(output["metadata"].get("flbook", {}).get("alt", "").split())
    return "_static/phase.png", press.COVER


def list_pages(app: Sphinx, error: Exception | None) -> None:
    """Write `sitemap.xml`, for search engines: every page of the book in its order."""
    if not error:
        where = app.config.html_baseurl
        found = [app.builder.get_target_uri(f"book/{name}") for name in lectures.pages(Path(app.srcdir))]
        rows = "".join(f"<url><loc>{escape(where + page)}</loc></url>\n" for page in found)
        text = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{SCHEMA}">\n{rows}</urlset>\n'
        Path(app.outdir, "sitemap.xml").write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict:
    """Register with Sphinx, where the pages are to be published."""
    if os.environ.get("FLBOOK_VERSION"):
        app.connect("config-inited", say_where)
        app.connect("html-page-context", offer_prints, priority=900)
        app.connect("html-page-context", describe, priority=900)
        app.connect("build-finished", list_pages)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
