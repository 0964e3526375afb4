"""Each assignment gives what is due: everything for the right answers, nothing for none, and its loss for each slip.

And what is handed out shows nothing of it, and is what its master makes.
"""

import io
import json
import re
import subprocess
import sys
import zipfile
from collections import Counter

import pytest
from answers import MASTERS, ROOT, answered, handout, outcomes, points, right, wrong_answers
from otter.test_files.exception_test import ExceptionTestFile

from flbook.book import lectures
from flbook.course import grading, handouts, masters, public_tests, submissions

WRONG = wrong_answers()


@pytest.mark.parametrize("seed", [masters.DEFAULT_SEED, 1, 2])
@pytest.mark.parametrize("name", MASTERS)
def test_right_answers_get_everything(name, seed):
    assert points(outcomes(right(name, seed), name, seed)) == handout(name).points


@pytest.mark.parametrize("name", MASTERS)
def test_no_answer_gets_nothing(name):
    assert set(points(outcomes(json.loads(handout(name).notebook), name)).values()) == {0}


@pytest.mark.parametrize("name", MASTERS)
def test_wrong_answers_get_what_is_due_and_each_hidden_test_fails_one(name):
    """Each is graded among right ones. A test that no wrong answer fails tells nothing apart."""
    wrongs, right_points = [wrong for wrong in WRONG if wrong.name == name], handout(name).points
    due = {wrong.says: right_points | {wrong.question: wrong.due} | wrong.beside for wrong in wrongs}
    assert all(wrong.due < right_points[wrong.question] for wrong in wrongs)
    found = {wrong.says: outcomes(answered(right(name), wrong.question, wrong.answer), name) for wrong in wrongs}
    assert {says: points(one) for says, one in found.items()} == due
    said = " ".join(text for one in found.values() for outcome in one.values() for text in outcome.said)
    hidden = [test for question in handout(name).questions for test in question.tests if test.hidden]
    assert [test.message for test in hidden if test.message not in said] == []


def test_there_are_enough_wrong_answers():
    assert all(count >= 3 for count in (Counter(wrong.name for wrong in WRONG)[name] for name in MASTERS))


@pytest.mark.parametrize("name", MASTERS)
def test_what_is_handed_out_is_what_the_master_makes(name):
    made, page = handout(name), ROOT / f"book/assignments/{name}.ipynb"
    assert page.read_text() == made.notebook, "`make assignments` makes it"
    stored = {path.stem: path.read_text() for path in (handouts.PUBLIC / name).glob("*")}
    assert stored == made.public
    assert handouts.make(MASTERS[name], seed=5).notebook == made.notebook, "the seed reaches hidden tests only"


def test_every_page_and_every_public_test_has_its_master():
    assert {path.stem for path in (ROOT / "book/assignments").glob("*.ipynb")} == set(MASTERS)
    assert {path.name for path in handouts.PUBLIC.iterdir()} == set(MASTERS)


@pytest.mark.parametrize("name", MASTERS)
def test_nothing_of_solutions_or_hidden_tests_is_handed_out(name):
    """In the notebook, in the package, and on the built page if there is one."""
    _, questions = masters.read(MASTERS[name])
    html = ROOT / f"_build/html/book/assignments/{name}.html"
    given = [ROOT / f"book/assignments/{name}.ipynb", *(handouts.PUBLIC / name).glob("*"), html]
    texts = [re.sub(r"<[^>]*>", "", path.read_text()).replace("&quot;", '"') for path in given if path.exists()]
    assert len(handouts.secrets(questions)) >= 6
    assert not [secret for secret in handouts.secrets(questions) for text in texts if secret in text]


@pytest.mark.parametrize("name", MASTERS)
def test_what_is_handed_out_fits_the_page(name):
    cells = [cell for cell in json.loads(handout(name).notebook)["cells"] if cell["cell_type"] == "code"]
    assert "kind-set-up" in cells[0]["metadata"]["tags"]
    assert [line for cell in cells[1:] for line in "".join(cell["source"]).splitlines() if len(line) > 92] == []


