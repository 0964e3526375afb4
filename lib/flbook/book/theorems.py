"""The table of theorems: every statement that the pages set in a box, where it stands, and who vouches for it.

``python -m flbook.book.theorems book/theorems.md`` writes the page. It is made of the pages' own text, with the
standard library alone, because the pages are rendered where nothing else is installed.
"""

import json
import posixpath
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from flbook.book import lectures, made

KINDS = ("theorem", "proposition", "lemma", "corollary", "definition")
PROVED, STATED, REPORTED, ARGUED = "proved here", "stated", "reported", "argued in the text"

_FENCE = re.compile(r"^\s*(:{3,}|`{3,})(?:\{([\w:-]+)\}[ \t]*(.*?))?\s*$")
_CITE = re.compile(r"\{cite(?::\w+)?\}`([^`]+)`")
_HEARSAY = re.compile(r"\b(?:as reported|in words|the (?:talk|tutorial|slides?))\b", flags=re.IGNORECASE)
_ATOM = re.compile(r"\$\$.*?\$\$|\$(?:\\.|[^$\\])+\$|\{[\w:-]+\}`[^`]*`|`[^`]*`|\[[^\]]*\]\([^)]*\)", flags=re.DOTALL)
_ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|cf|al|resp|vs)\.$")

_INTRODUCTION = """\
Every theorem, proposition and lemma of the book, and every definition with a source, in the book's order.
*Proved here*: its proof stands on the page. *Stated*: the page cites the source. *Reported*: given as a talk, slides,
an abstract or reading notes give it, in whole or in part. *Argued in the text*: derived on the page, outside of a
proof. The table shows how each statement begins. Its box shows all conditions and conclusions.
"""


@dataclass(frozen=True)
class Box:
    """A statement that a page sets in a box.

    Parameters
    ----------
    kind
        As in ``{prf:kind}``.
    title, label
        As the box gives them; empty if it does not.
    body
        What stands in the box, without its options.
    page
        Name of the page, as ``"benign_overfitting/xor"``.
    proved
        Whether a proof follows before the next statement.
    topic
        What its page is about, where the page says so.
    """

    kind: str
    title: str
    label: str
    body: str
    page: str
    proved: bool = False
    topic: str = ""

    @property
    def cited(self):
        """Keys of the papers that it cites, in order."""
        keys = (key.strip() for keys in _CITE.findall(f"{self.title} {self.body}") for key in keys.split(","))
        return tuple(dict.fromkeys(keys))

    @property
    def status(self):
        """Who vouches for it."""
        if self.proved:
            return PROVED
        if not self.cited:
            return ARGUED
        sources = " ".join(sentence for sentence in sentences(self.body) if _CITE.search(sentence))
        return REPORTED if _HEARSAY.search(f"{self.title} {sources}") else STATED


