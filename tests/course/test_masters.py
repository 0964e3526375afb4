"""Masters with a defect are refused in one sentence, before anything is written."""

import json
import subprocess
import sys

import nbformat
import pytest
from answers import MASTERS, ROOT

from flbook.course import handouts, masters

GOOD = MASTERS["decomposition"]


def changed(tmp_path, old: str, new: str):
    """The first assignment's master with other words somewhere, as the only one of a folder."""
    nb = nbformat.read(GOOD, as_version=4)
    cells = [cell for cell in nb.cells if old in cell.source]
    assert cells
    for cell in cells:
        cell.source = cell.source.replace(old, new)
    nbformat.write(nb, tmp_path / "own.ipynb")
    return tmp_path / "own.ipynb"


DEFECTS = [
    ("BEGIN SOLUTION\n    basis", "nothing\n    basis", "q1: the question has no solution"),
    ("points: 5", "points: 6", "q1: the points of the tests are 5, those of the question 6"),
    ("hidden: true", "hidden: false", "q1: no test is hidden"),
    ('failure_message: "The shapes must be (k,) for', 'success_message: "', "test_shapes has no failure_message"),
    (
        "np.eye(40)[1:6])\n    assert found",
        "np.eye(40)[GRADING_SEED])\n    assert found",
        "it may not know GRADING_SEED",
    ),
    ("def test_shapes(coefficients):", "x = 1", "a test is a function under its settings"),
    ("points: 5", "points: 5\nall_or_nothing: true", "q1: all_or_nothing is not known here"),
    ("# END QUESTION", "# the rest", "q1: a question does not end"),
    ("# BEGIN QUESTION", "# a question", "a question ends that did not begin"),
    ("Return $\\gamma$, of shape", "raw = np.linalg.lstsq(basis.T, move.T, rcond=None)[0].T", "would show 'raw ="),
]


@pytest.mark.parametrize(("old", "new", "said"), DEFECTS, ids=[said for *_, said in DEFECTS])
def test_a_defect_is_named(tmp_path, old, new, said):
    with pytest.raises(ValueError, match="the master own") as error:
        handouts.make(changed(tmp_path, old, new))
    assert said in str(error.value)


def test_nothing_is_written_where_one_master_has_a_defect(tmp_path):
    """The good one beside it comes first, and its files stay as they were, too."""
    checkout, own = tmp_path / "checkout", tmp_path / "masters"
    (checkout / "book/assignments").mkdir(parents=True)
    (checkout / "_toc.yml").write_text("root: book/index\n")
    own.mkdir()
    own.joinpath("a_good_one.ipynb").write_text(GOOD.read_text())
    changed(own, "points: 5", "points: 6")
    answer = command("handouts", "--masters", str(own), cwd=checkout)
    assert answer.returncode == 2
    assert answer.stderr.count("\n") == 1 and "the master own, q1: the points" in answer.stderr
    assert [path for path in checkout.rglob("*") if path.is_file()] == [checkout / "_toc.yml"]


def command(module: str, *arguments: str, cwd) -> subprocess.CompletedProcess:
    run = [sys.executable, "-m", f"flbook.course.{module}", *arguments]
    return subprocess.run(run, cwd=cwd, capture_output=True, text=True, timeout=120)


def test_what_is_no_notebook_is_no_master(tmp_path):
    tmp_path.joinpath("own.ipynb").write_text("dear students")
    with pytest.raises(ValueError, match="the master own is no notebook"):
        masters.read(tmp_path / "own.ipynb")


@pytest.mark.parametrize("given", ["nowhere", "empty"])
def test_a_folder_without_masters_is_refused(tmp_path, given):
    tmp_path.joinpath("empty").mkdir()
    answer = command("handouts", "--masters", str(tmp_path / given), cwd=ROOT)
    assert answer.returncode == 2 and "MASTERS must" in answer.stderr and answer.stderr.count("\n") == 1


def test_an_unknown_name_is_answered_with_those_there_are(tmp_path):
    answer = command("grading", "decompositon", str(tmp_path), cwd=ROOT)
    assert answer.returncode == 2
    assert "there is no assignment 'decompositon'; there are" in answer.stderr and "capstone" in answer.stderr
    assert answer.stderr.count("\n") == 1 and not list(tmp_path.iterdir())


def test_no_folder_named_is_not_the_folder_where_we_are():
    answer = command("grading", "decomposition", "", cwd=ROOT)
    assert answer.returncode == 2 and "SUBMISSIONS must be a folder" in answer.stderr


def test_a_seed_below_zero_is_refused():
    with pytest.raises(ValueError, match="SEED must be a whole number from 0 on; it was -1"):
        handouts.make(GOOD, -1)


def test_an_archive_carries_no_day_and_only_the_seed_changes_it():
    one, same, other = (handouts.make(GOOD, seed) for seed in (1, 1, 2))
    assert one == same
    assert one.archive != other.archive and one.notebook == other.notebook and one.public == other.public
    assert json.loads(one.notebook)["metadata"]["otter"]["assignment_name"] == "decomposition"
