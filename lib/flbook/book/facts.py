"""The line under a lecture's title: topic, paper, level, how long it takes, what to read before, and its tools.

It is written from the notebook's metadata whenever the lecture is executed, so it stands on the page, on GitHub and in
every notebook alike. The front page counts lectures and minutes in the same way (`with_counts`).
"""

import json
import math
import re

from flbook.book import lectures, questions
from flbook.book.kinds import solved

TOOLS = {  # the sections of the primer: their label, and their heading
    "concentration": "Gaussian concentration",
    "hermite": "Hermite polynomials",
    "kernels": "Kernels and the tangent kernel",
    "flow": "Gradient flow",
    "spikes": "Wishart matrices and spikes",
    "bulks": "Bulks of random matrices",
    "attention": "Attention",
    "memory": "Associative memory",
    "chains": "Markov chains and chi-square information",
}
WORDS_PER_MINUTE = 160  # of prose with formulas, slower than a novel
_COUNT = "<!-- lectures -->"
_LINE = re.compile(r"^\*[^\n]* · Level [123] of 3 · [^\n]*\*\n?", flags=re.MULTILINE)
_FOLDED = re.compile(
    r"^(:{3,})\{(?:admonition|note|tip)\}[^\n]*\n:class:[^\n]*dropdown.*?^\1\s*$", flags=re.DOTALL | re.MULTILINE
)


def write(nb, path, papers):
    """Write the line into the first cell of a notebook, in place; nothing if it has no ``lecture`` in its metadata.

    Parameters
    ----------
    nb
        The notebook.
    path
        Where it lies, as ``book/chapter/lecture.ipynb``; what it needs is looked up beside it.
    papers
        How each paper of the bibliography is called, by key.
    """
    given = nb.metadata.get("lecture")
    if not given:
        return
    keys = [given["paper"]] if isinstance(given["paper"], str) else given["paper"]
    parts = [given["topic"], *(papers[key] for key in keys), f"Level {given['level']} of 3", f"{minutes(nb)} minutes"]
    if given["needs"]:
        parts.append("Read first: " + ", ".join(_link(path, need) for need in given["needs"]))
    if given.get("tools"):
        parts.append("Tools: " + ", ".join(_section(tool) for tool in given["tools"]))
    line = f"*{' · '.join(parts)}*\n"
    title, _, rest = nb.cells[0].source.partition("\n")
    rest = _LINE.sub("", rest, count=1).lstrip("\n")
    nb.cells[0].source = f"{title}\n\n{line}" + (f"\n{rest}" if rest else "")


def with_counts(text, book):
    """A page in which ``<!-- lectures -->`` became their number, ``<!-- minutes: a/b c/d -->`` how long those take.

    Parameters
    ----------
    text
        The page's source.
    book
        The folder of the pages.
    """

    def total(match):
        return f"{sum(_stated(book / f'{name}.ipynb') for name in match[1].split())} minutes"

    if _COUNT in text:
        text = text.replace(_COUNT, str(len(lectures.listed(book.parent))))
    return re.sub(r"<!-- minutes: ([\w/ ]+) -->", total, text)


def _stated(path):
    """The minutes in the line under a page's title; a page without the line, such as the primer, is counted."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    cells = [{**cell, "source": "".join(cell["source"])} for cell in cells]
    found = re.search(r" · (\d+) minutes", cells[0]["source"])
    return int(found[1]) if found else _rounded(words(cells))


def _rounded(count):
    return 5 * math.ceil(count / WORDS_PER_MINUTE / 5)


def _section(tool):
    """A section of the primer, as a link with its heading; sections of a page are named by their headings."""
    return f"[{TOOLS[tool]}](../primer.ipynb#{TOOLS[tool].lower().replace(' ', '-')})"


def minutes(nb):
    """How long the prose of a page takes, without its solutions; a multiple of five."""
    return _rounded(words(nb.cells))


def words(cells):
    """Words of prose that a reader sees without opening anything; a formula counts as one word."""
    text = "\n".join(cell["source"] for cell in cells if cell["cell_type"] == "markdown")
    text = _FOLDED.sub("", questions.without(solved(_LINE.sub("", text))))
    text = re.sub(r"\$\$.*?\$\$|\$[^$\n]+\$", " formula ", text, flags=re.S)
    text = re.sub(r"^:{3,}.*$|^:\w+:.*$|\{[\w:]+\}(?=`)|\]\([^)]*\)", " ", text, flags=re.M)
    return len(re.findall(r"[^\W_][\w'’-]*", text))


def _link(path, need):
    """The lecture of this name, as a link with its topic."""
    other = path.parents[1] / f"{need}.ipynb"
    topic = json.loads(other.read_text(encoding="utf-8"))["metadata"]["lecture"]["topic"]
    chapter, _, name = need.rpartition("/")
    where = f"{name}.ipynb" if chapter == path.parent.name else f"../{need}.ipynb"
    return f"[{topic}]({where})"
