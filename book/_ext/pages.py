"""What this book's pages need beyond Jupyter Book: nothing on them may fail, or ask another host for anything.

And folded code is one line that says what it is.
"""

import json
from html import escape
from pathlib import Path

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.application import Sphinx

from flbook.book import figures, questions
from flbook.book.kinds import CHECKS, untitled


def drop_thebe(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Leave out Thebe, which Jupyter Book injects twice (its second `const` is an error) and which loads from a CDN."""
    context["script_files"] = [
        script
        for script in context["script_files"]
        if "thebe" not in str(getattr(script, "filename", script) or "")
        and "thebe" not in str(getattr(script, "attributes", {}).get("body", ""))
    ]


def one_search_field(app: Sphinx, config) -> None:
    """Leave out the search field above the page, since the sidebar has one.

    Here and not in _config.yml, where it would replace all other options of the theme.
    """
    config.html_theme_options = {**config.html_theme_options, "navbar_persistent": []}


def drop_titles(app: Sphinx, doctree) -> None:
    """Leave out the first line of a folded cell, which is for Colab only."""
    for block in doctree.findall(nodes.literal_block):
        code = untitled(block.astext())
        if code != block.astext():
            block.rawsource = code  # Sphinx highlights a block only where the two agree
            block.children = [nodes.Text(code)]


def open_fold(translator, node: HideCodeCellNode) -> None:
    """Begin folded code; MyST-NB's own summary is called "Toggle hidden content" for whoever hears the page."""
    summary = f"<summary>{escape(node['prompt_show'])}</summary>"
    translator.body.append(f'<details class="hide {" ".join(node["classes"])}">\n{summary}\n')


def close_fold(translator, _: HideCodeCellNode) -> None:
    """End folded code."""
    translator.body.append("</details>\n")


def show_made(app: Sphinx, docname: str, source: list[str]) -> None:
    """Give the figures of a page that is about to be read captions and variants; put in live figures and counts."""
    if Path(app.env.doc2path(docname)).suffix == ".ipynb":
        notebook = json.loads(source[0])
        figures.on_page(notebook, Path(app.outdir, "_images"), "../" * docname.count("/"))
        source[0] = json.dumps(notebook)
    else:
        book = Path(app.srcdir, "book")
        source[0] = questions.with_count(figures.with_live(source[0], book), book)


def close_checks(app: Sphinx, doctree) -> None:
    """Fold the section "Checks" to one line under its heading; a link into it opens it."""
    for section in list(doctree.findall(nodes.section)):
        if section[0].astext() == CHECKS:
            said = "What else is checked: identities, the method, further numbers"
            begin, end = f'<details class="checks"><summary>{said}</summary>', "</details>"
            section.insert(1, nodes.raw("", begin, format="html"))
            section.append(nodes.raw("", end, format="html"))


def setup(app: Sphinx) -> dict:
    """Register with Sphinx, after the themes have said what they want."""
    app.connect("config-inited", one_search_field)
    app.connect("html-page-context", drop_thebe, priority=900)
    app.connect("source-read", show_made)
    app.connect("doctree-read", drop_titles)
    app.connect("doctree-read", close_checks)
    app.add_node(HideCodeCellNode, override=True, html=(open_fold, close_fold))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
