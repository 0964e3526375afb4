"""Grade a folder of submissions: each one in the sandbox, all of them into one table.

``python -m flbook.course.grading NAME FOLDER`` writes ``grades.csv`` (file, points and maximum of each question and in
total, seconds, remark) and ``feedback/FILE.md`` into the folder. A cell or a question that does not end in its time is
left there; what stops the process is left out, and the submission is run once more without it.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from flbook.book import lectures
from flbook.course import entries, handouts, masters, sandbox, submissions, walls
from flbook.course.gradebook import Grade, Gradebook, Outcome
from flbook.course.trial import Trial

_SECONDS = "that a cell, or the tests of a question, may take; a whole submission five times as long"
_RUNS = 4  # of one submission: the first, and three without what stopped it


class Terms(NamedTuple):
    """What all are graded under: the assignment, the limits, and the walls, if anything can be lost here."""

    handout: handouts.Handout
    limits: sandbox.Limits
    walls: walls.Walls | None


def grade(content: bytes, terms: Terms) -> Grade:
    """Grade one submission; whatever it does, there is a grade, and a remark where it did something.

    Parameters
    ----------
    content
        Of the file that was handed in.
    terms
        Under which it is graded.

    Returns
    -------
    Grade
        With 0 points where there is no answer.
    """
    handout, limits, around = terms
    begun = time.monotonic()
    try:
        notebook = entries.notebook(content)
    except ValueError as error:
        return nothing(handout, str(error))
    code, skip, results, remarks = submissions.cells(notebook), [], {}, _other(notebook, handout)
    for _ in range(_RUNS):
        last = Trial(code, handout, skip)
        fate = last.follow(limits, around, begun + limits.altogether)
        results |= last.results
        if not last.step:
            break
        remarks.append(f"{last.step} {fate}")
        skip = [*skip, last.step]
        if last.step == "the start" or time.monotonic() > begun + limits.altogether:
            break
    remarks += [*(f"{name} {error}" for name, error in last.raised.items()), *_lacking(last.lacks, handout)]
    late = [(name, one.raised) for name, tests in results.items() for one in tests if one.late]
    remarks += [f"{name} {said}" for name, said in late]
    given = {question.name: outcome(question, results.get(question.name)) for question in handout.questions}
    return Grade(given, tuple(remarks), time.monotonic() - begun)


def nothing(handout: handouts.Handout, why: str) -> Grade:
    """No points, and the reason.

    Parameters
    ----------
    handout
        The assignment.
    why
        The remark.

    Returns
    -------
    Grade
        Of a file that cannot be graded.
    """
    return Grade({question: Outcome(0, ()) for question in handout.points}, (why,))


def _other(notebook, handout):
    """A remark if the notebook says that it is another assignment."""
    about = notebook.get("metadata", {}).get("otter")
    named = about.get("assignment_name", handout.name) if isinstance(about, dict) else handout.name
    return [] if named == handout.name else [f"this is the assignment {str(named)[:80]}"]


def outcome(question: masters.GradedQuestion, results: list[submissions.Result] | None) -> Outcome:
    """What a question gets: points and words are the master's, only what was passed is the run's.

    Parameters
    ----------
    question
        Of the master.
    results
        One a test; None if the tests did not run.

    Returns
    -------
    Outcome
        With a sentence for each test that failed.
    """
    if results is None:
        return Outcome(0, ("the tests of this question did not run to their end",))
    each = list(zip(question.tests, results, strict=True))
    said = [f"{test.message}{_own(one.raised)}" for test, one in each if not one.passed]
    return Outcome(sum(test.points for test, one in each if one.passed), tuple(said))


def _own(raised):
    return f" Your code {raised}." if raised else ""


def _lacking(lacks, handout):
    """Remarks on what is not there when all cells have run."""
    set_up = [name for name in handout.set_up if name in lacks]
    remarks = [f"the set-up cell is missing, changed or failed: it gives {', '.join(set_up)}"] if set_up else []
    for question in handout.questions:
        remarks += [f"{question.name}: there is no {name}" for name in question.needs if name in lacks]
    return remarks


def grade_all(
    book: Gradebook, handed_in: list[entries.Entry], terms: Terms, jobs: int, fresh: bool
) -> Iterator[tuple[entries.Entry, Grade, str]]:
    """Grade what was handed in, several at a time, and write all files anew with each grade.

    Parameters
    ----------
    book
        Where grades are kept and written.
    handed_in
        The submissions.
    terms
        Under which they are graded.
    jobs
        How many at a time.
    fresh
        Without the grades of an earlier call.

    Yields
    ------
    tuple of Entry, Grade and str
        As they come, and whether the grade is an earlier call's.
    """
    found: dict[entries.Entry, tuple[Grade, str]] = {}
    sandbox.INTERRUPTED.clear()
    with ThreadPoolExecutor(jobs) as pool:
        asked = {pool.submit(_one, book, entry, terms, fresh): entry for entry in handed_in}
        try:
            for done in as_completed(asked):
                entry = asked[done]
                found[entry] = done.result()
                book.write_feedback(entry, found[entry][0])
                book.write({one: found[one][0] for one in handed_in if one in found})
                yield entry, *found[entry]
        except BaseException:
            sandbox.INTERRUPTED.set()
            pool.shutdown(cancel_futures=True)
            raise


def _one(book, entry, terms, fresh):
    """One submission's grade, and where it comes from; nothing that goes wrong with it may cost another its grade."""
    try:
        content = entry.read()
    except ValueError as error:
        return nothing(terms.handout, str(error)), ""
    if not fresh and (known := book.known(content)):
        return known, " (graded before)"
    try:
        found = grade(content, terms)
    except Exception as error:
        said = " ".join(str(error).split()) or type(error).__name__
        return nothing(terms.handout, f"could not be graded: {said}"), ""
    if not sandbox.INTERRUPTED.is_set():
        book.keep(content, found)
    return found, ""


