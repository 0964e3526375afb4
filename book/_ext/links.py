"""Names of the library in a page's code lead to what the reference says of them.

Those that only a lecture uses lead to where they are defined: file and line in the repository.
"""

import json
import re
from pathlib import Path

from sphinx.application import Sphinx

from flbook.book import reference
from flbook.book.definitions import Definition, definition, imported

_BLOCK = re.compile(r'<div class="highlight-ipython3.*?</pre>', re.DOTALL)
_NAME = r'<span class="n">(\w+)</span>'
_DOT = r'<span class="o">\.</span>'
# a name that is no attribute and no argument's, and what follows it after dots
_CHAIN = re.compile(rf'(?<!<span class="o">\.</span>){_NAME}((?:{_DOT}{_NAME})*)(?!<span class="o">=</span>)')


def with_links(body: str, cells: list[str], to: str, known: dict[Definition, str]) -> str:
    """A page in HTML with the names of its cells linked, each where a block of code has it first.

    What is `known` by where it is defined leads to its address, the rest to its source below `to`.
    """
    names = imported(cells)
    return _BLOCK.sub(lambda block: _linked(block[0], names, to, known), body) if names else body


def _linked(block: str, names: dict[str, tuple[str, ...]], to: str, known: dict[Definition, str]) -> str:
    seen = set()

    def link(found: re.Match) -> str:
        chain = re.findall(_NAME, found[0])
        for end in range(len(chain), 0, -1):
            place = names.get(chain[0]) and definition(*names[chain[0]], *chain[1:end])
            if place and (first := tuple(chain[:end])) not in seen:
                seen.add(first)
                # a method's class, where the reference has no entry of its own for it
                outer = [definition(*names[chain[0]], *chain[1:part]) for part in range(end, 0, -1)]
                address = next((known[one] for one in outer if one in known), f"{to}/lib/{place.file}#L{place.line}")
                return _anchored(found[0], end, address)
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
        known = {place: reference.link(page, name) for place, name in app.in_reference.items()}
        context["body"] = with_links(context["body"], code, to, known)


def setup(app: Sphinx) -> dict:
    """Register with Sphinx; what the reference has is read once."""
    app.in_reference = reference.addresses(Path(app.srcdir))
    app.connect("html-page-context", link_names)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
