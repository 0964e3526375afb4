"""Where measurement and expectation part: claims that differ from theory, what came out otherwise, and what fell.

``python -m flbook.book.differences book/differences.md`` writes the page, of the stored notebooks, `expected.toml` and
`fallen.toml`, with the standard library alone: the pages are rendered where nothing else is installed.
"""

import sys
from dataclasses import dataclass

from flbook.book import fallen, lectures, ledger, made, tables
from flbook.claims import row

FILE = "lib/flbook/book/expected.toml"  # below the folder that holds _toc.yml

_INTRODUCTION = """\
# Where measurement and expectation part

A result that is not what theory, a paper or we ourselves expected teaches more than one that is, if it stands. Here is
every such result of the book: what was expected, what came out, what we think, and how to check it. The
[ledger](ledger.md) lists all claims with their marks.
"""
_DIFFERING = """\
## Claims that differ from their theory

Theory gives a number, we measure another, and no finite size that we know of explains it. The measured number is held
by the tests like all others.
"""
_EXPECTED = """\
## What came out otherwise than expected

Statements about rates, methods or conditions that our runs do not bear out, or only in part. None of them contradicts a
theorem under its own conditions, as far as we know.
"""
_FELL = """\
## What fell, and was mended

These claims of the book fell under a fresh seed or a stronger rival, or were sentences that went beyond what was
measured. Each row gives the sense of the old sentence, what was found, why the page could say it, and what it says now.
"""


@dataclass(frozen=True)
class Expected:
    """A result that was not what a paper or we expected.

    Parameters
    ----------
    lecture
        Its page, as ``"benign_overfitting/xor"``.
    expected
        What the paper says, or we expected.
    found
        What came out.
    think
        What we think of it.
    check
        How to check it.
    """

    lecture: str
    expected: str
    found: str
    think: str
    check: str


def read(folder):
    """The hand-written entries below the folder that holds `_toc.yml`; none if there is no file.

    Raises
    ------
    ValueError
        As `flbook.book.tables.read`.
    """
    return tables.read(folder, FILE, Expected)


def as_page(found, expected=(), fell=()):
    """The page in MyST Markdown, of the ledger's records, the hand-written entries and what fell."""
    lines = [_INTRODUCTION]
    differing = [record for record in found if row.mark(record) == "differs"]
    lines += _table(_DIFFERING, ("Theory says", "We measure", "What we think"), map(_differs, differing))
    lines += _table(_EXPECTED, ("Expected", "Found", "What we think, and how to check"), map(_expected, expected))
    lines += _table(_FELL, ("The page said", "What was found", "Why, and what it says now"), map(_fallen, fell))
    return "\n".join(lines) + "\n"


def _table(introduction, titles, rows):
    """A section with its table, as lines; none without rows."""
    rows = list(rows)
    if not rows:
        return []
    lines = [introduction, ":::{div} stacked", "", f"| {' | '.join(titles)} |", "|:--|:--|:--|"]
    return [*lines, *(f"| {' | '.join(cells)} |" for cells in rows), "", ":::", ""]


def _differs(record):
    plain, name = ledger.plain, record["name"]
    says = f"{plain(record['says'])}: {row.typeset(row.short(record['theory']))}"
    measured = row.typeset(", ".join(filter(None, (plain(row.measured(record)), row.off(record)))))
    address = f'<a href="ledger.html#{name}">{name.partition(".")[2]}</a>'
    where = f"[]({record['notebook'].removeprefix('book/')}), {address}"
    return says, f"*Measured:* {measured}<br>{where}", f"{plain(record['differs'])}."


def _expected(entry):
    plain = ledger.plain
    where = f"{plain(entry.expected)}<br>{{doc}}`{entry.lecture}`"
    think = f"*We think:* {plain(entry.think)}.<br>*To check:* {plain(entry.check)}."
    return where, f"*Found:* {plain(entry.found)}.", think


def _fallen(entry):
    plain = ledger.plain
    where = f"{{doc}}`{entry.lecture}`" + (f", claim `{entry.claim}`" if entry.claim else "")
    found = plain(entry.fell) + (f" ({plain(entry.seed)})" if entry.seed else "")
    then = f"*Why:* {plain(entry.wrong)}.<br>*Now:* {plain(entry.mended)}."
    return f"{plain(entry.said)}<br>{where}", found, then


def main(argv):
    """Write the page to the file that the arguments name; returns the exit status."""

    def page(path):
        root = lectures.root()
        return as_page(ledger.collect(), read(root), fallen.read(root))

    return made.write(argv, "python -m flbook.book.differences OUT.md", page)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
