"""What is made of the masters: student notebooks, public tests, and the autograders for Gradescope.

``python -m flbook.course.handouts [--masters FOLDER] [--seed N]`` makes all of it in memory first, so a master with a
defect leaves every file as it was. What is committed (notebooks, public tests) depends on the masters alone; the seed
reaches only the hidden tests, in the autograders under ``build/assignments``.
"""

import argparse
import ast
import io
import json
import re
import shutil
import sys
import tempfile
import zipfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import nbformat

from flbook.book import kinds, lectures
from flbook.course import PUBLIC, masters

_HIDDEN = re.compile(r"hidden=True")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # of every file in an archive: it carries no day


class Handout(NamedTuple):
    """Everything that one master becomes."""

    name: str
    points: dict[str, float]  # of each question
    notebook: str  # the student's
    public: dict[str, str]  # test files without the hidden tests, by question
    solved: str  # the notebook with the solutions
    tests: dict[str, str]  # test files with the hidden tests
    archive: bytes  # the autograder for Gradescope
    questions: tuple[masters.GradedQuestion, ...]

    @property
    def set_up(self) -> list[str]:
        """The names that the set-up cell of the student's notebook imports."""
        cells = json.loads(self.notebook)["cells"]
        set_up = [cell["source"] for cell in cells if "kind-set-up" in cell["metadata"].get("tags", [])]
        text = "\n".join("".join(source) for source in set_up)
        tree = ast.parse(re.sub(r"^( *)[%!].*", r"\1pass", text, flags=re.MULTILINE))
        found = [node.names for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        return list(dict.fromkeys(name.asname or name.name.split(".")[0] for names in found for name in names))


def make(master: Path, seed: int = masters.DEFAULT_SEED) -> Handout:
    """Make one assignment of its master; nothing is written.

    Parameters
    ----------
    master
        The master notebook.
    seed
        From which the hidden tests draw their instances.

    Raises
    ------
    ValueError
        If the master has a defect, or if the student's version would give something away.
    """
    if seed < 0:
        raise ValueError(f"SEED must be a whole number from 0 on; it was {seed}.")
    nb, questions = masters.read(master)
    with tempfile.TemporaryDirectory(prefix="flbook-") as work:
        source, result = Path(work, "source", master.name), Path(work, "result")
        source.parent.mkdir()
        nbformat.write(masters.seeded(nb, seed), source)
        _assign(source, result)
        student, grader = result / "student", result / "autograder"
        (archive,) = grader.glob("*.zip")
        handout = Handout(
            master.stem,
            {question.name: question.points for question in questions},
            _tidy(student / master.name),
            _texts(student / "tests"),
            _tidy(grader / master.name),
            _texts(grader / "tests"),
            _ageless(archive),
            questions,
        )
    _check_discreet(handout, questions)
    return handout


def _assign(source, result):
    """Let otter split the master; what it says is repeated only where it fails."""
    from otter.assign import main as assign  # half a second, and only lecturers have it

    said = io.StringIO()
    try:
        with redirect_stdout(said), redirect_stderr(said):
            assign(str(source), str(result), no_pdfs=True, no_run_tests=True)
    except Exception as error:
        text = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"the master {source.stem} cannot be read by otter: {text}") from None


def _tidy(path):
    """A notebook's text without what changes from run to run."""
    nb = nbformat.read(path, as_version=4)
    for number, cell in enumerate(nb.cells, start=1):
        cell["id"] = f"cell-{number:02d}"
        if cell.cell_type == "code":
            cell["outputs"], cell["execution_count"] = [], None
    kinds.mark_all(nb.cells)
    nb.nbformat_minor = 5
    return nbformat.writes(nb).rstrip("\n") + "\n"


def _texts(folder):
    return {path.stem: path.read_text(encoding="utf-8").rstrip("\n") + "\n" for path in sorted(folder.glob("*.py"))}


def _ageless(archive):
    """The archive's files in order and without their times."""
    made = io.BytesIO()
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(made, "w") as new:
        for name in sorted(old.namelist()):
            new.writestr(zipfile.ZipInfo(name, _EPOCH), old.read(name), zipfile.ZIP_DEFLATED)
    return made.getvalue()


def secrets(questions: tuple[masters.GradedQuestion, ...]) -> set[str]:
    """What a student may not read: lines of solutions, hidden tests' names and messages."""
    found = set()
    for question in questions:
        for code in question.solution:
            found |= {line.strip() for line in _solution_lines(code)}
        found |= {word for test in question.tests if test.hidden for word in (test.name, test.message)}
    return {text for text in found if len(text) > 12}  # `return True` and the like tell nothing


def _solution_lines(code):
    inside = False
    for line in code.splitlines():
        if re.search(r"#\s*(BEGIN|END) SOLUTION", line):
            inside = "BEGIN" in line
        elif inside:
            yield line
        elif re.search(r"#\s*SOLUTION\b", line):
            yield re.sub(r"\s*#\s*SOLUTION\b.*", "", line)


def _check_discreet(handout, questions):
    given = [handout.notebook, *handout.public.values()]
    text = "\n".join(given).replace('\\"', '"')
    told = sorted(secret for secret in secrets(questions) if secret in text)
    if told or any(_HIDDEN.search(file) for file in given):
        said = repr(told[0]) if told else "a hidden test"
        raise ValueError(f"the master {handout.name}: the student's version would show {said}.")


def write(handouts: list[Handout], root: Path, public: Path = PUBLIC) -> list[Path]:
    """Write notebooks, public tests and archives into a checkout; returns the archives."""
    archives = root / "build/assignments"
    archives.mkdir(parents=True, exist_ok=True)
    for handout in handouts:
        root.joinpath("book/assignments", f"{handout.name}.ipynb").write_text(handout.notebook, encoding="utf-8")
        folder = public / handout.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for question, text in handout.public.items():
            folder.joinpath(f"{question}.txt").write_text(text, encoding="utf-8")
        archives.joinpath(f"{handout.name}.zip").write_bytes(handout.archive)
    return [archives / f"{handout.name}.zip" for handout in handouts]


def main(argv=None):
    """Make every assignment of a folder of masters; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m flbook.course.handouts",
                                     description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--masters", help="folder of master notebooks; default: the book's")
    parser.add_argument("--seed", type=int, default=masters.DEFAULT_SEED, help="of the hidden tests' instances")
    given = parser.parse_args(argv)
    try:
        root = lectures.root()
        found = masters.listed(masters.folder(given.masters, root))
        made = [make(path, given.seed) for path in found.values()]
    except ValueError as error:
        print(f"flbook: {error}", file=sys.stderr)
        return 2
    for handout, archive in zip(made, write(made, root), strict=True):
        total = sum(handout.points.values())
        print(f"{handout.name}: {len(handout.points)} questions, {total:g} points, {archive.relative_to(root)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
