"""What a run leaves out: nothing unknown, nothing numeric in `make kernels`, nothing of a lecture that is asked for."""

import os
import subprocess
import sys
from pathlib import Path

import chosen
import pytest

TESTS = Path(__file__).parent


def test_every_folder_and_file_is_said_to_be_numeric_or_not():
    there = {path.name for path in TESTS.iterdir() if path.name not in ("__pycache__", "conftest.py", "support")}
    assert chosen.NUMERIC | {name for name in chosen.EXACT if "/" not in name} == there, "name it in support/chosen.py"
    assert not chosen.NUMERIC & chosen.EXACT
    assert all((TESTS / name).exists() for name in chosen.EXACT)


@pytest.mark.parametrize("name, numeric", [("lectures/test_contract.py", True), ("lectures/test_refusals.py", False),
                                           ("lectures/a/b/test_new.py", True), ("plots/explore/test_new.py", False)])
def test_the_closest_list_decides(name, numeric):
    assert chosen.numeric(TESTS / name) is numeric


@pytest.mark.parametrize("case, theirs", [
    ("", False), ("benign_overfitting/xor", True), ("benign_overfitting/xor-first", True),
    ("chromium-benign_overfitting/xor", True), ("benign_overfitting/xor_one_patch", True),  # beside it in its folder
    ("lectures/benign_overfitting/xor/xor_gram", True), ("benign_overfitting/xor_of_another", False),
    ("benign_overfitting/relu_heatmap", False)])
def test_the_cases_of_one_lecture(case, theirs):
    assert chosen.about("benign_overfitting/xor", TESTS / "book" / "test_notebooks.py", case) is theirs
    assert chosen.about("benign_overfitting/xor", TESTS / "lectures/benign_overfitting/xor/test_own.py", case)


def collected(*arguments: str, **environment: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *arguments]
    done = subprocess.run(command, cwd=TESTS.parent, env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()


def test_numeric_tests_alone_are_collected():
    *names, _, summary = collected("-m", "numeric", "tests/theory", "tests/course")
    assert {name.partition("/test_")[0] for name in names} == {"tests/theory"}
    assert "deselected" not in summary, "what is not numeric is not even imported"


def test_one_lecture_alone_is_collected():
    files = ["tests/test_hermite.py", "tests/lectures/test_refusals.py", "tests/lectures/benign_overfitting/xor"]
    *names, _, _ = collected(*files, FLBOOK_LECTURES="benign_overfitting/xor")
    assert {name.partition("/test_")[0] for name in names} == {"tests/lectures", files[-1]}
    assert all("benign_overfitting/xor" in name for name in names)
