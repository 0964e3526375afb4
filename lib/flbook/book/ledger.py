"""The ledger: every claim of the book, its source, our number, its spread, and the verdict.

The stored notebooks are the one database of results, so this reads them, and with nothing but the standard library:
the pages are rendered where neither torch nor numpy is installed.

``python -m flbook.book.ledger book/ledger.md`` writes the Ledger page.
"""

import json
import math
import re
import sys
from collections import Counter
from html import escape
from itertools import groupby
from pathlib import Path

from flbook.book import lectures, made
from flbook.claims import row
from flbook.claims.papers import KEY

_FIELDS = (
    "name notebook says headline kind mark value theory book tol rtol claim excludes sharpness z seeds interval source "
    "why because differs scale device command holds note"
).split()
STANDING = ("agrees", "close", "holds", "differs")  # the marks of claims that stand
SHARP = (2.0, 3.0)  # half-widths of the claim between theory and the nearest rival: what is asked, what is hoped for

_INTRODUCTION = """\
Each row is a claim that a measurement decides, written down before it was measured: our number lies in the claim, is
what the page prints, and leaves room for other seeds. Its mark says how it stands to theory. It **agrees** (✓) if the
two differ by at most three standard errors, or by the tolerance of an exact statement. It is **close** (≈) if they
differ by more than sampling explains; then the row says why. It **holds** (✓) if theory gives no number, but an
inequality or a rival to be told from. It **differs** (✗) if theory says one thing and we measure another; these are
listed on the page [](differences.md), with what else came out otherwise than expected.

*Half-widths to the nearest rival* say how sharp a claim is: how far theory (else our number) lies from the nearest
rival, in half-widths of the claim. At 1 the rival lies at the claim's edge, and nothing is decided with room to spare.
The weakest claims come first. *Stored* marks a number of a stored run. The tests compute every other number again. The
sign # beside a claim is its address, and a lecture's own line of a claim links to it.
"""
_MANY = {"agrees": "agree with theory", "close": "are close to it", "holds": "hold without one", "differs": "differ"}
_OPTIONS = "".join(f"<option>{mark}</option>" for mark in STANDING)
# Hidden where scripts do not run; `ledger.js` shows it, and stands on this page alone.
_FILTER = f"""\
```{{raw}} html
<form id="ledger-filter" role="search" aria-label="Claims" data-weak="{SHARP[1]:g}" hidden>
<p><label for="ledger-text">Filter the claims by whole words</label><br>
<input id="ledger-text" type="search" autocomplete="off" style="width:100%;max-width:30rem;padding:.35rem .5rem;\
border:1px solid var(--pst-color-text-muted);border-radius:4px;background:var(--pst-color-background);\
color:var(--pst-color-text-base)"></p>
<p><label><input id="ledger-headlines" type="checkbox"> headlines only</label><br>
<label><input id="ledger-weak" type="checkbox"> weak ones only, of a sharpness below {SHARP[1]:g}</label></p>
<p><label>Mark <select id="ledger-mark"><option value="">any</option>{_OPTIONS}</select></label></p>
<p id="ledger-status" role="status"></p>
</form>
<script defer src="../_static/ledger.js"></script>
```
"""


def records(notebook):
    """The checked claims in one notebook's outputs, in order."""
    outputs = (output for cell in notebook["cells"] for output in cell.get("outputs", []))
    found = (output.get("metadata", {}).get("flbook", {}) for output in outputs)
    return [record for record in found if record.get("kind") in ("claim", "identity")]


