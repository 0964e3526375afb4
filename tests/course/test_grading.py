"""Good and hostile submissions, graded in the sandbox: each gets what is missing as 0, a remark, and harms no other."""

import csv
import json
import os
import subprocess
import sys

import pytest
from answers import ROOT, answered, handout, right

from flbook.course import grading, sandbox, submissions

NAME = "decomposition"
GOOD = "def strengths(n, d, sigma_xi=1.0):\n    return sigma_xi * (d / n) ** 0.5, sigma_xi * (d / n) ** 0.25"
LIMITS = sandbox.Limits(seconds=60)


def submission(**answers: str) -> dict:
    """The blank notebook with answers to some questions."""
    notebook = json.loads(handout(NAME).notebook)
    for question, answer in answers.items():
        notebook = answered(notebook, question, answer)
    return notebook


def graded(tmp_path, limits=LIMITS, **answers) -> grading.Grade:
    tmp_path.joinpath("one.ipynb").write_text(json.dumps(submission(**answers)))
    return grading.grade(tmp_path / "one.ipynb", handout(NAME), limits)


def points(found: grading.Grade) -> list[float]:
    return [outcome.points for outcome in found.outcomes.values()]


def test_right_answers_in_the_sandbox(tmp_path):
    tmp_path.joinpath("one.ipynb").write_text(json.dumps(right(NAME)))
    found = grading.grade(tmp_path / "one.ipynb", handout(NAME), LIMITS)
    assert (points(found), found.remarks) == ([5, 4, 3], ())


HOSTILE = {
    "exits": ("import os; os._exit(0)", "ended the process"),
    "asks to exit": ("raise SystemExit", "raised SystemExit"),
    "fills the memory": ("x = bytearray(20 * 2**30)", "raised MemoryError"),
    "raises": ("import nothing_like_it", "raised ModuleNotFoundError"),
    "is no Python": ("def coefficients(", "raised SyntaxError"),
    "says that it was right": (
        'import sys\nprint(\'{"question": "q1", "outcome": [5, []]}\', file=sys.__stdout__)',
        "",
    ),
    "writes where results go": (
        "import contextlib, os\nfor number in range(3, 20):\n"
        "    with contextlib.suppress(OSError):\n        os.write(number, b'5\\n')",
        "wrote what it should not",
    ),
    "exits in the test": ("import os\ndef coefficients(*given):\n    os._exit(0)", "q1: ended the process"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_answer_costs_its_own_question(tmp_path, what):
    code, said = HOSTILE[what]
    found = graded(tmp_path, q1=code, q3=GOOD)
    assert points(found) == [0, 0, 3]
    assert said in " ".join(found.remarks)


def test_what_never_ends_is_ended(tmp_path):
    found = graded(tmp_path, sandbox.Limits(seconds=25), q1="while True: pass", q3=GOOD)
    assert points(found) == [0, 0, 3]
    assert "did not end within 25 s" in " ".join(found.remarks)


def test_it_deletes_nothing_and_reaches_nobody(tmp_path):
    if sandbox.isolation():
        pytest.skip(sandbox.isolation())
    treasure = tmp_path / "other.ipynb"
    treasure.write_text("the work of someone else")
    code = f"import shutil; shutil.rmtree({str(tmp_path)!r}, ignore_errors=True)"
    call = "import socket; socket.create_connection(('127.0.0.1', 9), timeout=5)"
    found = graded(tmp_path, q1=code, q2=call, q3=GOOD)
    assert treasure.read_text() == "the work of someone else"
    assert points(found) == [0, 0, 3]
    assert "unreachable" in " ".join(found.remarks)


def test_a_cell_sees_nothing_of_who_grades(tmp_path, monkeypatch):
    monkeypatch.setenv("A_SECRET", "of the lecturer")
    code = "import os\nassert 'A_SECRET' not in os.environ\nassert os.environ['HOME'] == os.getcwd()"
    found = graded(tmp_path, q1=code, q3=GOOD)
    assert found.remarks == () and points(found) == [0, 0, 3]


@pytest.mark.parametrize(
    "text",
    [
        "dear teacher",
        "[]",
        '{"cells": [{"cell_type": "code"}]}',
        '{"cells": 3}',
        '{"cells": [], "metadata": 3}',
        b"\xff\xfe",
        "[" * 100_000,
    ],
)
def test_what_is_no_notebook_gets_a_remark(tmp_path, text):
    path = tmp_path / "essay.ipynb"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = grading.grade(path, handout(NAME))
    assert (found.total, found.remarks) == (0, ("this is no notebook",))


def test_what_jupyter_understands_is_understood():
    code = {
        "cell 1": "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nx = 1",
        "cell 2": "%time y = x + 1",
        "cell 3": "!true",
        "cell 4": "display(y)\nz = y",
    }
    namespace, raised = submissions.execute(code)
    assert (namespace["z"], raised) == (2, {})


def test_a_question_that_is_gone_and_another_assignment(tmp_path):
    notebook = submission(q3=GOOD)
    notebook["cells"] = [cell for cell in notebook["cells"] if "def one_step" not in "".join(cell["source"])]
    notebook["metadata"]["otter"]["assignment_name"] = "search"
    tmp_path.joinpath("one.ipynb").write_text(json.dumps(notebook))
    found = grading.grade(tmp_path / "one.ipynb", handout(NAME), LIMITS)
    assert points(found) == [0, 0, 3]
    assert found.remarks == ("this is the assignment search",)


def test_the_command_grades_a_folder(tmp_path):
    """As ``make grade``: one line a file, and what each failed test says."""
    tmp_path.joinpath("b.ipynb").write_text(json.dumps(submission(q3=GOOD)))
    tmp_path.joinpath("a.pdf").write_bytes(b"%PDF")
    run = [sys.executable, "-m", "flbook.course.grading", NAME, str(tmp_path)]
    for _ in range(2):  # the second time its own files lie there, too
        subprocess.run(run, cwd=ROOT, check=True, capture_output=True, timeout=120, env=os.environ | {"LC_ALL": "C"})
        rows = list(csv.reader(tmp_path.joinpath("grades.csv").open()))
        assert rows[0] == ["file", "q1", "q2", "q3", "total", "remark"]
        assert rows[1:] == [["a.pdf", "0", "0", "0", "0", "this is no notebook"], ["b.ipynb", "0", "0", "3", "3", ""]]
    said = tmp_path.joinpath("feedback.md").read_text()
    assert "## b.ipynb: 3 of 12 points" in said and "which power of its norm" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pdf", "b.ipynb", "feedback.md", "grades.csv"]


def test_an_empty_folder_is_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ValueError, match="SUBMISSIONS must"):
            grading.submissions(folder)
