"""Claims: a page's measurements, held against what the lecture wrote down before them.

The statements stand in the lecture's `claims.toml` (`flbook.claims.statements`). The page measures and asks:
`Claims.check` compares a measurement with what the page prints and with the interval that the theory allows at this
finite size; `Claims.identity` checks an exact equation. Both show one line that opens to the rest, whose metadata the
ledger reads, and leave a glue record, so that prose cites the measured value.

Outside the tests a miss is a note in the line, so that a student may play. Under ``FLBOOK_STRICT=1`` it raises.
"""

import math
import os
import sys
from typing import cast

import numpy as np

from flbook.claims import arguments, row, statements

GLUE = "application/papermill.record/"
ROOM = 4.0  # standard errors between the mean over seeds and either end of the claim


class ClaimMiss(AssertionError):
    """A measurement is not what the page claims; raised only under ``FLBOOK_STRICT=1``."""


class Claims:
    """The claims of one lecture, read from the file beside its experiment.

    Parameters
    ----------
    lecture
        Its name, with or without its chapter, as in ``"relu_heatmap"``; or the path of a claims file of your own.

    Raises
    ------
    ValueError
        If there is no such lecture, or its claims file could not decide anything.

    Examples
    --------
    >>> from flbook import Claims
    >>> claims = Claims("relu_heatmap")
    >>> claims["slope_in_d"].theory
    0.25
    """

    def __init__(self, lecture):
        path = statements.path(lecture)
        self.lecture, self._statements = path.parent.name, statements.read(path)
        self._shown = False  # the first line of a page says in a verb what its rival is

    def __iter__(self):
        return iter(self._statements)

    def __getitem__(self, name):
        """The statement of this name."""
        if name not in self._statements:
            raise ValueError(f"claims of {self.lecture}: there is no table [{name}]; write the claim down first.")
        return self._statements[name]

    def check(self, name, measured, *, seeds=None, interval=None, theory=None, excludes=None, result=None):
        r"""Hold a measurement against the statement of this name.

        It holds if it lies in the claim, is within the tolerance of the book's value, and leaves room on both sides:
        four standard errors around the mean over seeds, or, without seeds, the width of `interval` around the value.
        Its mark is then *agrees* at three standard errors from theory or less; further off it is *close*, and the
        statement must say why (`because`), or *differs*. Without a theory it just *holds*.
        Under ``FLBOOK_SEED`` only the claim and the rivals are compared, and a stored result is skipped. While the
        statement has no book value, it is a draft, which can miss and cannot hold.

        Parameters
        ----------
        name
            The table in the claims file.
        measured
            A number; an array of one number per seed, shape ``(seed,)``, at least ten, whose mean is the value; or a
            fit of `flbook.fits`, which brings its value, its interval and a number per seed.
        seeds
            The statistic per seed, where it is no mean of them.
        interval
            ``(lo, hi)``, 95 %, of a statistic that is fitted to all seeds at once.
        theory
            A closed form at the page's setting, where the statement has no literal.
        excludes
            Name and value of rivals that the page measured or computed; they join those of the statement.
        result
            The Dataset behind the number: supplies scale, device and command.

        Raises
        ------
        ValueError
            If nothing could be decided: no such statement, a rival inside the claim or no rival at all, too few seeds.
        ClaimMiss
            Under ``FLBOOK_STRICT=1``, if the claim does not hold; after its line is shown.
        """
        statement, where = self[name], f"claims of {self.lecture}, [{name}]"
        if statement.kind == "identity":
            raise ValueError(f"{where}: it is an identity; ask claims.identity.")
        value, seeds, interval = arguments.measurement(where, measured, seeds, interval)
        theory, ends, rivals = _bounds(where, statement, theory, excludes)
        tolerance, book = _tolerance(statement, value), math.nan if statement.draft else cast(float, statement.book)
        origin = arguments.origin(where, result)
        fresh, computed_under = os.environ.get("FLBOOK_SEED", ""), origin.pop("fresh_seed")
        stored = bool(origin["command"])
        skipped = stored and fresh not in ("", computed_under)
        other_device = not origin["device"].startswith("cpu") and not stored  # a stored number is the same everywhere
        allowed = tolerance * (10 if other_device else 1)

        outside = (
            [] if statements.inside(value, ends) else [f"{row.short(value)} lies outside the claim, {row.span(ends)}"]
        )
        misses = list(outside)
        if not fresh and not statement.draft and not abs(value - book) <= allowed * (1 + 1e-9):
            off = row.short(abs(value - book))
            misses.append(f"it is {off} off the book's value, {row.short(allowed)} is allowed")
        too_close = _too_close(value, ends, seeds, interval)
        if not fresh and not misses:
            misses += too_close
        found = _recorded(tolerance, value, theory, ends, rivals, seeds, interval)
        if not fresh and not misses and not (statement.because or statement.differs):
            misses += _unexplained(found)
        undecided = skipped or statement.draft and not fresh and not misses
        self._show(
            statement,
            **found,
            **origin,
            holds=None if undecided else not misses,
            acceptable=not outside and not too_close,  # whatever the book says
            note="" if skipped else "; ".join(misses) or f"{origin['device']}: ten times the tolerance" * other_device,
        )

    def identity(self, name, computed, expected, *, broken):
        r"""State that two things are exactly equal, and prove that a wrong formula would have been noticed.

        The largest relative error is :math:`\max_i |c_i - e_i| \, / \, \max_i |e_i|`.

        Parameters
        ----------
        name
            The table in the claims file, whose `rtol` is the largest relative error allowed.
        computed, expected
            Arrays, tensors or DataArrays of one shape.
        broken
            Name of a wrong formula, and what it gives in place of `computed`; each misses by more than `rtol`.

        Raises
        ------
        ValueError
            If shapes clash, `expected` is zero everywhere, or a wrong formula passes.
        ClaimMiss
            Under ``FLBOOK_STRICT=1``, if the error exceeds `rtol`; after its line is shown.
        """
        statement, where = self[name], f"claims of {self.lecture}, [{name}]"
        if statement.kind != "identity":
            raise ValueError(f"{where}: it is a measurement; ask claims.check.")
        expected, rtol = arguments.array(expected), statement.rtol
        assert rtol is not None  # an identity without it is not read
        if not (expected.size and np.isfinite(expected).all() and np.abs(expected).max() > 0):
            raise ValueError(
                f"{where}: expected must be finite and not zero everywhere; "
                "compare the two sides of the equation, not their difference with zero."
            )
        error = arguments.relative_error(where, "computed", computed, expected)
        missed = {}
        for formula, wrong in _named(where, "broken", broken).items():
            miss = arguments.relative_error(where, f"broken[{formula!r}]", wrong, expected)
            if not (math.isfinite(miss) and miss > rtol):
                raise ValueError(
                    f"{where}: the wrong formula {formula!r} has relative error {miss:.2g}; "
                    f"it must be finite and above rtol = {rtol:g}, or the identity tells nothing."
                )
            missed[formula] = float(f"{miss:.2g}")
        holds = bool(error <= rtol)
        self._show(
            statement,
            value=row.rounded(error, row.decimals(rtol)),
            book=0.0,
            claim=[None, rtol],
            excludes=missed,
            why="exact, up to rounding errors",
            holds=holds,
            acceptable=holds,
            note="" if holds else f"its largest relative error is {error:.2g}, {rtol:g} is allowed",
        )

    def _show(self, statement, **found):
        """Emit the line and the glue record (without a notebook: print the line), then raise a miss if asked to."""
        record = dict(
            name=f"{self.lecture}.{statement.name}",
            kind=statement.kind,
            says=statement.says,
            headline=statement.headline,
            book=statement.book,
            tol=statement.tolerance,
            rtol=statement.rtol,
            why=statement.why,
            because=statement.because,
            differs=statement.differs,
            source=statement.source,
            first=not self._shown,
        )
        record |= dict(theory=None, seeds=None, interval=None, scale="book", device="cpu", command="") | found
        record |= dict(sharpness=row.sharpness(record), z=row.z(record), mark=row.mark(record))
        self._shown = True
        shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
        if shell is None:
            print(row.text(record))
        else:
            from IPython.display import display

            shown = {"text/html": row.html(record), "text/plain": row.text(record)}
            display(shown, raw=True, metadata={"flbook": record})
            glue = {"scrapbook": {"name": record["name"], "mime_prefix": GLUE}}
            display({f"{GLUE}text/plain": row.typeset(row.value(record))}, raw=True, metadata=glue)
        if record["holds"] is False and os.environ.get("FLBOOK_STRICT", "0") not in ("", "0"):
            raise ClaimMiss(f"{record['name']} = {row.value(record)}: {record['note']}.")


