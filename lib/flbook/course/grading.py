"""Grade a folder of submissions: each one in the sandbox, all of them into one table.

``python -m flbook.course.grading NAME FOLDER [--masters FOLDER] [--seed N]`` writes ``grades.csv`` (file, points per
question, total, remark) and ``feedback.md`` (what the failed tests say) into the folder. A submission that stops its
process, or never ends, loses the cell or the question where it did, and is run once more without it.
"""

import argparse
import csv
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from flbook.book import lectures
from flbook.course import handouts, masters, sandbox
from flbook.course.submissions import Outcome

_RUNS = 4  # of one submission: the first, and three without what stopped it
_OURS = ("grades.csv", "feedback.md")


class Grade(NamedTuple):
    """What a submission got: an outcome a question, and what has to be said."""

    outcomes: dict[str, Outcome]
    remarks: tuple[str, ...]

    @property
    def total(self) -> float:
        """Points of all questions."""
        return sum(outcome.points for outcome in self.outcomes.values())


def grade(path: Path, handout: handouts.Handout, limits: sandbox.Limits = sandbox.Limits()) -> Grade:  # noqa: B008
    """Grade one submission; whatever it does, there is a grade, and a remark where it did something.

    Parameters
    ----------
    path
        The file that was handed in.
    handout
        The assignment.
    limits
        Of each run.
    """
    nothing = {question: Outcome(0, ()) for question in handout.points}
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        if not all(cell["source"] is not None and cell["cell_type"] for cell in notebook["cells"]):
            raise KeyError
        named = notebook.get("metadata", {}).get("otter", {}).get("assignment_name", handout.name)
    except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError):
        return Grade(nothing, ("this is no notebook",))
    remarks = [] if named == handout.name else [f"this is the assignment {named}"]
    skip, found = [], {}
    for _ in range(_RUNS):
        job = {"notebook": notebook, "tests": handout.tests, "skip": skip}
        events, fate = _run(job, limits)
        stopped = next((event["begin"] for event in reversed(events) if "begin" in event), "the start")
        found |= {event["question"]: event["outcome"] for event in events if "question" in event}
        if not stopped:
            break
        remarks.append(f"{stopped}: {fate}")
        if stopped == "the start":
            break
        skip.append(stopped)
    remarks += [f"{event['raised']} raised {event['error']}" for event in events if "raised" in event]
    return Grade(nothing | found, tuple(remarks))


def _run(job, limits):
    """Run a job: what it said, and how it ended if it did not end well."""
    events = []
    try:
        for line in sandbox.lines(["-m", "flbook.course.submissions"], json.dumps(job), limits):
            events.append(_event(line))
    except sandbox.Timeout:
        return events, f"did not end within {limits.seconds:g} s"
    except ValueError:
        return events, "wrote what it should not"
    return events, "ended the process"


def _event(line):
    """What a run said in one line; a ValueError if a cell has found the way to write there."""
    try:
        event = dict(json.loads(line))
        if "question" in event:
            points, said = event["outcome"]
            event["outcome"] = Outcome(float(points), tuple(map(str, said)))
        if "raised" in event:
            event["error"] = str(event["error"])
    except (TypeError, KeyError):
        raise ValueError(line) from None
    return event


def submissions(folder: Path) -> list[Path]:
    """The files that were handed in: all in the folder and below, but hidden ones and our own."""
    if not folder.is_dir():
        raise ValueError(f"SUBMISSIONS must be a folder; there is no folder {str(folder)!r}.")
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in _OURS)
    found = [path for path in files if not any(part.startswith(".") for part in path.relative_to(folder).parts)]
    if not found:
        raise ValueError(f"SUBMISSIONS must hold what was handed in; {str(folder)!r} is empty.")
    return found


def table(grades: dict[str, Grade], points: dict[str, float]) -> str:
    """The grades as comma-separated values, one line a file."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["file", *points, "total", "remark"])
    for file, found in grades.items():
        each = [f"{found.outcomes[question].points:g}" for question in points]
        rows.writerow([file, *each, f"{found.total:g}", "; ".join(found.remarks)])
    return text.getvalue()


def feedback(grades: dict[str, Grade], points: dict[str, float]) -> str:
    """What the failed tests say to each submission, as Markdown."""
    parts = []
    for file, found in grades.items():
        parts.append(f"## {file}: {found.total:g} of {sum(points.values()):g} points\n")
        parts += [f"- {remark}" for remark in found.remarks]
        parts += [f"- {name}: {text}" for name, outcome in found.outcomes.items() for text in outcome.said]
        parts.append("")
    return "\n".join(parts)


def _folder(text):
    """The path that was named; `make` hands on nothing as "", which must not mean the folder where we are."""
    return Path(text or "SUBMISSIONS")


def _write(path, text):
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=".", delete=False) as file:
        file.write(text)
    os.replace(file.name, path)


def main(argv=None):
    """Grade a folder; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m flbook.course.grading", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("name", help="of the assignment")
    parser.add_argument("folder", type=_folder, help="of the submissions")
    parser.add_argument("--masters", help="folder of master notebooks; default: the book's")
    parser.add_argument("--seed", type=int, default=masters.DEFAULT_SEED, help="of the hidden tests' instances")
    parser.add_argument("--seconds", type=float, default=sandbox.Limits().seconds, help="that one run may take")
    given = parser.parse_args(argv)
    try:
        master = masters.chosen(masters.folder(given.masters, lectures.root()), given.name)
        files = submissions(given.folder)
        handout = handouts.make(master, given.seed)
    except ValueError as error:
        print(f"flbook: {error}", file=sys.stderr)
        return 2
    if sandbox.isolation():
        print(f"flbook: {sandbox.isolation()}", file=sys.stderr)
    grades = {}
    for path in files:
        name = path.relative_to(given.folder).as_posix()
        grades[name] = found = grade(path, handout, sandbox.Limits(seconds=given.seconds))
        print(f"{name}: {found.total:g} {'; '.join(found.remarks)}".rstrip(), flush=True)
        _write(given.folder / "grades.csv", table(grades, handout.points))  # each time: an end in between loses nothing
        _write(given.folder / "feedback.md", feedback(grades, handout.points))
    print(f"{len(files)} graded, {given.folder / 'grades.csv'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