@pytest.mark.parametrize("name", MASTERS)
def test_public_tests_run_without_the_checkout(name, tmp_path, monkeypatch):
    """As on Colab: otter finds the tests in the package, and the right answers pass."""
    import otter

    namespace, _ = submissions.execute(submissions.cells(right(name)))
    monkeypatch.chdir(tmp_path)  # otter keeps a log where it is
    grader = otter.Notebook(tests_dir=public_tests(name))
    assert all(grader.check(question, global_env=namespace).passed_all for question in handout(name).points)


def test_the_seed_is_in_hidden_tests_only():
    with_seed = [name for name in MASTERS if handout(name).tests != handout(name, seed=1).tests]
    assert with_seed == list(MASTERS), "an assignment whose instances nobody can change"


@pytest.mark.parametrize("kind", ["solved", "notebook"])
def test_otter_gives_the_same(kind, tmp_path):
    """By ``otter run``, as on Gradescope: everything for the right answers, nothing for none. One assignment tells."""
    made = handout("decomposition")
    tmp_path.joinpath("answers.ipynb").write_text(getattr(made, kind))
    tmp_path.joinpath("grader.zip").write_bytes(made.archive)
    command = [sys.executable, "-m", "otter", "run", "-a", "grader.zip", "-o", ".", "--no-logo", "answers.ipynb"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=280)
    results = json.loads(tmp_path.joinpath("results.json").read_text())
    scores = {test["name"]: test["score"] for test in results["tests"] if test["name"] in made.points}
    assert scores == (made.points if kind == "solved" else dict.fromkeys(made.points, 0))


@pytest.mark.parametrize("name", MASTERS)
def test_otter_scores_a_wrong_answer_as_we_do(name):
    """Test by test, with points and messages that are the master's: one typical slip in each question."""
    slips = {wrong.question: wrong.answer for wrong in WRONG if wrong.name == name}
    notebook = right(name)
    for question, answer in slips.items():
        notebook = answered(notebook, question, answer)
    namespace, _ = submissions.execute(submissions.cells(notebook))
    for question in handout(name).questions:
        theirs = ExceptionTestFile.from_string(handout(name).tests[question.name])
        theirs.run(namespace)
        results = theirs.test_case_results
        about = [(one.test_case.points, one.test_case.failure_message) for one in results]
        assert about == [(test.points, test.message) for test in question.tests]
        ours = submissions.score(namespace, question.name, handout(name).tests[question.name])
        assert [one.passed for one in results] == [one.passed for one in ours]
        assert theirs.score == grading.outcome(question, ours).points


@pytest.mark.parametrize("name", MASTERS)
def test_the_archive_holds_the_tests_that_were_tried(name):
    """What otter unpacks for grading is what the tests above have graded with."""
    with zipfile.ZipFile(io.BytesIO(handout(name).archive)) as archive:
        held = {path: archive.read(path).decode() for path in archive.namelist() if path.endswith(".py")}
    tests = {f"tests/{question}.py": text for question, text in handout(name).tests.items()}
    assert {path: held[path].rstrip("\n") + "\n" for path in tests} == tests


def test_what_runs_lectures_leaves_assignments_out():
    """Their answers are missing: `make run`, `make seeds` and the tests of the pages would stop at the first."""
    assert not [name for name in lectures.notebooks(ROOT) if name.startswith("assignments")]
    assert {f"assignments/{name}" for name in MASTERS} <= set(lectures.pages(ROOT)), "but they are pages"
    shown = subprocess.run(
        ["make", "--eval=show: ; @echo $(PAGES)", "show"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert "book/signal_noise/decomposition.ipynb" in shown and "assignments" not in shown


def test_an_unknown_assignment_is_answered_with_those_there_are():
    with pytest.raises(ValueError, match="there is no assignment 'nothing'; there are .*decomposition"):
        public_tests("nothing")
