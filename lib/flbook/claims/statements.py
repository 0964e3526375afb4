"""Statements: what a lecture claims, written down in its `claims.toml` before anything is measured.

A statement is a table of literals, so no bound can be computed from the page's own result. This module reads and checks
the tables with the standard library alone; `flbook.claims.check` holds measurements against them.
"""

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from flbook.claims import row
from flbook.claims.papers import KEY

HEADLINES = 4  # at most, a lecture: a page has one story
LECTURES = Path(__file__).parents[1] / "lectures"
_IDENTITY = {"says", "source", "rtol", "headline"}


@dataclass(frozen=True, kw_only=True)
class Statement:
    r"""One claim: a sentence, what theory says, what a finite size allows, and which rivals that rules out.

    Attributes
    ----------
    name
        The name of its table.
    says
        A sentence, without its full stop, that a reader of the ledger understands alone.
    source
        Bibliography key and theorem, as in ``"kou2023benign, Theorem 4.2"``; or where it is derived; or "measured".
    theory
        The number that the theorem or closed form says; None if it says an inequality only, or if the page computes it.
    claim
        ``(lo, hi)``: what theory allows at this finite size; an open side is infinite.
    within
        In place of `claim`: the claim is everything at most this far from theory.
    why
        The reason for the width of the claim.
    because
        Why theory and measurement differ by more than three standard errors, in half a sentence; without it a claim
        that lies so far off does not hold.
    differs
        In one sentence: theory says one thing, we measure another, and we do not count it as the same. The claim then
        leaves theory outside.
    excludes
        Name and value of each rival explanation, where it is a literal; one from the literature cites its paper.
    book
        The number that the page prints; None while the claim is being written, and in an identity.
    tol, rtol
        How closely the same seeds give `book` again, absolute or relative; the relative error allowed of an identity.
    headline
        Whether it is one of the (at most four) findings of the page; the others are checks.
    """

    name: str
    says: str
    source: str
    why: str = ""
    because: str = ""
    differs: str = ""
    theory: float | None = None
    claim: tuple[float, float] | None = None
    within: float | None = None
    excludes: Mapping[str, float] = field(default_factory=dict)
    book: float | None = None
    tol: float | None = None
    rtol: float | None = None
    headline: bool = False

    @property
    def kind(self) -> str:
        """What is asked: ``"claim"`` of a measurement, ``"identity"`` of two sides of an equation.

        Returns
        -------
        str
            One of these two words.
        """
        return "identity" if self.book is None and self.claim is None and self.within is None else "claim"

    @property
    def draft(self) -> bool:
        """Whether it is a claim that is being written: the book has no value of it yet.

        Returns
        -------
        bool
            False for an identity.
        """
        return self.kind == "claim" and self.book is None

    @property
    def tolerance(self) -> float:
        """The absolute tolerance of `book`.

        Returns
        -------
        float
            Above 0; of an identity, and where `book` is not known yet, its `rtol`.
        """
        if self.tol is not None:
            return self.tol
        return cast(float, self.rtol) * (1.0 if self.book is None else abs(self.book))

    def span(self, theory=None):
        """The two ends of the claim.

        Parameters
        ----------
        theory
            The page's, where the statement has none.

        Returns
        -------
        tuple[float, float]
            ``(lo, hi)``; an open side is infinite.
        """
        if self.claim is not None:
            return self.claim
        centre, within = cast(float, self.theory if theory is None else theory), cast(float, self.within)
        return (centre - within, centre + within)

    @property
    def cited(self) -> set[str]:
        """The bibliography keys that the source and the rivals name.

        Returns
        -------
        set[str]
            Empty if neither names a paper.
        """
        return {key for text in (self.source, *self.excludes) for key in KEY.findall(text)}


