"""What this book's pages need beyond Jupyter Book: nothing on them may fail, or ask another host for anything.

And folded code is one line that says what it is.
"""

import json
import re
from html import escape
from pathlib import Path

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.application import Sphinx

from flbook.book import atlas, facts, figures, ledger, questions
from flbook.book.kinds import CHECKS, untitled

_NO_SCRIPTS = """\
<noscript><div class="admonition note"><p class="admonition-title">Formulas stand here as TeX</p>
<p>Your browser runs no scripts, and the page sets its formulas by one. Allow scripts for this page: all of them come
with the book, and none asks another host for anything. Or read the book where its formulas need no script:
<code>make epub</code> and <code>make pdf</code>, in its repository, make an EPUB and a PDF.</p></div></noscript>
"""
# Lightness turned round leaves what was pale on white too dark on black: a curve lifts it, and black stays black.
_LIFT = """\
<svg class="lift" width="0" height="0" aria-hidden="true" focusable="false">
<filter id="lift" color-interpolation-filters="sRGB"><feComponentTransfer>
<feFuncR type="gamma" exponent=".6"/><feFuncG type="gamma" exponent=".6"/><feFuncB type="gamma" exponent=".6"/>
</feComponentTransfer></filter></svg>
"""


def drop_thebe(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Leave out Thebe, which Jupyter Book injects twice (its second `const` is an error) and which loads from a CDN."""
    context["script_files"] = [
        script
        for script in context["script_files"]
        if "thebe" not in str(getattr(script, "filename", script) or "")
        and "thebe" not in str(getattr(script, "attributes", {}).get("body", ""))
    ]


def theme_options(app: Sphinx, config) -> None:
    """Leave out the search field above the page, since the sidebar has one, and give dark pages a logo of their own.

    Here and not in _config.yml, where it would replace all other options of the theme.
    """
    logo = {"image_light": config.html_logo, "image_dark": config.html_logo.replace(".svg", "_dark.svg")}
    config.html_theme_options = {**config.html_theme_options, "navbar_persistent": [], "logo": logo}


def name_folds(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Give the folds of the sidebar, which are arrows, names for whoever hears the page."""
    make = context.get("generate_toctree_html")

    def named(*given, **options):
        tree = make(*given, **options)
        for fold in tree.find_all("summary") if hasattr(tree, "find_all") else ():
            fold["aria-label"] = f"Pages of {fold.find_parent('li').a.get_text().strip()}"
        return tree

    if make:
        context["generate_toctree_html"] = named


def finish_body(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Tell a browser without scripts how formulas are read, carry the filter of dark figures, drop two roles.

    Docutils makes a bibliography a list of `doc-biblioentry`, which is no item of a list, nor a role any more.
    """
    if "body" in context:
        body = re.sub(r' role="(?:doc-biblioentry|list)"', "", context["body"])
        context["body"] = (_NO_SCRIPTS if 'class="math ' in body else "") + body + _LIFT


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
    """Give a page that is about to be read captions, variants of figures, links of claims, live figures and counts."""
    if Path(app.env.doc2path(docname)).suffix == ".ipynb":
        notebook, up = json.loads(source[0]), "../" * docname.count("/")
        figures.on_page(notebook, Path(app.outdir, "_images"), up)
        ledger.with_links(notebook, up)
        source[0] = json.dumps(notebook)
    else:
        book = Path(app.srcdir, "book")
        text = atlas.with_pictures(source[0], book, Path(app.outdir, "_images"), "../" * docname.count("/"))
        source[0] = facts.with_counts(questions.with_count(figures.with_live(text, book), book), book)


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
    app.connect("config-inited", theme_options)
    for change in (drop_thebe, name_folds, finish_body):
        app.connect("html-page-context", change, priority=900)
    app.connect("source-read", show_made)
    app.connect("doctree-read", drop_titles)
    app.connect("doctree-read", close_checks)
    app.add_node(HideCodeCellNode, override=True, html=(open_fold, close_fold))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
