"""The picture of how the lectures depend on each other, drawn from what each says that it needs.

``python -m flbook.book.dependencies FILE.svg`` draws it alone. ``python -m flbook.book.dependencies FILE.md`` writes
what a page beside the front page includes: the picture for a wide screen, a narrow one for a phone, and the same links
as a list, for whoever hears the page or reads it as text.

The drawing is layered: a band for each chapter, in it a row for each depth, and arrows that only point downwards.
An arrow that passes a row has a lane of its own there, so that it never runs behind a box. No arrow repeats what
others say together.
"""

import sys
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from textwrap import wrap

from flbook.book import lectures, made, metadata

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b5539a", "#8c6d00", "#6a5acd", "#777777")  # of the chapters, in order
SWEEPS = 24  # of the ordering; more change nothing in this book


@dataclass(frozen=True)
class Measures:
    """Sizes of a drawing in pixels; `most` is how many boxes may stand in a row, `letters` how many fit in a line."""

    width: int
    box: int
    most: int
    letters: int
    font: float
    line: int = 17
    lane: int = 14
    gap: int = 16  # between boxes of a row
    below: int = 34  # a row: where the arrows bend
    heading: int = 36  # of a chapter
    edge: int = 14  # left free on both sides


WIDE = Measures(width=760, box=126, most=4, letters=16, font=13, lane=8, gap=7)
NARROW = Measures(width=352, box=124, most=2, letters=16, font=13, lane=4, gap=4, below=32, edge=8)


@dataclass(eq=False)
class Spot:
    """A place in a row: the box of a lecture, or the lane of the arrows that start at `source`."""

    row: int
    source: str
    lecture: metadata.Lecture | None = None
    x: float = 0.0
    above: list = field(default_factory=list)
    below: list = field(default_factory=list)


def reduced(book):
    """What each lecture needs, less what these need themselves: a dict of lists of names."""
    direct = {lecture.name: set(lecture.needs) for lecture in book}

    def reach(name):
        return direct[name].union(*map(reach, direct[name]))

    needed = {name: {need for need in needs if not any(need in reach(other) for other in needs)}
              for name, needs in direct.items()}  # fmt: skip
    return {name: sorted(needs, key=list(direct).index) for name, needs in needed.items()}


