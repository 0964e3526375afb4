"""How a claim reads: one line under its cell that opens to the rest, as HTML and, for terminals and GitHub, as text.

The colours are inherited from the page, so that the line stands well in light mode, in dark mode and in Colab; only
the mark has a colour of its own, and it says the same in words. A record is the dict that `flbook.claims.check` stores.
"""

import math
import re
from html import escape
from statistics import fmean, stdev

from flbook.claims.papers import named

MARKS = {  # the sign and the colour of each mark; each colour at least 4.5 : 1 against white
    "agrees": ("✓", "#00704f"),  # with theory, within three standard errors; or an identity
    "close": ("≈", "#7a5c00"),  # further off than sampling explains, and the claim says why
    "holds": ("✓", "#00704f"),  # an inequality, or a measurement against its rival: theory gives no number
    "differs": ("✗", "#b04a00"),  # theory says one thing and we measure another
    "missed": ("!", "#a3142b"),
    "stored": ("–", "#5f6368"),
    "draft": ("–", "#5f6368"),
}
ERRORS = 3.0  # standard errors between theory and measurement that sampling may explain

_BOX = "border-left:4px solid {colour};background:rgba(128,128,128,.1);padding:.35em .8em;margin:.5em 0;"
_BOX += "line-height:1.5;font-size:.95em;overflow-wrap:anywhere"
_BADGE = "background:{colour};color:#fff;border-radius:.3em;padding:0 .4em;font-weight:600"
_FACT = "padding-left:1.5em;text-indent:-1.5em"


def decimals(tolerance):
    """Decimal places that show a tenth of the tolerance; negative for tolerances above ten.

    Parameters
    ----------
    tolerance
        Absolute, above 0.

    Returns
    -------
    int
        As `round` takes it.
    """
    return math.ceil(1 - math.log10(tolerance) - 1e-9)


def rounded(x, digits):
    """A float as it is recorded; NaN and infinities have no place in a notebook's JSON.

    Parameters
    ----------
    x
        The number.
    digits
        Decimal places; negative for tens and above.

    Returns
    -------
    float | None
        None for NaN and infinities.
    """
    return round(float(x), digits) + 0.0 if math.isfinite(x) else None


def short(x):
    """A number with as few digits as tell it from its neighbours.

    Parameters
    ----------
    x
        The number, or None.

    Returns
    -------
    str
        Four significant digits at most.
    """
    return "none" if x is None else f"{x:.4g}"


def exact(record):
    """The measured value, with digits down to a tenth of its tolerance; for an identity its largest relative error.

    Parameters
    ----------
    record
        What `flbook.claims.check` stores of a claim.

    Returns
    -------
    str
        ``"none"`` where nothing finite was measured.
    """
    x, digits = record["value"], decimals(record["tol"])
    if x is None:
        return "none"
    if record["kind"] == "identity":
        return f"{x:.1e}" if x else f"below {short(10.0**-digits)}"
    return _with_digits(x, digits)


def value(record):
    """The measured value as prose prints it: with two digits of its standard error, where that is known.

    Parameters
    ----------
    record
        What `flbook.claims.check` stores of a claim.

    Returns
    -------
    str
        No digits beyond a tenth of its tolerance.
    """
    uncertain = error(record)
    if not uncertain or record["value"] is None:
        return exact(record)
    return _with_digits(record["value"], _digits(record, uncertain))


def _digits(record, uncertain):
    """Decimal places of two digits of a standard error, and none that is not recorded."""
    return min(1 - math.floor(math.log10(uncertain)), decimals(record["tol"]))


def _with_digits(x, digits):
    if x and (digits > 6 or abs(x) >= 1e7):
        return f"{x:.{max(0, math.floor(math.log10(abs(x))) + digits)}e}"
    return f"{round(x, digits) + 0.0:.{max(0, digits)}f}"


def span(claim):
    """The interval of a claim in words; an open side is None or infinite.

    Parameters
    ----------
    claim
        ``(lo, hi)``.

    Returns
    -------
    str
        As in ``"0.2 to 0.3"`` or ``"at most 0.3"``.
    """
    lo, hi = (None if end is None or math.isinf(end) else end for end in claim)
    if lo is None:
        return f"at most {short(hi)}"
    return f"at least {short(lo)}" if hi is None else f"{short(lo)} to {short(hi)}"


def sharpness(record):
    """Distance of theory (else of the value) to the nearest rival, in half-widths of the claim; None without a value.

    A claim with an open side is as wide as twice the way from there to its end. An identity has none: its wrong formula
    fails by orders of magnitude.

    Parameters
    ----------
    record
        What `flbook.claims.check` stores of a claim.

    Returns
    -------
    float | None
        Three significant digits.
    """
    nearest = rival(record)
    return None if nearest is None else float(f"{nearest[2]:.3g}")