def _tolerance(statement, value):
    """The absolute tolerance: relative to what was measured where the book has no value yet."""
    if statement.draft and statement.rtol is not None and math.isfinite(value) and value:
        return statement.rtol * abs(value)
    return statement.tolerance


def _bounds(where, statement, theory, excludes):
    """Theory, the ends of the claim and all rivals, from the statement and what the page brings; checked together."""
    if theory is not None and statement.theory is not None:
        raise ValueError(f"{where}: theory is {statement.theory:g} in the claims file; the call must not give another.")
    theory = statement.theory if theory is None else arguments.finite(where, "theory", theory)
    if theory is None and statement.within is not None:
        raise ValueError(f"{where}: the claim is within {statement.within:g} of theory; the call must give theory.")
    ends = statement.span(theory)
    rivals = dict(statement.excludes)
    for rival, x in (excludes or {}).items():
        rivals[rival] = arguments.finite(where, f"excludes[{rival!r}]", x)
    _named(where, "excludes", rivals)
    statements.check_rivals(where, rivals, ends)
    if not statement.differs:
        statements.check_theory(where, theory, ends)
    return theory, ends, rivals


def _recorded(tolerance, value, theory, ends, rivals, seeds, interval):
    """The numbers of a claim as a notebook keeps them: rounded to a tenth of the tolerance."""
    digits = row.decimals(tolerance)
    return dict(
        kind="claim",
        tol=tolerance,
        value=row.rounded(value, digits),
        theory=None if theory is None else float(f"{theory:.6g}"),
        claim=[float(f"{end:.6g}") if math.isfinite(end) else None for end in ends],
        excludes={rival: row.rounded(x, digits) for rival, x in rivals.items()},
        seeds=None if seeds is None else [row.rounded(x, digits) for x in seeds],
        interval=None if interval is None else [row.rounded(x, digits) for x in interval],
    )


