"""Key numbers: the measured quantities that decide whether a claim of the source holds.

A lecture states each claim in one visible call. `key_number` compares a measurement with what the page prints and with
the interval that the theory allows at this finite size; `identity` checks an exact statement. Both show a readable row,
whose metadata the ledger reads, and leave a glue record, so that prose cites the measured value.

Outside the tests a miss is a note in the row, so that a student may play. Under ``FLBOOK_STRICT=1`` it raises.
"""

import math
import os
import sys

import numpy as np

from flbook.book import claims, row

GLUE = "application/papermill.record/"
ROOM = 4.0  # standard errors between the mean over seeds and either end of the claim


class KeyNumberMiss(AssertionError):
    """A key number is not what the page claims; raised only under ``FLBOOK_STRICT=1``."""


def key_number(
    name,
    value,
    *,
    book,
    tol=None,
    rtol=None,
    claim,
    why,
    excludes,
    seeds=None,
    interval=None,
    result=None,
    source,
):
    r"""State one measured quantity, what the source allows for it, and which rival values it rules out.

    The number holds if ``claim[0] <= value <= claim[1]``, :math:`|value - book| \le tol`, and the claim leaves room on
    both sides: four standard errors around the mean of `seeds`, and the width of `interval` around `value`.

    Under ``FLBOOK_SEED`` only the claim and the rivals are compared, and a stored result is skipped.

    Parameters
    ----------
    name
        ``"lecture.quantity"``; prose cites the value as glue under this name.
    value
        The measured number: a scalar, or an array, tensor or DataArray of one entry.
    book
        The number that the page prints; it lies inside `claim`.
    tol, rtol
        How closely the same seeds give `book` again: absolute, or relative to `book`; exactly one of the two.
        It reflects platform noise, not taste; a run on another device is allowed ten times as much.
    claim
        ``(lo, hi)``: what the theorem or closed form allows at this size; ``None`` is an open side.
    why
        The reason for the width of `claim`.
    excludes
        Name and value of each rival explanation; each lies outside `claim`.
    seeds
        The same statistic per seed, shape ``(seed,)``, at least ten.
    interval
        ``(lo, hi)``, 95 %, of a statistic that is fitted to all seeds at once.
    result
        The Dataset behind the number: supplies scale, device and command.
    source
        Bibliography key and theorem, as in ``"kou2023benign, Theorem 4.2"``.

    Raises
    ------
    ValueError
        If the call cannot decide anything: `book` outside `claim`, a rival inside it, too few seeds, no tolerance.
    KeyNumberMiss
        Under ``FLBOOK_STRICT=1``, if the number does not hold; after its row is shown.
    """
    claims.require_texts(name, why=why, source=source)
    value, book = claims.scalar(name, "value", value), claims.finite(name, "book", book)
    tolerance = claims.tolerance(name, book, tol, rtol)
    claim = claims.claim(name, claim, book)
    excludes = claims.rivals(name, excludes, claim)
    seeds, interval = claims.seeds(name, seeds), claims.interval(name, interval)
    origin = claims.origin(name, result)

    fresh = os.environ.get("FLBOOK_SEED", "")
    stored = origin["scale"] == "paper"
    computed_under = origin.pop("fresh_seed")
    skipped = stored and fresh not in ("", computed_under)
    abroad = not origin["device"].startswith("cpu") and not stored  # a stored number is the same on every device
    allowed = 10 * tolerance if abroad else tolerance

    misses = []
    if not claims.inside(value, claim):
        misses.append(f"{row.short(value)} lies outside the claim, {row.span(claim)}")
    if not fresh and not abs(value - book) <= allowed * (1 + 1e-9):
        misses.append(f"it is {row.short(abs(value - book))} off the book's value, {row.short(allowed)} is allowed")
    if not fresh and not misses:
        misses += _cramped(value, claim, seeds, interval)

    digits = row.decimals(tolerance)
    record = dict(
        name=name,
        kind="key_number",
        value=row.rounded(value, digits),
        book=book,
        tol=tolerance,
        rtol=rtol,
        claim=claim,
        excludes={rival: row.rounded(x, digits) for rival, x in excludes.items()},
        why=why,
        seeds=None if seeds is None else [row.rounded(x, digits) for x in seeds],
        interval=None if interval is None else [row.rounded(x, digits) for x in interval],
        source=source,
        **origin,
        holds=None if skipped else not misses,
        note="" if skipped else "; ".join(misses) or (f"{origin['device']}: ten times the tolerance" if abroad else ""),
    )
    _show(record)