def rows(book, most):
    """The rows of the picture: chapter by chapter, by depth inside the chapter, at most so many lectures a row."""
    needs = {lecture.name: lecture.needs for lecture in book}
    chapter = {lecture.name: lecture.chapter for lecture in book}

    def depth(name):
        return max((1 + depth(need) for need in needs[name] if chapter[need] == chapter[name]), default=0)

    found = []
    for now in dict.fromkeys(chapter.values()):
        inside = [lecture for lecture in book if lecture.chapter == now]
        for level in range(1 + max(depth(lecture.name) for lecture in inside)):
            same = [lecture for lecture in inside if depth(lecture.name) == level]
            count = -(-len(same) // most)
            size = -(-len(same) // count)  # rows of about one length
            found += [same[k : k + size] for k in range(0, len(same), size)]
    return found


def layout(book, sizes):
    """The spots of every row, from left to right, joined by arrows and with their places."""
    table = [[Spot(k, lecture.name, lecture) for lecture in row] for k, row in enumerate(rows(book, sizes.most))]
    spots = {spot.source: spot for row in table for spot in row}
    lanes = {}
    for name, needs in reduced(book).items():
        for need in needs:
            last = spots[need]
            for k in range(spots[need].row + 1, spots[name].row):  # arrows from one box share its lane
                if (need, k) not in lanes:
                    lanes[need, k] = Spot(k, need)
                    table[k].append(lanes[need, k])
                last = _joined(last, lanes[need, k])
            _joined(last, spots[name])
    _order(table)
    _place(table, sizes)
    return table


def _joined(upper, lower):
    if lower not in upper.below:
        upper.below.append(lower)
        lower.above.append(upper)
    return lower


def _order(table):
    """Sort each row by the middle of its neighbours, up and down by turns, and keep the order with fewest crossings."""
    best = [list(row) for row in table]
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for row in table if down else reversed(table):
            for place, spot in enumerate(row):
                spot.x = place / max(1, len(row) - 1)
            row.sort(key=lambda spot: _middle(spot.above if down else spot.below, spot.x))
            for place, spot in enumerate(row):
                spot.x = place / max(1, len(row) - 1)
        if crossings(table) < crossings(best):
            best = [list(row) for row in table]
    table[:] = best


def _middle(neighbours, otherwise):
    return sum(spot.x for spot in neighbours) / len(neighbours) if neighbours else otherwise


def crossings(table):
    """How many pairs of arrows cross between two rows."""
    count = 0
    for upper, lower in zip(table, table[1:], strict=False):
        place = {id(spot): number for number, spot in enumerate(lower)}
        arrows = [(number, place[id(end)]) for number, spot in enumerate(upper) for end in spot.below]
        count += sum((a - c) * (b - d) < 0 for k, (a, b) in enumerate(arrows) for c, d in arrows[:k])
    return count


def _width(spot, sizes):
    return sizes.box if spot.lecture else sizes.lane


def _place(table, sizes):
    """Give every spot its x: near the middle of its neighbours, in the order of its row, and inside the picture."""
    for row in table:
        free = sizes.width - sum(_width(spot, sizes) for spot in row)
        step, x = free / (len(row) + 1), 0.0
        for spot in row:
            spot.x = x + step + _width(spot, sizes) / 2
            x = spot.x + _width(spot, sizes) / 2
    for sweep in range(SWEEPS):
        for row in table if sweep % 2 == 0 else reversed(table):
            wish = [_pulled(spot) for spot in row]
            for spot, x in zip(row, _apart(row, wish, sizes), strict=True):
                spot.x = x


def _pulled(spot):
    """Where a spot's neighbours draw it; lanes draw each other harder, so that they run straight."""
    ends = [(5 if not (spot.lecture or end.lecture) else 1, end.x) for end in spot.above + spot.below]
    return sum(weight * x for weight, x in ends) / sum(weight for weight, _ in ends) if ends else spot.x


def _apart(row, wish, sizes):
    """The places nearest to the wishes that keep the order and the distances: the mean of pushing right and left."""
    need = [(_width(a, sizes) + _width(b, sizes)) / 2 + sizes.gap for a, b in zip(row, row[1:], strict=False)]
    left, right = sizes.edge + _width(row[0], sizes) / 2, sizes.width - sizes.edge - _width(row[-1], sizes) / 2
    squeeze = min(1.0, (right - left) / sum(need)) if need else 1.0  # a row that is too long for its picture
    need = [space * squeeze for space in need]
    low = [left + sum(need[:k]) for k in range(len(row))]
    high = [right - sum(need[k:]) for k in range(len(row))]
    wish = [min(max(x, a), b) for x, a, b in zip(wish, low, high, strict=True)]
    push, pull = wish[:], wish[:]
    for k in range(1, len(row)):
        push[k] = max(push[k], push[k - 1] + need[k - 1])
    for k in reversed(range(len(row) - 1)):
        pull[k] = min(pull[k], pull[k + 1] - need[k])
    middle = [(a + b) / 2 for a, b in zip(push, pull, strict=True)]
    return [min(max(x, a), b) for x, a, b in zip(middle, low, high, strict=True)]


STYLE = """\
.deps text { font-family: var(--pst-font-family-base, system-ui, sans-serif); }
.deps text { fill: var(--pst-color-text-base, #1a1a1a); }
.deps .band { fill: var(--pst-color-surface, #f3f4f5); }
.deps .name { font-weight: 600; paint-order: stroke; stroke: var(--pst-color-surface, #f3f4f5); stroke-width: 5px; }
.deps .key { fill: var(--pst-color-text-muted, #4a4f55); }
.deps .box { fill: var(--pst-color-background, #fff); stroke: var(--pst-color-text-muted, #6b7075); stroke-width: 1; }
.deps a:hover .box, .deps a:focus .box { stroke: var(--pst-color-link, #005f94); stroke-width: 2.5; }
.deps a:hover text, .deps a:focus text { fill: var(--pst-color-link, #005f94); text-decoration: underline; }
.deps a:focus { outline: none; }
.deps .arrow { fill: none; stroke: var(--pst-color-text-muted, #6b7075); stroke-width: 1.3; }
.deps .tip { fill: var(--pst-color-text-muted, #6b7075); }
.deps svg { display: block; width: 100%; height: auto; }
.deps svg.wide { max-width: 840px; }
.deps svg.narrow { display: none; max-width: 420px; }
@media (max-width: 640px) { .deps svg.wide { display: none; } .deps svg.narrow { display: block; } }
"""
ALT = "How the lectures depend on each other: an arrow leads from a lecture to one that builds on it."


def picture(book, names, sizes, kind):
    """The SVG element of one drawing.

    Parameters
    ----------
    book
        The lectures, in order.
    names
        Folder of a chapter -> its caption.
    sizes
        ``WIDE`` or ``NARROW``.
    kind
        The class of the element, and part of its identifiers.
    """
    table = layout(book, sizes)
    topics = {lecture.name: lecture.topic for lecture in book}
    chapters = list(dict.fromkeys(lecture.chapter for lecture in book))
    bands, boxes, arrows, tops, y, shown = [], [], [], [], 0, None
    for row in table:
        chapter = next(spot.lecture.chapter for spot in row if spot.lecture)
        if chapter != shown:
            y += 0 if shown is None else 8
            bands.append([chapter, y, 0])
            shown, y = chapter, y + sizes.heading
        lines = max(len(_lines(spot.lecture, sizes)) for spot in row if spot.lecture)
        height = lines * sizes.line + 20
        tops.append((y, y + height))
        boxes += [_box(spot, y, height, sizes, topics, chapters) for spot in row if spot.lecture]
        y += height + sizes.below
        bands[-1][2] = y - 12
    for spot in (spot for row in table for spot in row):
        if not spot.lecture:
            arrows.append(_path(f"M{spot.x:.1f} {tops[spot.row][0]}V{tops[spot.row][1]}"))
        for end in spot.below:
            arrows.append(_bend(spot.x, tops[spot.row][1], end.x, tops[end.row][0], bool(end.lecture)))
    back = [
        f'<rect class="band" y="{top}" width="{sizes.width}" height="{bottom - top}" rx="8"/>'
        f'<rect y="{top}" width="5" height="{bottom - top}" rx="2.5" fill="{_colour(chapter, chapters)}"/>'
        for chapter, top, bottom in bands
    ]
    heads = [
        f'<text class="name" x="16" y="{top + 23}" font-size="{sizes.font + 1.5}">{escape(names[chapter])}</text>'
        for chapter, top, _ in bands
    ]
    key = [f"{'•' * level} {words}" for level, words in metadata.LEVELS.items()]
    key = f'<text class="key" x="16" y="{y + 12}" font-size="{sizes.font}">{escape("Level: " + ", ".join(key))}</text>'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{kind}" viewBox="0 0 {sizes.width} {y + 22}" role="group" '
            f'aria-label="{escape(ALT)}">',
            *back, *arrows, *heads, *boxes, key, "</svg>",
        ]
    )  # fmt: skip