def _named(where, argument, pairs):
    """At least one named alternative that would have made the claim fall."""
    if not isinstance(pairs, dict) or not pairs:
        raise ValueError(
            f"{where}: {argument} is {pairs!r}; it must be a dict of at least one alternative that would have failed, "
            "because a number that cannot fail is not a test."
        )
    return pairs


def _unexplained(found):
    """Say in a list of sentences that theory lies further off than sampling explains, and that nothing says why.

    The tolerance is allowed beyond the three standard errors: on another processor the last digits are others.
    """
    if not row.beyond(found, slack=found["tol"]):
        return []
    off = row.z(found)
    said = "further than the tolerance" if off is None else f"{abs(off):.2g} standard errors"
    return [f"it lies {said} from theory, {row.short(found['theory'])}; write in because why"]


def _too_close(value, ends, seeds, interval):
    """Say in a list of sentences where the claim leaves too little room for fresh seeds."""
    if seeds is not None:
        error = float(seeds.std(ddof=1)) / math.sqrt(seeds.size)
        what, centre, need, size = "the mean over seeds", float(seeds.mean()), ROOM * error, "four standard errors"
    elif interval is not None:
        what, centre, need, size = "the value", value, float(interval[1] - interval[0]), "the width of its interval"
    else:
        return []
    room = min(centre - ends[0], ends[1] - centre)  # negative outside
    if room >= need:
        return []
    return [
        f"{what}, {row.short(centre)}, is {row.short(room)} from the end of the claim, "
        f"it needs {size}, {row.short(need)}"
    ]
