"""The grades of a folder of submissions: one table, a file of feedback for each, and what is kept for the next call.

What was graded is kept under a digest of the submission and of all that its grade depends on, so a call that was
killed is called again and goes on. All files are readable by their owner and by the folder's group, by nobody else.
"""

import csv
import hashlib
import io
import json
import os
import platform
import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from flbook.course.entries import FEEDBACK, GRADES, Entry
from flbook.course.handouts import Handout
from flbook.course.sandbox import Limits
from flbook.runs import files

_KEPT = ".grades"
_EXECUTED = "=+-@\t\r"  # a spreadsheet takes a text that begins so for a formula
_LONGEST = 150  # bytes of a submission's name in that of its feedback: while that is written, it is longer


class Outcome(NamedTuple):
    """A question's points, and what its failed tests say."""

    points: float
    said: tuple[str, ...]


class Grade(NamedTuple):
    """What a submission got: an outcome a question, what has to be said, and the time that it took."""

    outcomes: dict[str, Outcome]
    remarks: tuple[str, ...]
    seconds: float = 0.0

    @property
    def total(self) -> float:
        """Points of all questions."""
        return sum(outcome.points for outcome in self.outcomes.values())


class Gradebook:
    """The files that grading writes into a folder of submissions.

    Parameters
    ----------
    folder
        Of the submissions.
    handout
        The assignment.
    limits
        Under which is graded.
    """

    def __init__(self, folder: Path, handout: Handout, limits: Limits):
        self.folder = folder
        self.points = handout.points
        about = (handout.name, handout.notebook, handout.tests, limits, _library(), platform.python_version())
        self._about = repr(about).encode()
        self._check_ours()

    def _check_ours(self):
        path = self.folder / GRADES
        if path.exists() and not path.read_bytes().startswith(b"file,"):
            raise ValueError(f"SUBMISSIONS holds a {GRADES} that this command has not written: move it away first.")

    def known(self, content: bytes) -> Grade | None:
        """The grade of an earlier call, if there is one.

        Parameters
        ----------
        content
            Of the submission.

        Returns
        -------
        Grade or None
            None also if what was kept is damaged.
        """
        with suppress(OSError, ValueError, KeyError, TypeError):
            kept = json.loads(self._place(content).read_bytes())
            said = {name: kept["outcomes"][name] for name in self.points}
            outcomes = {name: Outcome(float(points), tuple(texts)) for name, (points, texts) in said.items()}
            return Grade(outcomes, tuple(kept["remarks"]), float(kept["seconds"]))
        return None

    def keep(self, content: bytes, grade: Grade) -> None:
        """Keep a grade for the next call.

        Parameters
        ----------
        content
            Of the submission.
        grade
            That it got.
        """
        self._write(self._place(content), json.dumps(grade._asdict()))

    def _place(self, content):
        return self.folder / _KEPT / f"{hashlib.sha256(self._about + content).hexdigest()}.json"

    def write(self, grades: dict[Entry, Grade]) -> None:
        """Write the table of all grades so far.

        Parameters
        ----------
        grades
            By submission, in the order of the lines.
        """
        self._write(self.folder / GRADES, table(grades, self.points))

    def write_feedback(self, entry: Entry, grade: Grade) -> None:
        """Write one submission's feedback.

        Parameters
        ----------
        entry
            The submission.
        grade
            That it got.
        """
        *above, name = map(os.fsencode, entry.path.relative_to(self.folder).parts)
        if len(name) > _LONGEST:
            name = name[: _LONGEST - 17] + b"-" + hashlib.sha256(name).hexdigest()[:16].encode()
        place = self.folder.joinpath(FEEDBACK, *map(os.fsdecode, above), os.fsdecode(name + b".md"))
        self._write(place, feedback(entry.name, grade, self.points))

    def _write(self, path, text):
        path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        files.write(path, text.encode("utf-8", "backslashreplace"))
        with suppress(OSError):  # a file system without owners, or a group that is not ours to give
            group = self.folder.stat().st_gid
            for one in (path, *path.parents):
                if one == self.folder:
                    break
                os.chmod(one, 0o750 if one.is_dir() else 0o640)
                if one.stat().st_gid != group:
                    os.chown(one, -1, group)


def _library():
    """A digest of this library, whose functions an answer may call."""
    found = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


def table(grades: dict[Entry, Grade], points: dict[str, float]) -> str:
    """The grades as comma-separated values, one line a file.

    Parameters
    ----------
    grades
        By submission, in the order of the lines.
    points
        Of each question, at most.

    Returns
    -------
    str
        With a line of titles.
    """
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    titles = [title for name in (*points, "total") for title in (name, f"{name} max")]
    rows.writerow(["file", *titles, "seconds", "remark"])
    most = {**points, "total": sum(points.values())}
    for entry, found in grades.items():
        got = {name: found.outcomes[name].points for name in points} | {"total": found.total}
        each = [f"{number:g}" for name in most for number in (got[name], most[name])]
        rows.writerow([_harmless(entry.name), *each, f"{found.seconds:.1f}", _harmless("; ".join(found.remarks))])
    return text.getvalue()


def _harmless(text):
    """A text that a spreadsheet does not execute."""
    return f"'{text}" if text.startswith(tuple(_EXECUTED)) else text


def feedback(name: str, grade: Grade, points: dict[str, float]) -> str:
    """What there is to say to one submission, as Markdown.

    Parameters
    ----------
    name
        Of the submission.
    grade
        That it got.
    points
        Of each question, at most.

    Returns
    -------
    str
        A heading, the remarks, and a part for each question.
    """
    parts = [f"# {_literal(name)}: {grade.total:g} of {sum(points.values()):g} points", ""]
    parts += [f"Time used: {grade.seconds:.0f} s.", ""]
    parts += [*(f"- {_literal(remark)}" for remark in grade.remarks), *([""] if grade.remarks else [])]
    for question, outcome in grade.outcomes.items():
        parts += [f"## {question}: {outcome.points:g} of {points[question]:g} points", ""]
        parts += [*(f"- {_literal(text)}" for text in outcome.said), *([""] if outcome.said else [])]
    return "\n".join(parts)


def _literal(text):
    """A text in which nothing is taken for Markdown or HTML: it may be a student's."""
    return re.sub(r"([\\`*_\[\]<>#|~&$])", r"\\\1", text)
