"""Names of the library in a page's code lead to where they are defined: file and line in the repository."""

import json
import re
from pathlib import Path

from sphinx.application import Sphinx

from flbook.book.definitions import definition, imported

_BLOCK = re.compile(r'<div class="highlight-ipython3.*?</pre>', re.DOTALL)
_NAME = r'<span class="n">(\w+)</span>'
_DOT = r'<span class="o">\.</span>'
# a name that is no attribute and no argument's, and what follows it after dots
_CHAIN = re.compile(rf'(?<!<span class="o">\.</span>){_NAME}((?:{_DOT}{_NAME})*)(?!<span class="o">=</span>)')


def with_links(body: str, cells: list[str], to: str) -> str:
    """A page in HTML with the names of its cells linked, each where a block of code has it first."""
    names = imported(cells)
    return _BLOCK.sub(lambda block: _linked(block[0], names, to), body) if names else body


def _linked(block: str, names: dict[str, tuple[str, ...]], to: str) -> str:
    seen = set()

    def link(found: re.Match) -> str:
        chain = re.findall(_NAME, found[0])
        for end in range(len(chain), 0, -1):
            place = names.get(chain[0]) and definition(*names[chain[0]], *chain[1:end])
            if place and (first := tuple(chain[:end])) not in seen:
                seen.add(first)
                return _anchored(found[0], end, f"{to}/lib/{place.file}#L{place.line}")
            if place:
                break
        return found[0]

    return _CHAIN.sub(link, block)


def _anchored(code: str, which: int, href: str) -> str:
    """The ``which``-th name of a piece of highlighted code as a link."""
    span = list(re.finditer(_NAME, code))[which - 1]
    return f'{code[: span.start()]}<a class="defined" href="{href}">{span[0]}</a>{code[span.end() :]}'


def link_names(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Link the names on a page that is a notebook."""
    path = Path(app.env.doc2path(page)) if doctree is not None else Path()
    if path.suffix == ".ipynb" and "body" in context:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        options = app.config.html_theme_options
        to = f"{options['repository_url']}/blob/{options['repository_branch']}"
        context["body"] = with_links(context["body"], code, to)


def setup(app: Sphinx) -> dict:
    """Register with Sphinx."""
    app.connect("html-page-context", link_names)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