def _colour(chapter, chapters):
    return COLOURS[chapters.index(chapter) % len(COLOURS)]


def _lines(lecture, sizes):
    return wrap(lecture.topic, sizes.letters, break_long_words=False)


def _box(spot, top, height, sizes, topics, chapters):
    """A link that is a box: the topic, a stripe of the chapter's colour, a dot for each level."""
    lecture, left, lines = spot.lecture, spot.x - sizes.box / 2, _lines(spot.lecture, sizes)
    colour = _colour(lecture.chapter, chapters)
    first = top + (height - 6 - len(lines) * sizes.line) / 2 + sizes.line - 3
    text = "".join(
        f'<tspan x="{spot.x + 2:.1f}" y="{first + k * sizes.line:.1f}">{escape(line)}</tspan>'
        for k, line in enumerate(lines)
    )
    dots = "".join(
        f'<circle class="tip" cx="{spot.x + 2 + 8 * (k - (lecture.level - 1) / 2):.1f}" cy="{top + height - 7}" r="2"/>'
        for k in range(lecture.level)
    )
    return (
        f'<a href="{lecture.name}.html" aria-label="{escape(_said(lecture, topics))}">'
        f"<title>{escape(lecture.title.replace('$', ''))}</title>"
        f'<rect class="box" x="{left:.1f}" y="{top}" width="{sizes.box}" height="{height}" rx="5"/>'
        f'<rect x="{left:.1f}" y="{top}" width="5" height="{height}" rx="2.5" fill="{colour}"/>'
        f'<text text-anchor="middle" font-size="{sizes.font}">{text}</text>{dots}</a>'
    )