def read(path):
    """What a person wrote as Markdown on a page, of a notebook its Markdown cells; and the page's topic."""
    written = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return written, ""
    try:
        notebook = json.loads(written)
    except ValueError:
        raise ValueError(f"{path.parent.name}/{path.name} is not a notebook: it holds no JSON.") from None
    cells = ("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    return "\n\n".join(cells), notebook["metadata"].get("lecture", {}).get("topic", "")


def boxes(written, page, topic=""):
    """The statements of a page's Markdown, in order; a proof belongs to the last statement before it."""
    found, lines = [], iter(written.splitlines())
    for line in lines:
        fence = _FENCE.match(line)
        if not fence or not (fence[2] or "").startswith("prf:"):
            continue
        kind, title = fence[2].removeprefix("prf:"), fence[3]
        if kind == "proof" and found:
            found[-1] = Box(**{**vars(found[-1]), "proved": True})
        if kind not in KINDS:
            continue
        body = []
        for inner in lines:
            end = _FENCE.match(inner)
            if end and not end[2] and end[1][0] == fence[1][0] and len(end[1]) >= len(fence[1]):
                break
            body.append(inner)
        options = {}
        while body and (option := re.match(r"^\s*:([\w-]+):\s*(.*?)\s*$", body[0])):
            options[option[1]] = option[2]
            body.pop(0)
        found.append(Box(kind, title, options.get("label", ""), "\n".join(body).strip(), page, topic=topic))
    return found


def collect(folder=None):
    """Captions of the book's parts, and the statements of their pages; those of definitions only if they cite."""
    folder = lectures.root() if folder is None else Path(folder)
    found = []
    for caption, below in lectures.parts(folder):
        inside = []
        for page, path in below.items():
            if path.stem != "theorems":  # itself
                written, topic = read(path)
                inside += boxes(written, page, topic)
        found.append((caption, [box for box in inside if box.kind != "definition" or box.cited]))
    return [(caption, inside) for caption, inside in found if inside]


def sentences(body):
    """The sentences of a text in Markdown; nothing in a formula, a role or a link ends one."""
    kept = []

    def keep(match):
        kept.append(match[0])
        return f"\x00{len(kept) - 1}\x00"

    plain, parts, start = _ATOM.sub(keep, body), [], 0
    for end in re.finditer(r"[.!?](?=\s|$)", plain):
        if not _ABBREVIATED.search(plain[: end.end()]) and not re.search(r"^\s*\d+\.$", plain[: end.end()], re.M):
            parts.append(plain[start : end.end()])
            start = end.end()
    restored = (re.sub("\x00(\\d+)\x00", lambda match: kept[int(match[1])], part) for part in [*parts, plain[start:]])
    return [sentence.strip() for sentence in restored if sentence.strip()]


def beginning(body):
    """The first sentence in one line, and the next one if the first only says what is given.

    What goes on in a displayed formula or in a list ends in dots.
    """
    found = sentences(body)
    lines = []
    for sentence in found[:2]:
        short = re.split(r"\$\$|\n\s*(?:\d+\.|[-*])\s|\n\s*\n", sentence)[0]
        line = re.sub(r"^(?:\d+\.|[-*])\s+", "", " ".join(short.split()))
        lines.append(line if short.strip() == sentence else f"{line.rstrip(',:;')} …")
        if not re.match(r"Let\b", sentence) or lines[-1].endswith("…"):
            break
    return " ".join(lines)


def cell(written, page):
    """Markdown of a page as it may stand in a table on another page: links moved, bars and lone dollars made safe."""

    def moved(match):
        atom = match[0]
        if atom.startswith("$"):  # a bar ends the cell, and `\\|` would come out as a bar
            return atom.replace(r"\|", r"\Vert ").replace("|", r"\vert ")
        if role := re.fullmatch(r"\{doc\}`(?:([^`<]*?)\s*<)?([^`>]+)>?`", atom):
            target = _from_top(role[2], page)
            return f"{{doc}}`{role[1]} <{target}>`" if role[1] else f"{{doc}}`{target}`"
        if (role := re.fullmatch(r"\{(glue:\w+)\}`([^`]+)`", atom)) and "::" not in atom:
            name = role[2] if ":" in role[2] else f"{role[2]}:s"  # from another page a format is needed
            return f"{{{role[1]}}}`{page}.ipynb::{name}`"
        if (link := re.fullmatch(r"\[([^\]]*)\]\(([^)]*)\)", atom)) and not re.match(r"https?:|#|mailto:", link[2]):
            return f"[{_safe(link[1])}]({_from_top(link[2], page)})"
        return atom.replace("|", r"\|")

    parts, last = [], 0
    for match in _ATOM.finditer(written):
        parts += [_safe(written[last : match.start()]), moved(match)]
        last = match.end()
    return "".join([*parts, _safe(written[last:])])


def _from_top(target, page):
    """A path that was relative to a page, relative to the folder of all pages."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), target))


def _safe(plain):
    return plain.replace("|", r"\|").replace("$", r"\$")


def as_page(found):
    """The page of theorems in MyST Markdown: a table for each part, whose rows become cards on a phone."""
    counts = Counter(box.status for _, inside in found for box in inside)
    total = sum(counts.values())
    said = ", ".join(f"{counts[status]} {status}" for status in (PROVED, STATED, REPORTED, ARGUED) if counts[status])
    lines = ["# Theorems", "", f"**{total} statement{'' if total == 1 else 's'}: {said}.**", "", _INTRODUCTION]
    for caption, inside in found:
        lines += ["", *([f"## {caption}", ""] if caption else []), ":::{div} stacked", ""]
        lines += ["| Statement | Status | Source and page |", "|:--|:--|:--|"]
        lines += [f"| {_statement(box)} | *{box.status}* | {_source(box)} |" for box in inside]
        lines += ["", ":::"]
    return "\n".join(lines) + "\n"


def _statement(box):
    number = f"{{prf:ref}}`{box.label}`" if box.label else box.kind.capitalize()
    title = f"**{cell(box.title, box.page)}**" if box.title else ""
    return "<br>".join(filter(None, (f"{number}. {title}".strip(), cell(beginning(box.body), box.page))))


def _source(box):
    page = f"{{doc}}`{box.topic} <{box.page}>`" if box.topic else f"{{doc}}`{box.page}`"
    return "<br>".join([*(f"{{cite:t}}`{key}`" for key in box.cited), page])


def main(argv):
    """Write the page of theorems to the file that the arguments name; returns the exit status."""
    return made.write(argv, "python -m flbook.book.theorems OUT.md", lambda path: as_page(collect()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
