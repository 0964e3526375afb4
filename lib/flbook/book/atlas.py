"""The atlas: borders and scaling laws of the whole book, each with its picture, its formula and what was measured.

``python -m flbook.book.atlas book/atlas.md`` writes the page, of `atlas.toml` and the stored notebooks, with the
standard library alone: the pages are rendered where nothing else is installed. The pictures are cut out of the
notebooks when the page is read (`with_pictures`).
"""

import json
import re
import sys
from base64 import b64decode
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path

from flbook.book import EDITION, figures, lectures, ledger, made, tables
from flbook.book.thumbnails import thumbnail
from flbook.claims import row
from flbook.claims.papers import named

FILE = "lib/flbook/book/atlas.toml"  # below the folder that holds _toc.yml
FILTERS = {"data": "Data", "network": "Network", "rule": "Rule"}
_PICTURE = re.compile(r"<!-- picture: (\S+) (\S+) (\S*) -->")
_INTRODUCTION = f"""\
# Atlas

The borders and scaling laws of the book on one page: what lies on the axes, which formula theory gives for the border,
and what was measured. On each line the dot is our number, the bar its 95 % interval over the seeds, the dashed mark the
theory, and crosses are rivals that the measurement excludes. Pictures lead to their lectures, numbers to their rows of
the [](ledger.md). They are those of the edition {EDITION}.
"""
WIDTH, HEIGHT, EDGE = 320, 54, 26  # of a number line: pixels


@dataclass(frozen=True)
class AtlasEntry:
    """A border or a scaling law.

    Parameters
    ----------
    lecture
        Its page, as ``"benign_overfitting/xor"``.
    title
        What it is about.
    claims
        Names of the claims that measure it, divided by spaces.
    axes, border
        What lies on the axes, and the formula of the border, with mathematics between dollar signs.
    data, network, rule
        By which the page filters.
    figure, panel
        Label of the figure that shows it, and which panel of two, ``"a"`` or ``"b"``.
    """

    lecture: str
    title: str
    claims: str
    axes: str
    border: str
    data: str
    network: str
    rule: str
    figure: str = ""
    panel: str = ""


def read(folder: Path) -> list[AtlasEntry]:
    """The entries, in their order; none if there is no file.

    Raises
    ------
    ValueError
        As `flbook.book.tables.read`.
    """
    return tables.read(folder, FILE, AtlasEntry)


# A law as a line with marks on it.


def numbers(record: dict) -> tuple[float, list[float] | None]:
    """Our number and its 95 % interval, if it has one."""
    value, error = record["value"], row.error(record)
    return value, record["interval"] or ([value - 1.96 * error, value + 1.96 * error] if error else None)


def measured(record: dict) -> str:
    """Our number, its interval, and theory, in words."""
    value, interval = numbers(record)
    said = f"measured {row.short(value)}"
    if interval:
        said += f", 95 % interval {row.short(interval[0])} to {row.short(interval[1])}"
    if record["theory"] is not None:
        said += f", theory {row.short(record['theory'])}"
    return row.typeset(said)


def line(record: dict) -> str:
    """A law as an SVG: the measured number and its interval, theory, and the nearest rivals, in the page's colours."""
    value, interval = numbers(record)
    theory = record["theory"]
    rivals = sorted({x for x in record["excludes"].values() if x is not None}, key=lambda x: abs(x - value))[:3]
    marks = [value, *rivals, *(interval or []), *([] if theory is None else [theory])]
    low, high = min(marks), max(marks)
    size = (high - low) or max(abs(value), 1.0)

    def at(x: float) -> float:
        return round(EDGE + (WIDTH - 2 * EDGE) * ((x - low) / size if high > low else 0.5), 1)

    middle = HEIGHT / 2
    drawn = [f'<line class="axis" x1="4" x2="{WIDTH - 4}" y1="{middle}" y2="{middle}"/>']
    below: list[float] = []
    if theory is not None:
        x = at(theory)
        drawn.append(f'<line class="theory" x1="{x}" x2="{x}" y1="{middle - 11}" y2="{middle + 11}"/>')
        drawn.append(_label(x, HEIGHT - 3, f"theory {row.short(theory)}", 78))
        below.append(x)
    for rival in rivals:
        x = at(rival)
        drawn.append(f'<path class="rival" d="M{x - 4},{middle - 4}l8,8m0,-8l-8,8"/>')
        if all(abs(x - other) > 62 for other in below):
            drawn.append(_label(x, HEIGHT - 3, row.short(rival), 50))
            below.append(x)
    if interval:
        bar = [at(end) for end in interval]
        drawn.append(f'<line class="interval" x1="{bar[0]}" x2="{bar[1]}" y1="{middle}" y2="{middle}"/>')
    drawn.append(f'<circle class="ours" cx="{at(value)}" cy="{middle}" r="4.5"/>')
    drawn.append(_label(at(value), 12, row.short(value), 50, "ours"))
    excluded = named(", ".join(f"{name} {row.short(x)}" for name, x in record["excludes"].items() if x in rivals))
    said = measured(record) + (f"; excluded: {row.typeset(excluded)}" if excluded else "")
    return (f'<svg class="law" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(said)}">'
            + "".join(drawn) + "</svg>")


def _label(x: float, y: float, text: str, width: float, style: str = "") -> str:
    """Text centred at x, but inside of the drawing."""
    x = round(min(max(x, width / 2), WIDTH - width / 2), 1)
    return f'<text class="{style}" x="{x}" y="{y}" text-anchor="middle">{escape(row.typeset(text))}</text>'


# The page.


