"""Import closures: an edit of what a file's code may run through is noticed, and an edit elsewhere voids nothing."""

import ast
import sys
from pathlib import Path

import pytest

from flbook import lectures
from flbook.runs import closure
from flbook.runs.shelf import Shelf


@pytest.fixture
def folder(tmp_path):
    """A user's experiment over two helpers, beside a file that nothing imports."""
    for name, text in {
        "mine.py": "import numpy\nfrom flbook import fit\nfrom helper import loss\n",
        "helper.py": "def loss():\n    from deeper import FACTOR\n    return FACTOR\n",
        "deeper.py": "FACTOR = 1\n",
        "other.py": "import mine\n",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def digest(file: Path) -> str:
    closure.read.cache_clear()
    return closure.digest(closure.closure(file))


def names(file: Path) -> set[str]:
    return {one.name for one in closure.closure(file)}


def test_it_follows_helpers_names_of_flbook_and_imports_within_functions(folder):
    found = names(folder / "mine.py")
    assert {"mine.py", "helper.py", "deeper.py", "fit.py", "optimizers.py"} <= found | {"optimizers.py"}
    assert "other.py" not in found and not {"grading.py", "ledger.py", "curves.py", "__init__.py"} & found


@pytest.mark.parametrize("edited, noticed", [("helper.py", True), ("deeper.py", True), ("mine.py", True),
                                             ("other.py", False)])
def test_an_edit_changes_the_digest_where_it_may_change_numbers(folder, edited, noticed):
    before = digest(folder / "mine.py")
    (folder / edited).write_text((folder / edited).read_text() + "\n# edited\n")
    assert (digest(folder / "mine.py") != before) == noticed


def test_the_digest_is_the_same_at_another_place(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("elsewhere")
    for file in folder.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    assert digest(folder / "mine.py") == digest(other / "mine.py")


def test_what_is_installed_beside_flbook_is_not_read(tmp_path, monkeypatch):
    """As on Colab, where every import of every package lies in the folder of flbook."""
    for name, text in {"flbook/lecture.py": "import torch\nfrom torch import nn\nfrom flbook.fits import slope\n",
                       "flbook/fits.py": "import torch.nn\n", "torch/__init__.py": "", "torch/nn.py": ""}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(closure, "PACKAGE", tmp_path / "flbook")
    monkeypatch.setattr(closure, "_homes", dict)
    assert names(tmp_path / "flbook/lecture.py") == {"lecture.py", "fits.py"}


def test_what_was_edited_after_it_was_read_is_told(folder):
    files = closure.closure(folder / "mine.py")
    closure.digest(files)
    assert not closure.edited(files)
    (folder / "deeper.py").write_text("FACTOR = 3  # longer\n")
    assert [file.name for file in closure.edited(files)] == ["deeper.py"]


def test_imports_by_a_computed_name_are_told(folder):
    (folder / "helper.py").write_text("import importlib\nname = 'deeper'\nimportlib.import_module(name)\n")
    assert closure.unseen(closure.closure(folder / "mine.py")) == ["helper.py:3"]
    (folder / "helper.py").write_text("import importlib\nimportlib.import_module('deeper')\n")
    closure.read.cache_clear()
    found = closure.closure(folder / "mine.py")
    assert not closure.unseen(found) and "deeper.py" in {file.name for file in found}


def test_flbook_imports_nothing_by_a_computed_name_but_what_is_asked_of_it():
    """The public names, which the closure follows; the shelf and the frame, which import what they are asked for."""
    dark = {file.relative_to(closure.PACKAGE).as_posix() for file in closure.PACKAGE.rglob("*.py")
            if closure.read(file).unseen and not set(closure.LOOK_ONLY) & {file, *file.parents}}
    assert dark == {"__init__.py", "runs/experiment.py", "runs/shelf.py"}


def test_a_package_that_is_passed_through_has_no_effect_on_numbers():
    """An ``__init__`` on the way to a module is not in its closure, so it may hold names, lists and imports only."""
    plain = ast.Import | ast.ImportFrom | ast.Assign | ast.Expr | ast.FunctionDef
    for file in closure.PACKAGE.rglob("__init__.py"):
        inside = [path for path in file.parent.glob("*/") if (path / "__init__.py").is_file()]
        if file.parent != closure.PACKAGE and ("lectures" not in file.parts or inside):
            tree = ast.parse(file.read_bytes())
            assert all(isinstance(node, plain) for node in tree.body), file
            done = [node.value for node in tree.body if isinstance(node, ast.Expr)]
            assert all(isinstance(value, ast.Constant) for value in done), file


@pytest.mark.parametrize("name", ["momentum"])
def test_no_code_that_a_run_goes_through_is_missed(name):
    """Every function of flbook that is called while an experiment is measured stands in a file of its closure."""
    experiment, called = Shelf(lectures).find(name), set()
    sys.setprofile(lambda frame, event, argument: called.add(frame.f_code.co_filename))
    try:
        experiment.measure("tiny")
    finally:
        sys.setprofile(None)
    ran = {Path(file) for file in called if Path(file).is_file() and closure.PACKAGE in Path(file).parents}
    assert len(ran) > 8 and ran <= set(experiment.files), ran - set(experiment.files)
