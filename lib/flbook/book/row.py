"""How a key number reads: the row under its cell, as HTML for pages and as text for terminals and GitHub.

The colours are inherited from the page, so that the row stands well in light mode, in dark mode and in Colab; only the
verdict has a colour of its own, and it says the same in words.
"""

import math
import re
from html import escape
from statistics import fmean, stdev

HOLDS, MISSES, SKIPPED = "#00704f", "#b04a00", "#5f6368"  # each at least 4.5 : 1 against white

_BOX = (
    "border-left:4px solid {colour};background:rgba(128,128,128,.1);padding:.5em .8em;margin:.5em 0;"
    "line-height:1.5;font-size:.95em;overflow-wrap:anywhere;max-width:60em"
)
_BADGE = "background:{colour};color:#fff;border-radius:.3em;padding:.05em .5em;font-size:.9em;font-weight:600"
_LINE = "display:flex;flex-wrap:wrap;align-items:baseline;gap:.1em .9em"
_CODE = "color:inherit;background:none;border:0;padding:0;font-size:1em"
_LABEL = "opacity:.75;flex:0 0 6em;white-space:nowrap"
_FACT = "flex:1 1 9em"


def decimals(tolerance):
    """Decimal places that show a tenth of the tolerance; negative for tolerances above ten."""
    return math.ceil(1 - math.log10(tolerance) - 1e-9)


def rounded(x, digits):
    """A float as it is recorded; NaN and infinities have no place in a notebook's JSON."""
    return round(float(x), digits) + 0.0 if math.isfinite(x) else None


def short(x):
    """A number with as few digits as tell it from its neighbours."""
    return "none" if x is None else f"{x:.4g}"


def value(record):
    """The measured value, with digits down to a tenth of its tolerance; for an identity its largest relative error."""
    x, digits = record["value"], decimals(record["tol"])
    if x is None:
        return "none"
    if record["kind"] == "identity":
        return f"{x:.1e}" if x else f"below {short(10.0**-digits)}"
    if x and (digits > 6 or abs(x) >= 1e7):
        return f"{x:.{max(0, math.floor(math.log10(abs(x))) + digits)}e}"
    return f"{x:.{max(0, digits)}f}"


def span(claim):
    """The interval of a claim in words."""
    lo, hi = claim
    if lo is None:
        return f"at most {short(hi)}"
    return f"at least {short(lo)}" if hi is None else f"{short(lo)} to {short(hi)}"


def verdict(record):
    """The verdict in words."""
    return {None: "stored: skipped", True: "holds", False: "differs: did you change something?"}[record["holds"]]


def spread(record):
    """How much the number varies with the seed, in words; empty if it does not depend on one."""
    seeds, interval = record["seeds"], record["interval"]
    said = []
    if interval:
        said.append(f"95 % interval {short(interval[0])} to {short(interval[1])}")
    if seeds and None in seeds:
        said.append(f"{len(seeds)} seeds, {seeds.count(None)} of them without a value")
    elif seeds:
        said.append(f"{len(seeds)} seeds: mean {fmean(seeds):.3g}, standard deviation {stdev(seeds):.2g}")
    return "; ".join(said)


def number(record):
    """The measurement, and what it is held against."""
    if record["kind"] == "identity":
        return f"relative error {value(record)}", f"at most {short(record['rtol'])} allowed"
    tolerance = f"{record['rtol'] * 100:g} %" if record["rtol"] else short(record["tol"])
    return value(record), f"book {short(record['book'])} ± {tolerance}"


def facts(record):
    """The other parts of a row, as pairs of a label and a text."""
    rivals = "; ".join(f"{name}: {short(x)}" for name, x in record["excludes"].items())
    if record["kind"] == "identity":
        pairs = [("would miss", rivals)]
    else:
        pairs = [("claim", f"{span(record['claim'])} ({record['why']})"), ("rules out", rivals)]
    pairs += [("spread", spread(record)), ("source", record["source"])]
    if record["scale"] != "book" or not record["device"].startswith("cpu"):
        scale = "stored, paper scale" if record["scale"] == "paper" else f"{record['scale']} scale"
        pairs.append(("computed", ", ".join(filter(None, (scale, f"on {record['device']}", record["command"])))))
    pairs.append(("note", record["note"]))
    return [(label, fact) for label, fact in pairs if fact]


def text(record):
    """The row as plain text, one fact a line."""
    measured, against = number(record)
    head = f"[{verdict(record)}] {record['name']} = {measured}   ({against})"
    return "\n".join([head, *(f"    {label + ':':<12}{fact}" for label, fact in facts(record))])


def html(record):
    """The row as self-contained HTML; it wraps on a phone, and reads as plain lines where styles are dropped."""
    colour = {None: SKIPPED, True: HOLDS, False: MISSES}[record["holds"]]
    measured, against = map(_typeset, number(record))
    body = "".join(
        f'<div style="{_LINE}"><span style="{_LABEL}">{label}</span> '
        f'<span style="{_FACT}">{_typeset(fact)}</span></div>'
        for label, fact in facts(record)
    )
    return (
        f'<div style="{_BOX.format(colour=colour)}"><div style="{_LINE}">'
        f'<span style="{_BADGE.format(colour=colour)}">{verdict(record)}</span> '
        f'<code style="{_CODE}">{escape(record["name"])}</code> <strong>{measured}</strong> '
        f"<span>{against}</span></div>"
        f"{body}</div>"
    )


def _typeset(fact):
    """HTML of a fact: a minus sign where a number is negative, which the hyphen of the keyboard is not."""
    return re.sub(r"(?<![\w.^(\-])-(?=\d)", "\N{MINUS SIGN}", escape(fact))