def identity(name, computed, expected, *, rtol, source, broken):
    r"""State that two things are exactly equal, and prove that a wrong formula would have been noticed.

    The largest relative error is :math:`\max_i |c_i - e_i| \, / \, \max_i |e_i|`: relative to the largest entry, so
    that an entry near zero needs no exception.

    Parameters
    ----------
    name
        ``"lecture.statement"``; prose cites the error as glue under this name.
    computed, expected
        Arrays, tensors or DataArrays of one shape.
    rtol
        The largest relative error allowed.
    source
        Bibliography key and equation, or where it is derived.
    broken
        Name of a wrong formula, and what it gives in place of `computed`; each misses by more than `rtol`.

    Raises
    ------
    ValueError
        If shapes clash, `expected` is zero everywhere, or a wrong formula passes.
    KeyNumberMiss
        Under ``FLBOOK_STRICT=1``, if the error exceeds `rtol`; after the row is shown.
    """
    claims.require_texts(name, source=source)
    rtol = claims.tolerance(name, 1.0, None, rtol)
    expected = claims.array(expected)
    if not (expected.size and np.isfinite(expected).all() and np.abs(expected).max() > 0):
        raise ValueError(
            f"key number {name}: expected must be finite and not zero everywhere; "
            "compare the two sides of the equation, not their difference with zero."
        )
    error = _relative_error(name, "computed", computed, expected)
    excludes = {}
    for formula, wrong in claims.alternatives(name, "broken", broken).items():
        miss = _relative_error(name, f"broken[{formula!r}]", wrong, expected)
        if not (math.isfinite(miss) and miss > rtol):
            raise ValueError(
                f"key number {name}: the wrong formula {formula!r} has relative error {miss:.2g}; "
                f"it must be finite and above rtol = {rtol:g}, or the identity tells nothing."
            )
        excludes[formula] = float(f"{miss:.2g}")
    holds = bool(error <= rtol)
    record = dict(
        name=name,
        kind="identity",
        value=row.rounded(error, row.decimals(rtol)),
        book=0.0,
        tol=rtol,
        rtol=rtol,
        claim=[None, rtol],
        excludes=excludes,
        why="exact, up to rounding errors",
        seeds=None,
        interval=None,
        source=source,
        scale="book",
        device="cpu",
        command="",
        holds=holds,
        note="" if holds else f"its largest relative error is {error:.2g}, {rtol:g} is allowed",
    )
    _show(record)


def _cramped(value, claim, seeds, interval):
    """Say in a list of sentences where the claim leaves too little room for fresh seeds."""
    needs = []
    if seeds is not None:
        error = float(seeds.std(ddof=1)) / math.sqrt(seeds.size)
        needs.append(("the mean over seeds", float(seeds.mean()), ROOM * error, "four standard errors"))
    if interval is not None:
        needs.append(("the value", value, float(interval[1] - interval[0]), "the width of its interval"))
    return [
        f"{what}, {row.short(centre)}, is {row.short(_room(centre, claim))} from the end of the claim, "
        f"it needs {size}, {row.short(need)}"
        for what, centre, need, size in needs
        if not _room(centre, claim) >= need
    ]


def _room(centre, claim):
    """Distance to the nearer end of the claim; negative outside."""
    lo, hi = claim
    return min(math.inf if lo is None else centre - lo, math.inf if hi is None else hi - centre)


def _relative_error(name, argument, computed, expected):
    computed = claims.array(computed)
    if computed.shape != expected.shape:
        raise ValueError(
            f"key number {name}: {argument} has shape {computed.shape} and expected has shape {expected.shape}; "
            "the two must be equal."
        )
    return float(np.abs(computed - expected).max() / np.abs(expected).max())


def _show(record):
    """Emit the row and the glue record (without a notebook: print the row), then raise a miss where that is asked."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        print(row.text(record))
    else:
        from IPython.display import display

        display({"text/html": row.html(record), "text/plain": row.text(record)}, raw=True, metadata={"flbook": record})
        glue = {"scrapbook": {"name": record["name"], "mime_prefix": GLUE}}
        display({f"{GLUE}text/plain": row.value(record)}, raw=True, metadata=glue)
    if record["holds"] is False and os.environ.get("FLBOOK_STRICT", "0") not in ("", "0"):
        raise KeyNumberMiss(f"key number {record['name']} = {row.value(record)}: {record['note']}.")
