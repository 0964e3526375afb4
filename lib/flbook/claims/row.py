"""How a claim reads: one line under its cell that opens to the rest, as HTML and, for terminals and GitHub, as text.

The colours are inherited from the page, so that the line stands well in light mode, in dark mode and in Colab; only
the mark has a colour of its own, and it says the same in words. A record is the dict that `flbook.claims.check` stores.
"""

import math
import re
from html import escape
from statistics import fmean, stdev

HOLDS, MISSES, SKIPPED = "#00704f", "#b04a00", "#5f6368"  # each at least 4.5 : 1 against white

_BOX = "border-left:4px solid {colour};background:rgba(128,128,128,.1);padding:.35em .8em;margin:.5em 0;"
_BOX += "line-height:1.5;font-size:.95em;overflow-wrap:anywhere"
_BADGE = "background:{colour};color:#fff;border-radius:.3em;padding:0 .4em;font-weight:600"
_FACT = "padding-left:1.5em;text-indent:-1.5em"
_MARK = {True: "✓", False: "✗", None: "–"}


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


def value(record):
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
    if x and (digits > 6 or abs(x) >= 1e7):
        return f"{x:.{max(0, math.floor(math.log10(abs(x))) + digits)}e}"
    return f"{x:.{max(0, digits)}f}"


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
    if record["theory"] is None or record["value"] is None:
        return None
    seeds, interval = record["seeds"], record["interval"]
    if seeds and None not in seeds:
        error = stdev(seeds) / math.sqrt(len(seeds))
    else:
        error = (interval[1] - interval[0]) / (2 * 1.96) if interval else 0.0
    return float(f"{(record['value'] - record['theory']) / error:.3g}") if error else None


def verdict(record):
    """The verdict in words.

    Parameters
    ----------
    record
        What `flbook.claims.check` stores of a claim.

    Returns
    -------
    str
        One of four.
    """
    if record["holds"] is None and not record["command"]:
        return "draft: the book has no value of it yet"
    return {None: "stored: skipped", True: "holds", False: "differs: did you change something?"}[record["holds"]]


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
    """The measurement, what theory says, and the strongest rival: what follows the sentence in its line.

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
    theory = f", theory {short(record['theory'])}" if record["theory"] is not None else ""
    strongest = rival(record)
    against = f", not {short(strongest[1])} ({strongest[0]})" if strongest else ""
    return f"measured {value(record)}{theory}{against}"


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
            ("rules out", rivals),
            ("spread", spread(record)),
            ("sharpness", scores(record)),
            ("book", f"{short(record['book'])} ± {tolerance}" if record["book"] is not None else ""),
        ]
    pairs += [("source", record["source"])]
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
    line = f"{_MARK[record['holds']]} {record['says']}: {number(record)}"
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
    colour = {None: SKIPPED, True: HOLDS, False: MISSES}[record["holds"]]
    body = "".join(f'<div style="{_FACT}"><i>{label}:</i> {_typeset(fact)}</div>' for label, fact in facts(record))
    mark = _MARK[True] if record["holds"] else f"{_MARK[record['holds']]} {verdict(record)}"
    return (
        f'<details class="flbook-claim" style="{_BOX.format(colour=colour)}"{" open" * (record["holds"] is False)}>'
        f'<summary style="cursor:pointer"><span style="{_BADGE.format(colour=colour)}">{mark}</span> '
        f"{_typeset(record['says'])}: <strong>{_typeset(number(record))}</strong></summary>{body}</details>"
    )


def _typeset(fact):
    """HTML of a fact: a minus sign where a number is negative, which the hyphen of the keyboard is not."""
    return re.sub(r"(?<![\w.^(\-])-(?=\d)", "\N{MINUS SIGN}", escape(fact))