def title(notebook):
    """The first heading of a notebook."""
    markdown = ("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    headings = (line[2:].strip() for text in markdown for line in text.splitlines() if line.startswith("# "))
    return next(headings, "")


def collect(folder=None):
    """The checked claims of all lectures below `folder`, which defaults to the checkout around the working directory.

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


def with_links(notebook, up):
    """Let the name that a page prints of each claim lead to its row of the ledger, in place.

    Parameters
    ----------
    notebook
        The notebook, as JSON.
    up
        The way from the page to the root of the book, as ``"../../"``.
    """
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            name, data = output.get("metadata", {}).get("flbook", {}).get("name"), output.get("data", {})
            if name and "text/html" in data:
                printed, link = f"<i>name:</i> {name}<", f'<a href="{up}book/ledger.html#{name}">{name}</a>'
                data["text/html"] = "".join(data["text/html"]).replace(printed, f"<i>name:</i> {link}<")


def as_json(found):
    """One object a line."""
    return "\n".join(json.dumps({field: record.get(field) for field in _FIELDS}) for record in found)


def as_text(found):
    """For the terminal: a block a lecture, two lines a claim, the weakest first; counts and shares at its end."""
    lines = []
    for notebook, rows in _by_lecture(found):
        lines += ["", f"{rows[0]['title']}  ({notebook})"]
        for record in _weak_first(rows):
            headline = "* " if record["headline"] else "  "
            lines.append(f"{headline}{_verdict(record):<17}  {record['says']}: {row.number(record)}")
            about = [record["name"].partition(".")[2], row.scores(record), _allowed(record), record["source"]]
            lines.append(f"  {'':<17}  {'; '.join(filter(None, about))}")
    return "\n".join([*lines[1:], "", count(found), _sharp(found)])


def as_page(found, keys=()):
    """The Ledger page in MyST Markdown: a folded table a lecture, whose cells break so that it fits a phone.

    `keys` are the keys of the bibliography; where a source names one, the page cites it.
    """
    lines = ["# Ledger", "", f"**{count(found)}.** {_sharp(found)}", "", _INTRODUCTION, _FILTER]
    for notebook, rows in _by_lecture(found):
        link = notebook.removeprefix("book/")
        lines += ["", f"## [{rows[0]['title'] or link}]({link})", "", f":::{{admonition}} {_folded(rows)}"]
        lines += [":class: dropdown note ledger-claims", "", "| Claim | Our number | Mark |", "|---|---|---|"]
        lines += [
            f"| {_claim(record, keys)} | {_number(record)} | {_verdict(record)} |" for record in _weak_first(rows)
        ]
        lines += [":::"]
    return "\n".join(lines) + "\n"


def shares(found):
    """Of the claims that meet a theory or a published rival, the share as sharp as each value of `SHARP`."""
    known = _decided(found)
    return tuple(sum(x >= sharp for x in known) / len(known) if known else 1.0 for sharp in SHARP)


def _decided(found):
    """Sharpness of the claims that meet a theory or a published rival; a rival is published if it names its paper."""
    met = [r for r in found if r["theory"] is not None or any(KEY.search(rival) for rival in r["excludes"])]
    return [r["sharpness"] for r in met if r["sharpness"] is not None]


def _sharp(found):
    """The shares in a sentence."""
    parts = [
        f"{share:.0%} have a sharpness of {sharp:g} or more" for share, sharp in zip(shares(found), SHARP, strict=True)
    ]
    return f"Of {len(_decided(found))} claims that meet a theory or a published rival, {', '.join(parts)}."


def count(found):
    """The marks, counted."""
    by_mark = Counter(row.mark(record) for record in found)
    said = [f"{by_mark.pop(mark)} {_MANY.get(mark, mark)}" for mark in STANDING if mark in by_mark]
    said += [f"{number} {mark}" for mark, number in sorted(by_mark.items())]
    stored = sum(bool(record["command"]) for record in found)
    return (
        f"{len(found)} claim{'' if len(found) == 1 else 's'}: {', '.join(said) or 'none'}"
        + (f"; {stored} of stored runs" if stored else "")
    )


def _by_lecture(found):
    return [(notebook, list(rows)) for notebook, rows in groupby(found, key=lambda record: record["notebook"])]


def _verdict(record):
    word = row.mark(record)
    sign = row.MARKS[word][0]
    if word == "stored":
        return f"{sign} skipped, stored"
    return f"{sign} {word}, stored" if record["command"] else f"{sign} {word}"


def _weak_first(rows):
    """By sharpness; what has none (identities, which fail by orders of magnitude) stands at the end."""
    return sorted(rows, key=lambda record: math.inf if record["sharpness"] is None else record["sharpness"])


def _folded(rows):
    sharp = [record["sharpness"] for record in rows if record["sharpness"] is not None]
    weakest = f"; the weakest has a sharpness of {row.short(min(sharp))}" if sharp else ""
    return f"{len(rows)} claims, {sum(record['headline'] for record in rows)} of them headlines{weakest}"


def _allowed(record):
    return f"claim {row.span(record['claim'])}" if record["kind"] == "claim" else ""


def _claim(record, keys):
    parts = re.split(r"([A-Za-z][\w:-]*)", record["source"])
    source = "".join(f"{{cite:t}}`{part}`" if part in keys else plain(part) for part in parts)
    says, name = plain(record["says"]), escape(record["name"])
    address = f'<a class="headerlink" id="{name}" href="#{name}" title="Link to this claim">#</a>'
    return f"{f'**{says}**' if record['headline'] else says}{address}<br>{source}"


def _number(record):
    about = [_allowed(record), row.scores(record), row.spread(record)]
    return "<br>".join(plain(fact) for fact in (row.number(record), *about) if fact)


def plain(text):
    """Text in which Markdown sees nothing to act on."""
    return re.sub(r"([\\`*_{}\[\]$|~])", r"\\\1", escape(text, quote=False))


def main(argv):
    """Write the Ledger page to the file that the arguments name; returns the exit status."""

    def page(path):
        return as_page(collect(), lectures.bibliography(path.parent))

    return made.write(argv, "python -m flbook.book.ledger OUT.md", page)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