def rival(record):
    """The strongest rival: its name, its value and its distance in half-widths; None if that cannot be said.

    Parameters
    ----------
    record
        What `flbook.claims.check` stores of a claim.

    Returns
    -------
    tuple[str, float, float] | None
        ``(name, value, distance)``.
    """
    centre = record["theory"] if record["theory"] is not None else record["value"]
    if record["kind"] == "identity" or centre is None:
        return None
    lo, hi = record["claim"]
    half = (hi - lo) / 2 if None not in (lo, hi) else abs(centre - (hi if lo is None else lo))
    if not half and record["value"] is not None:  # theory is the end itself, an inequality
        half = abs(record["value"] - centre)
    pairs = {name: x for name, x in record["excludes"].items() if x is not None}
    if not half or not pairs:
        return None
    name = min(pairs, key=lambda name: abs(pairs[name] - centre))
    return name, pairs[name], abs(pairs[name] - centre) / half


def error(record):
    """The standard error of the value: from its seeds, else from its 95 % interval; 0 if neither is known.

    Parameters
    ----------
    record
        What `flbook.claims.check` stores of a claim.

    Returns
    -------
    float
        Not negative.
    """
    seeds, interval = record["seeds"], record["interval"]
    if seeds and None not in seeds:
        return stdev(seeds) / math.sqrt(len(seeds))
    return (interval[1] - interval[0]) / (2 * 1.96) if interval else 0.0


def z(record):
    """How far the value lies from theory, in standard errors; None without a theory, a spread or a value.

    Parameters
    ----------
    record
        What `flbook.claims.check` stores of a claim.

    Returns
    -------
    float | None
        With its sign, three significant digits.
    """
    if record["theory"] is None or record["value"] is None or not error(record):
        return None
    return float(f"{(record['value'] - record['theory']) / error(record):.3g}")


def off(record):
    """How far off theory the value lies, in words; empty where no spread is known.

    Parameters
    ----------
    record
        What `flbook.claims.check` stores of a claim.

    Returns
    -------
    str
        As in ``"5.3 s.e. off"``.
    """
    return "" if record["z"] is None else f"{abs(record['z']):.2g} s.e. off"


def beyond(record, slack=0.0):
    """Whether theory and measurement differ by more than three standard errors; by more than the tolerance without any.

    Parameters
    ----------
    record
        What `flbook.claims.check` stores of a claim.
    slack
        What is allowed beyond that, in the value's unit.

    Returns
    -------
    bool
        False where theory gives no number, or nothing was measured, and for an identity.
    """
    if record["kind"] == "identity" or record["theory"] is None or record["value"] is None:
        return False
    off = abs(record["value"] - record["theory"])
    return off > (ERRORS * error(record) or record["tol"]) * (1 + 1e-9) + slack


def mark(record):
    """What the measurement says, in one word: the key of `MARKS`.

    Parameters
    ----------
    record
        What `flbook.claims.check` stores of a claim.

    Returns
    -------
    str
        ``"agrees"``, ``"close"``, ``"holds"`` or ``"differs"`` of a claim that stands; else ``"missed"``, ``"stored"``
        (skipped under other seeds) or ``"draft"``.
    """
    if record["holds"] is None:
        return "stored" if record["command"] else "draft"
    if not record["holds"]:
        return "missed"
    if record["kind"] == "claim" and record["theory"] is None:
        return "holds"
    if not beyond(record):
        return "agrees"
    return "differs" if record.get("differs") else "close"


def verdict(record):
    """The mark in words.

    Parameters
    ----------
    record
        What `flbook.claims.check` stores of a claim.

    Returns
    -------
    str
        The mark, and what it asks for.
    """
    said = {
        "missed": "missed: did you change something?",
        "stored": "stored: skipped",
        "draft": "draft: the book has no value of it yet",
    }
    word = mark(record)
    return said.get(word, word)


def spread(record):
    """How much the number varies with the seed, in words; empty if it does not depend on one.

    Parameters
    ----------
    record
        What `flbook.claims.check` stores of a claim.

    Returns
    -------
    str
        The interval, then the seeds.
    """
    seeds, interval = record["seeds"], record["interval"]
    said = []
    if interval:
        said.append(f"95 % interval {short(interval[0])} to {short(interval[1])}")
    if seeds and None in seeds:
        said.append(f"{len(seeds)} seeds, {seeds.count(None)} of them without a value")
    elif seeds:
        said.append(f"{len(seeds)} seeds: mean {fmean(seeds):.3g}, standard deviation {stdev(seeds):.2g}")
    return "; ".join(said)


def scores(record):
    """Sharpness, and how far the number lies from theory, in words; empty if neither can be said.

    Parameters
    ----------
    record
        What `flbook.claims.check` stores of a claim.

    Returns
    -------
    str
        One phrase, both or none.
    """
    said = [f"{short(record['sharpness'])} half-widths to the nearest rival"] if record["sharpness"] is not None else []
    said += [f"{record['z']:+.1f} standard errors from theory"] if record["z"] is not None else []
    return ", ".join(said)