def _folder(text):
    """The path that was named; `make` hands on nothing as "", which must not mean the folder where we are."""
    return Path(text or "SUBMISSIONS")


def _positive(name, text, kind):
    try:
        number = kind(text)
    except ValueError:
        number = 0
    if not 0 < number < 1e6:
        raise ValueError(f"{name} must be a {'whole ' if kind is int else ''}number above 0; it was {text!r}.")
    return number


def _parser():
    parser = argparse.ArgumentParser(prog="python -m flbook.course.grading", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("name", help="of the assignment")
    parser.add_argument("folder", type=_folder, help="of the submissions")
    parser.add_argument("--masters", help="folder of master notebooks; default: the book's")
    parser.add_argument("--seed", type=int, default=masters.DEFAULT_SEED, help="of the hidden tests' instances")
    parser.add_argument("--seconds", default=f"{sandbox.Limits().seconds:g}", help=_SECONDS)
    parser.add_argument("--jobs", default=str(min(4, os.cpu_count() or 1)), help="submissions at a time")
    parser.add_argument("--fresh", action="store_true", help="grade again what an earlier call has graded")
    parser.add_argument("--without-sandbox", action="store_true", help="where nothing can be lost")
    return parser


def main(argv=None):
    """Grade a folder; returns the exit status."""
    given = _parser().parse_args(argv)
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore  # a name may be what a terminal cannot show
    folder = given.folder.expanduser()
    try:
        limits = sandbox.Limits(seconds=_positive("SECONDS", given.seconds, float))
        jobs = _positive("JOBS", given.jobs, int)
        at = masters.folder(given.masters, lectures.root())
        master, handed_in = masters.chosen(at, given.name), entries.listed(folder)
        around = None if given.without_sandbox else walls.build([lectures.root(), at, folder])
        handout = handouts.make(master, given.seed)
        book, terms = Gradebook(folder, handout, limits), Terms(handout, limits, around)
        for entry, found, how in grade_all(book, handed_in, terms, jobs, given.fresh):
            print(f"{entry.name}: {found.total:g}{how} {'; '.join(found.remarks)}".rstrip(), flush=True)
    except (ValueError, OSError) as error:
        print(f"flbook: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("flbook: interrupted; the same command goes on where this one stopped.", file=sys.stderr)
        return 130
    print(f"{len(handed_in)} graded, {entries.shown(str(folder / entries.GRADES))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
