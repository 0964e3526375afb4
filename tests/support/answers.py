"""Answers to the assignments: right ones from the masters, blank ones, typical wrong ones, and what they are due."""

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from flbook.course import grading, handouts, masters, submissions
from flbook.course.gradebook import Outcome

ROOT = Path(__file__).parents[2]
MASTERS = masters.listed(ROOT / "book/assignments/masters")


class Wrong(NamedTuple):
    """A typical wrong answer to one question, and the points that it should get."""

    name: str
    says: str
    question: str
    answer: str
    due: float
    beside: dict = {}  # points of other questions, where they hang on this one


def wrong_answers() -> list[Wrong]:
    """All that are written down in tests/course/wrong."""
    files = {name: ROOT / f"tests/course/wrong/{name}.toml" for name in MASTERS}
    return [Wrong(name, **given) for name in files for given in tomllib.loads(files[name].read_text())["wrong"]]


@cache
def handout(name: str, seed: int = masters.DEFAULT_SEED) -> handouts.Handout:
    """An assignment, made of its master."""
    return handouts.make(MASTERS[name], seed)


def right(name: str, seed: int = masters.DEFAULT_SEED) -> dict:
    """The notebook with the solutions."""
    return json.loads(handout(name, seed).solved)


def answered(notebook: dict, question: str, answer: str) -> dict:
    """The notebook with another answer to one question: in the last code cell before its check."""
    cells = notebook["cells"]
    code = [number for number, cell in enumerate(cells) if cell["cell_type"] == "code"]
    check = next(i for i in code if f'grader.check("{question}")' in "".join(cells[i]["source"]))
    at = max(i for i in code if i < check)
    copy = json.loads(json.dumps(notebook))
    copy["cells"][at]["source"] = answer
    return copy


def outcomes(notebook: dict, name: str, seed: int = masters.DEFAULT_SEED) -> dict[str, Outcome]:
    """What each question gets, in this process."""
    namespace, _ = submissions.execute(submissions.cells(notebook))
    made = handout(name, seed)
    scores = {question: submissions.score(namespace, question, text) for question, text in made.tests.items()}
    return {question.name: grading.outcome(question, scores[question.name]) for question in made.questions}


def points(found: dict[str, Outcome]) -> dict[str, float]:
    """The points alone."""
    return {question: outcome.points for question, outcome in found.items()}