def _said(lecture, topics):
    """A lecture in words: its topic, its level, and what it needs."""
    after = ", ".join(topics[need] for need in lecture.needs)
    return f"{lecture.topic}, level {lecture.level}{', after: ' + after if after else ''}"


def _path(way):
    return f'<path class="arrow" d="{way}"/>'


def _bend(x, y, to_x, to_y, tip):
    """An arrow through the space between two rows; only at a box it has a tip."""
    end, half = (to_y - 6 if tip else to_y), (y + to_y) / 2
    head = f'<path class="tip" d="M{to_x:.1f} {to_y}l-4 -8h8z"/>' if tip else ""
    return _path(f"M{x:.1f} {y}C{x:.1f} {half:.1f} {to_x:.1f} {half:.1f} {to_x:.1f} {end}") + head


def as_list(book, names):
    """The same links as a list of HTML, chapter by chapter."""
    topics = {lecture.name: lecture.topic for lecture in book}
    parts = []
    for chapter in dict.fromkeys(lecture.chapter for lecture in book):
        items = [
            f'<li><a href="{lecture.name}.html">{escape(lecture.topic)}</a>'
            f"{escape(_said(lecture, topics).removeprefix(lecture.topic))}</li>"
            for lecture in book
            if lecture.chapter == chapter
        ]
        parts.append(f"<li>{escape(names[chapter])}<ul>\n" + "\n".join(items) + "\n</ul></li>")
    return "<ul>\n" + "\n".join(parts) + "\n</ul>"


def captions(folder):
    """Folder of a chapter -> its caption in the table of contents."""
    parts = lectures.parts(folder)
    return {name.partition("/")[0]: caption for caption, below in parts for name in below if "/" in name}


def svg(folder):
    """The wide picture as a file of its own."""
    drawn = picture(metadata.collect(folder), captions(folder), WIDE, "deps wide").split("\n", 1)
    return f"{drawn[0]}\n<style>{STYLE}</style>\n{drawn[1]}\n"


def fragment(folder):
    """What a page beside the front page includes, in MyST: both pictures, and the links as a list."""
    book, names = metadata.collect(folder), captions(folder)
    drawn = [picture(book, names, sizes, kind) for sizes, kind in ((WIDE, "wide"), (NARROW, "narrow"))]
    body = [f"<style>\n{STYLE}</style>", '<div class="deps">', *drawn]
    body += ["<details><summary>The same as a list</summary>", as_list(book, names), "</details>", "</div>"]
    return "```{raw} html\n" + "\n".join(body) + "\n```\n"


def main(argv):
    """Write the picture to the file that the arguments name; returns the exit status."""
    known = {".svg": svg, ".md": fragment}
    chosen = argv if len(argv) == 1 and Path(argv[0]).suffix in known else []  # another ending is a wrong call
    usage = "python -m flbook.book.dependencies FILE.svg | FILE.md"
    return made.write(chosen, usage, lambda path: known[path.suffix](lectures.root()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
