"""The ledger: every claim of the book, its source, our number, its spread, and the verdict.

The stored notebooks are the one database of results, so this reads them, and with nothing but the standard library:
the pages are rendered where neither torch nor numpy is installed.

``python -m flbook.book.ledger book/ledger.md`` writes the Ledger page.
"""

import json
import re
import sys
from html import escape
from itertools import groupby
from pathlib import Path

from flbook.book import lectures, row

_FIELDS = (
    "name notebook kind value book tol rtol claim excludes seeds interval source why scale device command holds note"
).split()

_INTRODUCTION = """\
Each row is a claim that a measurement decides. It *holds* if our number lies in the claim, agrees with what the page
prints, and leaves room for other seeds; its lecture says why the claim is as wide as it is and which rivals it rules
out. *Stored* marks a number from a stored run at the paper's scale. The tests compute every other number again.
"""


def records(notebook):
    """The key numbers of one notebook's outputs, in order."""
    outputs = (output for cell in notebook["cells"] for output in cell.get("outputs", []))
    found = (output.get("metadata", {}).get("flbook", {}) for output in outputs)
    return [record for record in found if record.get("kind") in ("key_number", "identity")]


def title(notebook):
    """The first heading of a notebook."""
    markdown = ("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    headings = (line[2:].strip() for text in markdown for line in text.splitlines() if line.startswith("# "))
    return next(headings, "")


def collect(folder=None):
    """The key numbers of all lectures below `folder`, which defaults to the checkout around the working directory.

    Each record names its notebook and the lecture's title; the order is that of the book.
    """
    folder = lectures.root() if folder is None else Path(folder)
    found = []
    for path in lectures.listed(folder).values():
        try:
            notebook = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            raise ValueError(f"{path.relative_to(folder).as_posix()} is not a notebook: it holds no JSON.") from None
        where = {"notebook": path.relative_to(folder).as_posix(), "title": title(notebook)}
        found += [{**record, **where} for record in records(notebook)]
    return found


def as_json(found):
    """One object a line."""
    return "\n".join(json.dumps({field: record.get(field) for field in _FIELDS}) for record in found)


def as_text(found):
    """A table for the terminal: a block a lecture, a line a key number, the verdicts counted at its end."""
    lines = []
    for notebook, rows in _by_lecture(found):
        lines += ["", f"{rows[0]['title']}  ({notebook})"]
        width = max(len(record["name"]) for record in rows)
        for record in rows:
            measured, against = row.number(record)
            claim = "" if record["kind"] == "identity" else f"; claim {row.span(record['claim'])}"
            lines.append(f"  {_verdict(record):<14}  {record['name']:<{width}}  {measured}  ({against}{claim})")
            lines.append(f"  {'':<14}  {'':<{width}}  {record['source']}")
    return "\n".join([*lines[1:], "", count(found)])


def as_page(found, keys=()):
    """The Ledger page in MyST Markdown: one table a lecture, whose cells break so that it fits a phone.

    `keys` are the keys of the bibliography; where a source names one, the page cites it.
    """
    lines = ["# Ledger", "", f"**{count(found)}.**", "", _INTRODUCTION]
    for notebook, rows in _by_lecture(found):
        link = notebook.removeprefix("book/")
        lines += [
            "",
            f"## [{rows[0]['title'] or link}]({link})",
            "",
            "| Claim | Our number | Verdict |",
            "|---|---|---|",
        ]
        lines += [f"| {_claim(record, keys)} | {_number(record)} | {_verdict(record)} |" for record in rows]
    return "\n".join(lines) + "\n"


def count(found):
    """The verdicts, counted."""
    holding, stored = sum(r["holds"] is True for r in found), sum(r["scale"] == "paper" for r in found)
    return (
        f"{len(found)} key number{'' if len(found) == 1 else 's'}, {holding} holding"
        + (f", {len(found) - holding} not" if holding < len(found) else "")
        + (f"; {stored} stored at the papers' scale" if stored else "")
    )


def _by_lecture(found):
    return [(notebook, list(rows)) for notebook, rows in groupby(found, key=lambda record: record["notebook"])]


def _verdict(record):
    word = {True: "holds", False: "differs", None: "skipped"}[record["holds"]]
    return f"{word}, stored" if record["scale"] == "paper" else word


def _claim(record, keys):
    name = re.sub(r"([._]+)", r"\1<wbr>", record["name"]).replace("_", r"\_")
    parts = re.split(r"([A-Za-z][\w:-]*)", record["source"])
    source = "".join(f"{{cite:t}}`{part}`" if part in keys else _plain(part) for part in parts)
    return f"<code>{name}</code><br>{source}"


def _number(record):
    measured, against = row.number(record)
    claim = f"claim: {row.span(record['claim'])}" if record["kind"] == "key_number" else ""
    about = [against, claim, row.spread(record)]
    return "<br>".join([f"**{_plain(measured)}**", *(_plain(fact) for fact in about if fact)])


def _plain(text):
    """Text in which Markdown sees nothing to act on."""
    return re.sub(r"([\\`*_{}\[\]$|~])", r"\\\1", escape(text, quote=False))


def main(argv):
    """Write the Ledger page to the file that the arguments name; returns the exit status."""
    if len(argv) != 1:
        print("usage: python -m flbook.book.ledger OUT.md", file=sys.stderr)
        return 2
    page = Path(argv[0])
    references = page.parent / "references.bib"
    bibliography = references.read_text(encoding="utf-8") if references.is_file() else ""
    try:
        text = as_page(collect(), set(re.findall(r"@\w+\s*\{\s*([^,\s]+)\s*,", bibliography)))
    except ValueError as error:
        print(f"flbook: {error}", file=sys.stderr)
        return 1
    page.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