def read(path):
    """The statements of one claims file, by name, in its order.

    Parameters
    ----------
    path
        The claims file.

    Returns
    -------
    dict[str, Statement]
        All of them checked.

    Raises
    ------
    ValueError
        In one sentence, if a table could not decide anything, or is not of this form.
    """
    path = Path(path)
    lecture = path.parent.name
    if not path.is_file():
        raise ValueError(f"claims of {lecture}: there is no file {path.name!r}.")
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"claims of {lecture}: {path.name} is not TOML: {error}.") from None
    found = {name: _statement(f"claims of {lecture}, [{name}]", name, table) for name, table in tables.items()}
    headlines = [name for name, statement in found.items() if statement.headline]
    if len(headlines) > HEADLINES:
        raise ValueError(
            f"claims of {lecture}: {len(headlines)} headlines, {', '.join(headlines)}; at most {HEADLINES} may be."
        )
    return found


def path(lecture):
    """The claims file of a lecture, named with or without its chapter; a path of a claims file is itself.

    Parameters
    ----------
    lecture
        As in ``"relu_heatmap"`` or ``"benign_overfitting/relu_heatmap"``, or a path that ends in ``.toml``.

    Returns
    -------
    Path
        That of the file.
    """
    if str(lecture).endswith(".toml"):
        return Path(lecture)
    short = lecture.rpartition("/")[2]
    homes = {file.parent.name: file for file in sorted(LECTURES.glob("*/*/claims.toml"))}
    if short not in homes:
        near = ", ".join(get_close_matches(short, homes, cutoff=0.4) or sorted(homes)) or "none yet"
        raise ValueError(f"there is no lecture {lecture!r} with a claims file; near it: {near}.")
    return homes[short]


def check_cited(lecture, found, bibliography):
    """Refuse statements that cite what the bibliography does not have.

    Parameters
    ----------
    lecture
        What the sentence calls the lecture.
    found
        Statements by name, as `read` returns them.
    bibliography
        A set of keys.
    """
    for statement in found.values():
        for key in sorted(statement.cited - bibliography):
            raise ValueError(f"claims of {lecture}, [{statement.name}]: {key!r} is not in the bibliography.")


def inside(value, ends):
    """Whether a value lies between the two ends; NaN lies nowhere.

    Parameters
    ----------
    value
        The number.
    ends
        ``(lo, hi)``; the ends belong to the claim.

    Returns
    -------
    bool
        Is ``lo <= value <= hi``?
    """
    return ends[0] <= value <= ends[1]


def check_rivals(where, rivals, ends):
    """Refuse a claim that admits one of its rivals.

    Parameters
    ----------
    where
        How a sentence about an error begins.
    rivals
        Values by name.
    ends
        ``(lo, hi)``.
    """
    for rival, x in rivals.items():
        if inside(x, ends):
            raise ValueError(
                f"{where}: the claim, {row.span(ends)}, admits the rival {rival!r} = {row.short(x)}; "
                "it must exclude every rival."
            )


def check_theory(where, theory, ends):
    """Refuse a claim that excludes what theory says; a theory that is refuted is a rival.

    Parameters
    ----------
    where
        How a sentence about an error begins.
    theory
        The number, or None.
    ends
        ``(lo, hi)``.
    """
    if theory is not None and not inside(theory, ends):
        raise ValueError(
            f"{where}: theory = {row.short(theory)} lies outside the claim, {row.span(ends)}; "
            "a theory that the measurement refutes belongs to excludes, or has its sentence in differs."
        )


