"""The shelf: experiments of a package by name, and those of a user's own files."""

import subprocess
import sys

import pytest

from flbook import lectures
from flbook.runs.shelf import Shelf

SHELF = Shelf(lectures)
MINE = '''"""My own experiment."""
from dataclasses import dataclass

from helper import loss

from flbook.domains import Positive
from flbook.runs import Experiment, Grid, axis


@dataclass(frozen=True)
class Setting(Grid):
    """Step sizes."""

    lr: tuple[Positive, ...] = axis([0.1, 0.2], "step size")


experiment = Experiment(Setting, version=1, loops=("lr",), gives={"loss": ("my loss", "nats")},
                        presets={"tiny": ("A blink", {"lr": (0.5,)})})


@experiment.cell
def cell(s, device):
    return {"loss": loss(s.lr)}
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with an experiment of two files, into which one has gone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLBOOK_CACHE", str(tmp_path / "cache"))
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "helper.py").write_text("def loss(lr):\n    return 10 * lr\n")
    return tmp_path


def flbook(*words):
    return subprocess.run([sys.executable, "-m", "flbook", *words], capture_output=True, text=True)


def test_listing_imports_no_experiment():
    code = ("import sys\nfrom flbook import lectures\nfrom flbook.runs.shelf import Shelf\n"
            "shelf = Shelf(lectures)\nassert all(shelf.says(name) for name in shelf.modules())\n"
            "assert 'torch' not in sys.modules and not any(n.count('.') > 2 and 'lectures' in n for n in sys.modules)")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_experiment_is_found_by_its_name_alone_or_with_its_chapter():
    one = SHELF.find("momentum")
    assert one is SHELF.find("training_strategies/momentum") and one.name == "training_strategies/momentum"
    assert SHELF.says(one.name) == "Momentum where samples share a feature but differ in their margin."


def test_a_chapter_or_a_lecture_names_all_that_it_has():
    chapter = SHELF.chosen(["training_strategies"])
    assert "training_strategies/momentum" in chapter and {name.partition("/")[0] for name in chapter} == {
        "training_strategies"}
    assert SHELF.chosen(["training_strategies/momentum"]) == SHELF.chosen(["momentum"])
    assert SHELF.chosen([]) == list(SHELF.modules())


@pytest.mark.parametrize("name, sentence", [
    ("momentun", "^no experiment is called 'momentun'; the nearest: .*training_strategies/momentum"),
    ("qqq", "^no experiment is called 'qqq'; there are "),
    ("nowhere.py", "^there is no file 'nowhere.py'$"),
])
def test_a_name_that_is_none_gets_one_sentence(name, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        SHELF.find(name)
    assert "\n" not in str(error.value)


def test_a_users_experiment_runs_and_notices_an_edit_of_its_helper(folder):
    first = flbook("run", "mine.py")
    assert first.returncode == 0 and "loss                    1 to 2" in first.stdout, first.stderr
    assert "1 of them in the cache" in flbook("run", "mine.py", "--dry-run").stdout
    (folder / "helper.py").write_text("def loss(lr):\n    return 30 * lr\n")
    assert "0 of them in the cache" in flbook("run", "mine.py", "--dry-run").stdout
    assert "loss                    3 to 6" in flbook("run", "mine.py").stdout


def test_a_users_result_is_stored_beside_the_file_and_takes_worker_processes(folder):
    done = flbook("run", "mine.py", "--scale", "tiny", "--store", "--workers", "2")
    assert done.returncode == 0 and (folder / "mine-tiny.nc").is_file(), done.stderr


def test_a_file_with_none_or_several_experiments_says_what_it_has(folder):
    (folder / "mine.py").write_text(MINE + "\nother = Experiment(Setting, version=1)\nother.cell(cell)\n")
    assert "mine.py has the experiments experiment, other; ask for one as FILE:NAME" in flbook("run", "mine.py").stderr
    assert flbook("run", "mine.py:other", "--dry-run").returncode == 0
    assert "has no experiment" in flbook("run", "helper.py").stderr
    (folder / "below").mkdir()
    (folder / "below" / "json.py").write_text(MINE)
    assert "has the name of another module, 'json'; rename it" in flbook("run", "below/json.py").stderr