def number(record):
    """The measurement, what theory says and why they part, and the strongest rival: what follows the sentence.

    Parameters
    ----------
    record
        What `flbook.claims.check` stores of a claim.

    Returns
    -------
    str
        Of an identity its relative error and the least that a wrong formula gives.
    """
    if record["kind"] == "identity":
        formula = min(record["excludes"], key=record["excludes"].get)
        return f"relative error {value(record)}, not {short(record['excludes'][formula])} ({formula})"
    said = f"measured {measured(record)}"
    if record["theory"] is not None:
        said += f", theory {short(record['theory'])}{_parting(record)}"
    strongest = rival(record)
    if strongest and record.get("first"):
        return f"{said}; {named(strongest[0])} would give {short(strongest[1])}"
    return f"{said}; not {short(strongest[1])} ({named(strongest[0])})" if strongest else said


def measured(record):
    """The value and its standard error, with the same digits.

    Parameters
    ----------
    record
        What `flbook.claims.check` stores of a claim.

    Returns
    -------
    str
        The value alone where no spread is known.
    """
    uncertain = error(record)
    if not uncertain or record["value"] is None:
        return value(record)
    shown = _with_digits(uncertain, _digits(record, uncertain))
    return f"{value(record)} ± {shown if float(shown) else f'{uncertain:.1g}'}"


def _parting(record):
    """How far off theory is and why, of a claim that stands and does not agree."""
    if mark(record) not in ("close", "differs"):
        return ""
    reason = record.get("differs") or record.get("because")
    return f" ({': '.join(filter(None, (off(record) or 'off', reason)))})"


def facts(record):
    """What the line opens to, as pairs of a label and a text.

    Parameters
    ----------
    record
        What `flbook.claims.check` stores of a claim.

    Returns
    -------
    list[tuple[str, str]]
        In the order of reading; empty texts are left out.
    """
    rivals = "; ".join(f"{name}: {short(x)}" for name, x in record["excludes"].items())
    if record["kind"] == "identity":
        pairs = [("allowed", f"a relative error of {short(record['rtol'])}"), ("would miss", rivals)]
    else:
        tolerance = f"{record['rtol'] * 100:g} %" if record["rtol"] else short(record["tol"])
        pairs = [
            ("claim", f"{span(record['claim'])} ({record['why']})"),
            ("rules out", named(rivals)),
            ("spread", spread(record)),
            ("sharpness", scores(record)),
            ("book", f"{short(record['book'])} ± {tolerance}" if record["book"] is not None else ""),
        ]
    pairs += [("source", named(record["source"]))]
    if record["scale"] != "book" or not record["device"].startswith("cpu"):
        scale = "stored result" if record["command"] else f"{record['scale']} scale"
        pairs.append(("computed", ", ".join(filter(None, (scale, f"on {record['device']}", record["command"])))))
    pairs += [("note", record["note"]), ("name", record["name"])]
    return [(label, fact) for label, fact in pairs if fact]


def text(record):
    """The line as plain text; what differs is said below it, fact by fact.

    Parameters
    ----------
    record
        What `flbook.claims.check` stores of a claim.

    Returns
    -------
    str
        One line if the claim holds.
    """
    line = typeset(f"{MARKS[mark(record)][0]} {record['says']}: {number(record)}")
    if record["holds"]:
        return line
    return "\n".join(
        [f"{line}   [{verdict(record)}]", *(f"    {label + ':':<12}{fact}" for label, fact in facts(record))]
    )


def html(record):
    """The line as self-contained HTML that opens to the facts; it wraps on a phone, and stands open at a miss.

    Parameters
    ----------
    record
        What `flbook.claims.check` stores of a claim.

    Returns
    -------
    str
        A ``details`` element.
    """
    sign, colour = MARKS[mark(record)]
    body = "".join(f'<div style="{_FACT}"><i>{label}:</i> {_typeset(fact)}</div>' for label, fact in facts(record))
    return (
        f'<details class="flbook-claim" style="{_BOX.format(colour=colour)}"{" open" * (record["holds"] is False)}>'
        f'<summary style="cursor:pointer"><span style="{_BADGE.format(colour=colour)}">{sign} {verdict(record)}</span> '
        f"{_typeset(record['says'])}: <strong>{_typeset(number(record))}</strong></summary>{body}</details>"
    )


def typeset(text):
    """A text with a minus sign where a number is negative, which the hyphen of the keyboard is not.

    Parameters
    ----------
    text
        Plain text.

    Returns
    -------
    str
        Plain text.
    """
    return re.sub(r"(?<![\w.^(\-])-(?=\d)", "\N{MINUS SIGN}", text)


def _typeset(fact):
    return typeset(escape(fact))
