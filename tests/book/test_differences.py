"""Where measurement and expectation part: the page says what differs, what was expected otherwise, and what fell."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from flbook.book import differences, fallen, lectures
from flbook.claims import statements

ROOT = Path(__file__).parents[2]
LIB = Path(differences.__file__).parents[2]
GOOD = 'lecture = "one/first"\nexpected = "It is so"\nfound = "it is |not| so"\nthink = "haste"\ncheck = "look again"\n'
RECORD = dict(
    name="heatmap.slope", kind="claim", says="The slope in $n", headline=True, value=-0.31, theory=-0.25, z=-6.0,
    tol=0.01, seeds=None, interval=[-0.33, -0.29], holds=True, because="", differs="the law is another | one",
    command="", notebook="book/one/first.ipynb",
)  # fmt: skip


def test_it_speaks_of_what_there_is():
    known = lectures.listed(ROOT)
    assert differences.read(ROOT)
    for entry in differences.read(ROOT):
        assert entry.lecture in known, entry.expected
        for word in re.findall(r"\bclaim (\w+_\w+)", entry.check):
            assert word in statements.read(statements.path(entry.lecture)), entry.check


def test_what_differs_stands_first():
    agrees = {**RECORD, "value": -0.25, "interval": [-0.27, -0.23], "says": "Another"}
    close = {**RECORD, "differs": "", "because": "finite n", "says": "A third"}
    page = differences.as_page([RECORD, agrees, close])
    (line,) = [line for line in page.splitlines() if line.startswith("| The slope")]
    where = '[](one/first.ipynb), <a href="ledger.html#heatmap.slope">slope</a>'
    measured = f"*Measured:* \N{MINUS SIGN}0.310 ± 0.010, 6 s.e. off<br>{where}"
    assert line == f"| The slope in \\$n: \N{MINUS SIGN}0.25 | {measured} | the law is another \\| one. |"
    assert "Another" not in page and "A third" not in page and "## What fell" not in page


def test_what_was_expected_and_what_fell(tmp_path):
    for file, text in ((differences.FILE, f"[[expected]]\n{GOOD}"),):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(text)
    fell = fallen.Fallen("one/first", "It was so", "it fell", "haste", "it says so", claim="slope", seed="seed 7")
    page = differences.as_page([], differences.read(tmp_path), [fell])
    think = "*We think:* haste.<br>*To check:* look again."
    assert rf"| It is so<br>{{doc}}`one/first` | *Found:* it is \|not\| so. | {think} |" in page
    said, found = "It was so<br>{doc}`one/first`, claim `slope`", "it fell (seed 7)"
    assert f"| {said} | {found} | *Why:* haste.<br>*Now:* it says so. |" in page
    assert "## Claims that differ" not in page


@pytest.mark.parametrize(
    "entry, said",
    [
        (GOOD.replace("think", "thnik"), "entry 1: unknown key 'thnik'; known are check, expected, found"),
        (GOOD.replace('think = "haste"\n', ""), "entry 1: think is missing"),
        (GOOD.replace('"haste"', '"Haste."'), "entry 1: think is 'Haste.'; it must be text without a full stop"),
        ("expected = \n", "Invalid value"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(tmp_path, entry, said):
    path = tmp_path / differences.FILE
    path.parent.mkdir(parents=True)
    path.write_text(f"[[expected]]\n{entry}")
    with pytest.raises(ValueError, match=f"^expected.toml.*{said}") as error:
        differences.read(tmp_path)
    assert "\n" not in str(error.value)


def test_it_runs_without_any_package(tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "_toc.yml").write_text("root: book/index\n")
    code = f"import sys; sys.path.insert(0, {str(LIB)!r}); import runpy; sys.argv = ['x', 'differences.md']; "
    code += "runpy.run_module('flbook.book.differences', run_name='__main__')"
    command = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(command, cwd=tmp_path / "book", capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "book/differences.md").read_text().startswith("# Where measurement and expectation part")