def as_page(folder: Path) -> str:
    """The page in MyST Markdown, without what lectures that are being written do not show yet."""
    found = {record["name"]: record for record in ledger.collect(folder)}
    entries = [entry for entry in read(folder) if any(name in found for name in names(entry))]
    chapters = {page.partition("/")[0]: caption for caption, below in lectures.parts(folder) for page in below}
    lines = [_INTRODUCTION, _form(entries)]
    for chapter, inside in groupby(entries, key=lambda entry: entry.lecture.partition("/")[0]):
        lines += [f"## {chapters[chapter]}", ""]
        for entry in inside:
            lines += _shown(entry, [found[name] for name in names(entry) if name in found])
    return "\n".join(lines) + "\n"


def names(entry: AtlasEntry) -> list[str]:
    """What the ledger calls the claims of an entry."""
    return [f"{entry.lecture.rpartition('/')[2]}.{name}" for name in entry.claims.split()]


def _form(entries: list[AtlasEntry]) -> str:
    """The filter, hidden where scripts do not run; `atlas.js` shows it."""
    fields = []
    for field, label in FILTERS.items():
        values = sorted({getattr(entry, field) for entry in entries}, key=str.lower)
        options = "".join(f"<option>{escape(value)}</option>" for value in values)
        chosen = f'<select id="atlas-{field}"><option value="">any</option>{options}</select>'
        fields.append(f"<label>{label} {chosen}</label>")
    return "\n".join([
        "```{raw} html",
        '<form id="atlas-filter" role="search" aria-label="Borders and laws" hidden>',
        f"<p>{' '.join(fields)}</p>",
        '<p id="atlas-status" role="status"></p>',
        "</form>",
        '<script defer src="../_static/atlas.js"></script>',
        "```",
        "",
    ])


def _shown(entry: AtlasEntry, laws: list[dict]) -> list[str]:
    """An entry's lines of MyST."""
    page = f"{entry.lecture}.html"
    tags = " ".join(f'data-{field}="{escape(getattr(entry, field))}"' for field in FILTERS)
    name = f"{entry.lecture.rpartition('/')[2]}-{entry.claims.split()[0]}".replace("_", "-")
    lines = ["```{raw} html", f'<div class="atlas-entry{" pictured" if entry.figure else ""}" id="{name}" {tags}>']
    if entry.figure:
        lines += [f'<a class="atlas-picture" href="{page}#{entry.figure}">',
                  f"<!-- picture: {entry.lecture} {entry.figure} {entry.panel} -->", "</a>"]
    lines += ['<div class="atlas-text">', f'<h3><a href="{page}">{escape(entry.title)}</a></h3>', "```", "",
              f"*Axes:* {entry.axes}.", "", f"*Theory:* {entry.border}.", "", "```{raw} html"]
    lines += [_law(record) for record in laws]
    commands = dict.fromkeys(record["command"] or f'make run LECTURES="{entry.lecture}"' for record in laws)
    lines += [f'<p class="atlas-tags">{escape(entry.data)} · {escape(entry.network)} · {escape(entry.rule)}<br>'
              + "<br>".join(f"<code>{escape(command)}</code>" for command in commands) + "</p>",
              "</div></div>", "```", ""]
    return lines


def _law(record: dict) -> str:
    mark = row.mark(record)
    said = f"{measured(record)}, {row.MARKS[mark][0]} {mark}"
    return (f'<div class="atlas-law">{line(record)}<p>{escape(record["says"])}: '
            f'<a href="ledger.html#{record["name"]}">{said}</a></p></div>')


# The pictures.


def with_pictures(text: str, book: Path, images: Path, up: str) -> str:
    """The page with the pictures that it asks for by ``<!-- picture: lecture label panel -->``.

    Parameters
    ----------
    text
        The page's source.
    book
        The folder of the pages, in whose notebooks the figures are.
    images
        Folder of the built book into which pictures are written.
    up
        The way from the page to the root of the book, as ``"../"``.
    """
    def shown(asked: re.Match) -> str:
        output = find(book, asked[1], asked[2])
        return _picture(output, asked[3], images, up) if output else ""

    return _PICTURE.sub(shown, text)


def find(book: Path, lecture: str, label: str) -> dict | None:
    """The stored output that holds a figure's picture; None if the lecture shows no figure of that name."""
    for cell in json.loads((book / f"{lecture}.ipynb").read_text(encoding="utf-8"))["cells"]:
        outputs = cell.get("outputs", [])
        if any(output.get("metadata", {}).get("flbook", {}).get("name") == label for output in outputs):
            return next((output for output in outputs if "image/png" in output.get("data", {})), None)
    return None


def _picture(output: dict, panel: str, images: Path, up: str) -> str:
    """A figure, or one panel of it, for a light page and a dark one."""
    about = output["metadata"]["flbook"]
    alt = escape(" ".join(about.get("alt", "").split()))
    light = "".join(output["data"]["image/png"])
    looks = {"on-paper" if "live" in about else "lines": light}  # the still of a live figure may be a map
    if "dark" in about:
        looks = {"map only-light": light, "map only-dark": about["dark"]}

    def cut(encoded: str) -> str:
        return figures.stored(thumbnail(b64decode(encoded), panel), images)

    shown = (f'<img src="{up}_images/{cut(encoded)}" alt="{alt}" class="{look}" loading="lazy">'
             for look, encoded in looks.items())
    return "".join(shown)


def main(argv: list[str]) -> int:
    """Write the page to the file that the arguments name; returns the exit status."""
    return made.write(argv, "python -m flbook.book.atlas OUT.md", lambda path: as_page(lectures.root()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
