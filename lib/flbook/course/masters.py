"""Masters of assignments: notebooks in otter-grader's source format, read and checked before anything is made of them.

Otter's own format says where a question, its solution and its tests begin and end. What this course asks beyond it:
each question has a solution, its tests' points add up to its own, each test says what went wrong, some tests are
hidden, and only these know the seed of grading.
"""

import ast
import re
from pathlib import Path
from typing import NamedTuple, cast

import nbformat
import yaml

SEED = "GRADING_SEED"  # what hidden tests write where they draw their instances
DEFAULT_SEED = 20261101
_FENCE = re.compile(r"\A#\s*(BEGIN|END) (QUESTION|SOLUTION|TESTS|ASSIGNMENT CONFIG)\b", re.IGNORECASE)
_SETTINGS = re.compile(r'\A"""\s*# BEGIN TEST CONFIG\n(.*?)"""\s*# END TEST CONFIG\n', re.DOTALL)
_UNPAIRED = {True: "does not end", False: "ends that did not begin"}
_MARKED = re.compile(r"#\s*(BEGIN )?SOLUTION\b")


class Test(NamedTuple):
    """One test cell of a question."""

    name: str
    points: float
    hidden: bool
    message: str
    code: str

    @property
    def needs(self) -> list[str]:
        """What it asks of the student's names: its arguments, but the one that stands for all of them."""
        made = [node for node in ast.parse(self.code).body if isinstance(node, ast.FunctionDef)]
        arguments = next(node.args.args for node in made if node.name == self.name)
        return [argument.arg for argument in arguments if argument.arg != "env"]


class GradedQuestion(NamedTuple):
    """One question of a master: its name and points, the code of its solution, its tests."""

    name: str
    points: float
    solution: tuple[str, ...]
    tests: tuple[Test, ...]

    @property
    def needs(self) -> list[str]:
        """What its tests ask of the student's names."""
        return list(dict.fromkeys(name for test in self.tests for name in test.needs))


def folder(given: str | None, root: Path) -> Path:
    """The folder of the masters: the given one, or the book's."""
    path = Path(given).expanduser() if given else root / "book/assignments/masters"
    if not path.is_dir():
        raise ValueError(f"MASTERS must be a folder of master notebooks; there is no folder {given or path.name!r}.")
    return path


def listed(path: Path) -> dict[str, Path]:
    """The masters in a folder, by name."""
    found = {file.stem: file for file in sorted(path.glob("*.ipynb"))}
    if not found:
        raise ValueError(f"MASTERS must hold notebooks; there is none in {path.name!r}.")
    return found


def chosen(path: Path, name: str) -> Path:
    """The master of this name."""
    found = listed(path)
    if name not in found:
        raise ValueError(f"there is no assignment {name!r}; there are {', '.join(found)}.")
    return found[name]


def read(path: Path) -> tuple[nbformat.NotebookNode, tuple[GradedQuestion, ...]]:
    """A master and its questions; what cannot be handed out is refused in one sentence.

    Raises
    ------
    ValueError
        If the file is no notebook, or a question has no solution, no hidden test, a test without a message, points
        that do not add up, or a public test that knows the seed of grading.
    """
    try:
        nb = nbformat.read(path, as_version=4)
    except Exception as error:  # whatever the reader makes of a file that is none
        raise ValueError(f"the master {path.stem} is no notebook: {type(error).__name__}.") from None
    questions = tuple(_questions(nb, path.stem))
    if not questions:
        raise ValueError(f"the master {path.stem} has no question.")
    for question in questions:
        _check(question, f"the master {path.stem}, {question.name}")
    return nb, questions


def _questions(nb, master):
    """Walk through the cells; otter's fences are raw cells."""
    settings, inside, solution, tests = None, "", [], []
    for cell in nb.cells:
        fence = _FENCE.match(cell.source) if cell.cell_type == "raw" else None
        if fence:
            begins, what = fence[1].upper() == "BEGIN", fence[2].upper()
            if what == "QUESTION" and begins != (settings is None):
                named = f", {settings.get('name')}" if settings else ""
                raise ValueError(f"the master {master}{named}: a question {_UNPAIRED[begins]}.")
            if what == "QUESTION" and begins:
                settings, solution, tests = yaml.safe_load(cell.source) or {}, [], []
                if settings.get("all_or_nothing"):
                    raise ValueError(f"the master {master}, {settings.get('name')}: all_or_nothing is not known here.")
            elif what == "QUESTION":
                assert settings is not None  # or it would begin
                yield GradedQuestion(str(settings.get("name")), settings.get("points", 0), tuple(solution),
                                     tuple(tests))
                settings = None
            inside = what if begins else ""
        elif settings is not None and cell.cell_type == "code" and inside == "SOLUTION":
            solution.append(cell.source)
        elif settings is not None and cell.cell_type == "code" and inside == "TESTS":
            tests.append(_test(cell.source, f"the master {master}, {settings.get('name')}"))
    if settings is not None:
        raise ValueError(f"the master {master}, {settings.get('name')}: a question {_UNPAIRED[True]}.")


def _test(source, where):
    settings, named = _SETTINGS.match(source), re.search(r"^def (\w+)\(", source, flags=re.MULTILINE)
    if not settings or not named:
        raise ValueError(f"{where}: a test is a function under its settings; this is none: {source[:40]!r}.")
    found = yaml.safe_load(settings[1])
    return Test(
        named[1],
        found.get("points", 0),
        bool(found.get("hidden", False)),
        found.get("failure_message", "") or "",
        source[settings.end() :],
    )


def _check(question, where):
    if not any(_MARKED.search(code) for code in question.solution):
        raise ValueError(f"{where}: the question has no solution.")
    total = sum(test.points for test in question.tests)
    if total != question.points or not total > 0:
        raise ValueError(f"{where}: the points of the tests are {total:g}, those of the question {question.points:g}.")
    if not any(test.hidden for test in question.tests):
        raise ValueError(f"{where}: no test is hidden, so every point can be had by trying.")
    for test in question.tests:
        if not test.message:
            raise ValueError(f"{where}: the test {test.name} has no failure_message.")
        if re.search(r'["\\]', test.message):
            raise ValueError(f"{where}: the failure_message of {test.name} holds a quote or a backslash.")
        if not test.hidden and SEED in test.code:
            raise ValueError(f"{where}: the test {test.name} is public, so it may not know {SEED}.")


def seeded(nb: nbformat.NotebookNode, seed: int) -> nbformat.NotebookNode:
    """The same notebook with the seed of grading written into its tests."""
    copy = cast(nbformat.NotebookNode, nbformat.from_dict(nb))
    for cell in copy.cells:
        if cell.cell_type == "code" and _SETTINGS.match(cell.source):
            cell.source = re.sub(rf"\b{SEED}\b", str(seed), cell.source)
    return copy