def _statement(where, name, table):
    """A checked statement; `where` begins every sentence about what is wrong."""
    if not isinstance(table, dict):
        raise ValueError(f"{where}: it is {table!r}; every entry of a claims file is a table.")
    if not re.fullmatch(r"[a-z]\w*", name):
        raise ValueError(f"{where}: a name is lower-case letters, digits and underscores.")
    identity = "book" not in table and "claim" not in table and "within" not in table
    known = _IDENTITY if identity else {f.name for f in fields(Statement)} - {"name"}
    for key in table.keys() - known:
        near = get_close_matches(key, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(known))}."
        raise ValueError(f"{where}: unknown key {key!r}; {hint}")
    for key in ("says", "source") if identity else ("says", "source", "why"):
        text = table.get(key)
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"{where}: {key} is {'missing' if text is None else repr(text)}; it must be a sentence.")
    for key in ("because", "differs"):
        if key in table and (not isinstance(table[key], str) or not table[key].strip() or table[key].endswith(".")):
            raise ValueError(f"{where}: {key} is {table[key]!r}; it must be a sentence without its full stop.")
    if "because" in table and "differs" in table:
        raise ValueError(f"{where}: it has because and differs; what differs is not close to theory.")
    if table["says"].endswith("."):
        raise ValueError(f"{where}: says ends with a full stop; the measurement follows it in the same line.")
    if not isinstance(table.get("headline", False), bool):
        raise ValueError(f"{where}: headline is {table['headline']!r}; it must be true or false.")
    numbers = {
        key: _number(where, key, table[key]) for key in ("theory", "within", "book", "tol", "rtol") if key in table
    }
    given: dict[str, Any] = {**table, **numbers}
    given |= {"claim": _span(where, table["claim"])} if "claim" in table else {}
    given |= {"excludes": _rivals(where, table["excludes"])} if "excludes" in table else {}
    statement = Statement(name=name, **given)
    _check_tolerance(where, statement)
    if not identity:
        _check_claim(where, statement)
    return statement


def _check_tolerance(where, statement):
    if statement.kind == "identity" and statement.rtol is None:
        raise ValueError(f"{where}: it has neither claim nor rtol; a measurement needs claim, an identity rtol.")
    if (statement.tol is None) == (statement.rtol is None):
        raise ValueError(f"{where}: exactly one of tol and rtol must be given.")
    if not statement.tolerance > 0:
        raise ValueError(f"{where}: the tolerance is {statement.tolerance:g}; it must be above 0.")


def _check_claim(where, statement):
    """What a measured claim must satisfy on its own; the page's theory and rivals are checked when they are known."""
    if (statement.claim is None) == (statement.within is None):
        raise ValueError(f"{where}: exactly one of claim and within must be given.")
    if statement.within is not None and not statement.within > 0:
        raise ValueError(f"{where}: within is {statement.within:g}; it must be above 0.")
    if statement.claim is None and statement.theory is None:
        return  # the page's theory completes it
    ends = statement.span()
    if statement.book is not None and not inside(statement.book, ends):
        raise ValueError(f"{where}: book = {statement.book:g} must lie inside the claim, {row.span(ends)}.")
    if not statement.differs:
        check_theory(where, statement.theory, ends)
    check_rivals(where, statement.excludes, ends)


def _number(where, key, x, finite=True):
    if isinstance(x, bool) or not isinstance(x, int | float) or math.isnan(x) or (finite and math.isinf(x)):
        raise ValueError(f"{where}: {key} is {x!r}; it must be a {'finite ' if finite else ''}number.")
    return float(x)


def _span(where, ends):
    if not isinstance(ends, list) or len(ends) != 2:
        raise ValueError(f"{where}: claim is {ends!r}; it must be [lo, hi], where an open side is -inf or inf.")
    lo, hi = (_number(where, "claim", end, finite=False) for end in ends)
    if not lo < hi or math.isinf(lo) and math.isinf(hi):
        raise ValueError(f"{where}: claim is [{lo:g}, {hi:g}]; lo must be below hi, and one of them finite.")
    return (lo, hi)


def _rivals(where, rivals):
    if not isinstance(rivals, dict) or not rivals:
        raise ValueError(f"{where}: excludes is {rivals!r}; it must name at least one rival, or be left out.")
    return {rival: _number(where, f"excludes[{rival!r}]", x) for rival, x in rivals.items()}
