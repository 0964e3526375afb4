"""Each assignment gives what is due: everything for the right answers, nothing for none, and its loss for each slip.

And what is handed out shows nothing of it, and is what its master makes.
"""

import json
import re
import subprocess
import sys
from collections import Counter
from functools import cache

import pytest
from answers import MASTERS, ROOT, answered, handout, outcomes, points, right, wrong_answers

from flbook.book import lectures
from flbook.course import handouts, masters, public_tests, submissions

WRONG = wrong_answers()


@pytest.mark.parametrize("seed", [masters.DEFAULT_SEED, 1, 2])
@pytest.mark.parametrize("name", MASTERS)
def test_right_answers_get_everything(name, seed):
    assert points(outcomes(right(name, seed), name, seed)) == handout(name).points


@pytest.mark.parametrize("name", MASTERS)
def test_no_answer_gets_nothing(name):
    assert set(points(outcomes(json.loads(handout(name).notebook), name)).values()) == {0}


@pytest.mark.parametrize("number", range(len(WRONG)), ids=[f"{wrong.name}: {wrong.says}" for wrong in WRONG])
def test_a_wrong_answer_gets_what_is_due(number):
    wrong = WRONG[number]
    due = handout(wrong.name).points | {wrong.question: wrong.due} | wrong.beside
    assert points(outcome(number)) == due
    assert due[wrong.question] < handout(wrong.name).points[wrong.question]


@cache
def outcome(number):
    """What a wrong answer gets among right ones."""
    wrong = WRONG[number]
    return outcomes(answered(right(wrong.name), wrong.question, wrong.answer), wrong.name)


def test_there_are_enough_wrong_answers():
    assert all(count >= 3 for count in (Counter(wrong.name for wrong in WRONG)[name] for name in MASTERS))


@pytest.mark.parametrize("name", MASTERS)
def test_each_hidden_test_fails_a_wrong_answer(name):
    """A test that no wrong answer fails tells nothing apart; its message is what the student then reads."""
    said = {text for n, wrong in enumerate(WRONG) if wrong.name == name for o in outcome(n).values() for text in o.said}
    _, questions = masters.read(MASTERS[name])
    hidden = {test.message for question in questions for test in question.tests if test.hidden}
    assert hidden <= said


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


@pytest.mark.parametrize("name", MASTERS)
@pytest.mark.parametrize("kind", ["solved", "notebook"])
def test_otter_gives_the_same(name, kind, tmp_path):
    """By ``otter run``, as on Gradescope: everything for the right answers, nothing for none."""
    made = handout(name)
    tmp_path.joinpath(f"{name}.ipynb").write_text(getattr(made, kind))
    tmp_path.joinpath("grader.zip").write_bytes(made.archive)
    command = [sys.executable, "-m", "otter", "run", "-a", "grader.zip", "-o", ".", "--no-logo", f"{name}.ipynb"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=280)
    results = json.loads(tmp_path.joinpath("results.json").read_text())
    scores = {test["name"]: test["score"] for test in results["tests"] if test["name"] in made.points}
    assert scores == (made.points if kind == "solved" else dict.fromkeys(made.points, 0))


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
