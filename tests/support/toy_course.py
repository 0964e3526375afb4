"""A small assignment of two questions, so that grading many submissions costs little, and what students hand in."""

import csv
import json
import sys
from pathlib import Path

import nbformat

from flbook.course import handouts

ROOT = Path(__file__).parents[2]
RIGHT = {"q1": "def double(x):\n    return 2 * x", "q2": "def square(x):\n    return np.square(x)"}
_CONFIG = "# ASSIGNMENT CONFIG\nname: toy\ninit_cell: false\ntests:\n    files: true\n    ok_format: false"
_TEST = '''""" # BEGIN TEST CONFIG
points: {points}
hidden: {hidden}
failure_message: "{message}"
"""  # END TEST CONFIG
def {name}({function}):
    assert {function}({given}) == {value}
'''
_TESTS = {
    "q1": [("test_three", 1, "Three gives six.", "3", "6"), ("test_any", 2, "Any other?", "GRADING_SEED", "40522202")],
    "q2": [("test_three", 1, "Three gives nine.", "3", "9"), ("test_any", 3, "And minus ten?", "-10", "100")],
}


def write_master(folder: Path) -> Path:
    """Write the master into a folder, as ``toy.ipynb``."""
    raw, code = nbformat.v4.new_raw_cell, nbformat.v4.new_code_cell
    cells = [raw(f"{_CONFIG}\ngenerate:\n    pdf: false"), code("import numpy as np")]
    for question, tests in _TESTS.items():
        points, function = sum(test[1] for test in tests), RIGHT[question].split("(")[0][4:]
        cells += [raw(f"# BEGIN QUESTION\nname: {question}\npoints: {points}"), raw("# BEGIN SOLUTION")]
        cells += [code(f"{RIGHT[question]}  # SOLUTION"), raw("# END SOLUTION"), raw("# BEGIN TESTS")]
        for name, worth, message, given, value in tests:
            words = {"name": name, "points": worth, "message": message, "given": given, "value": value}
            cells.append(code(_TEST.format(function=function, hidden=name == "test_any", **words)))
        cells += [raw("# END TESTS"), raw("# END QUESTION")]
    folder.mkdir(parents=True, exist_ok=True)
    python = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=python), folder / "toy.ipynb")
    return folder / "toy.ipynb"


def submission(*more: str, set_up: str = "import numpy as np", **answers: str) -> bytes:
    """A notebook: the set-up, more cells, and the answers, right where none is given and absent where it is empty."""
    sources = [set_up, *more, *(RIGHT | answers).values()]
    cells = [{"cell_type": "code", "source": source, "metadata": {}, "outputs": []} for source in sources if source]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def make(folder: Path) -> handouts.Handout:
    """The assignment, made of its master in this folder."""
    return handouts.make(write_master(folder))


def hand_in(folder: Path, files: dict[str, bytes]) -> Path:
    """Write what was handed in into a folder."""
    for name, content in files.items():
        folder.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        folder.joinpath(name).write_bytes(content)
    return folder


def command(masters: Path, folder: Path, *more: str) -> list[str]:
    """As ``make grade``, for the toy."""
    return [sys.executable, "-m", "flbook.course.grading", "toy", str(folder), "--masters", str(masters), *more]


def rows(folder: Path) -> dict[str, dict[str, str]]:
    """The table of grades, by file."""
    with open(folder / "grades.csv", encoding="utf-8", newline="") as file:
        return {row["file"]: row for row in csv.DictReader(file)}
