"""The library's layers: an import points only downwards, and what reads stored results does without torch."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "lib" / "flbook"
LAYERS = (
    {"shapes", "rng", "devices"},
    {"data", "models", "losses", "optimizers", "estimators"},
    {"train", "pretrain", "adaptation", "checkpoints", "dynamics", "measures", "features", "theory", "rivals"},
    {"sweep", "chunks"},
    {"experiments"},
)
BESIDE = {"settings", "fits", "plots", "results", "keynumbers", "book", "hermite"}  # these import no torch
ENTRY = {"__init__", "__main__"}  # these import what they need when they need it
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
MODULES = {path.relative_to(ROOT).with_suffix("").parts: path for path in sorted(ROOT.rglob("*.py"))}


def imported(tree: ast.Module, top_only: bool) -> set[tuple[str, ...]]:
    """What a module imports, as paths: ("torch",), ("flbook", "data", "signal_noise", "Sample")."""
    found = set()
    for node in tree.body if top_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {tuple(alias.name.split(".")) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"line {node.lineno}: imports are absolute here"
            found |= {(*node.module.split("."), alias.name) for alias in node.names}
    return found


def own(paths: set[tuple[str, ...]]) -> set[str]:
    """The parts of flbook among them."""
    return {path[1] for path in paths if path[0] == "flbook" and len(path) > 1} & (LEVEL.keys() | BESIDE)


def test_every_module_has_a_place():
    assert {parts[0] for parts in MODULES} <= LEVEL.keys() | BESIDE | ENTRY


@pytest.mark.parametrize("parts", [p for p in MODULES if p[0] in LEVEL], ids="/".join)
def test_imports_point_downwards(parts):
    here = LEVEL[parts[0]]
    below = own(imported(ast.parse(MODULES[parts].read_text()), top_only=False)) - {parts[0]} - BESIDE
    siblings = {name for name in below if LEVEL[name] == here}
    assert all(LEVEL[name] <= here for name in below), below
    assert here in (2, 3) or not siblings, f"data, models, losses, optimizers and estimators are siblings: {siblings}"


@pytest.mark.parametrize("parts", [p for p in MODULES if p[0] == "experiments"], ids="/".join)
def test_experiments_do_not_import_each_other(parts):
    paths = imported(ast.parse(MODULES[parts].read_text()), top_only=False)
    assert not [path for path in paths if path[:2] == ("flbook", "experiments")]


@pytest.mark.parametrize("parts", [p for p in MODULES if p[0] in BESIDE], ids="/".join)
def test_what_stands_beside_imports_no_torch(parts):
    paths = imported(ast.parse(MODULES[parts].read_text()), top_only=True)
    assert not [path for path in paths if path[0] in ("torch", "jaxtyping", "einops")]
    assert not own(paths) - BESIDE - {"theory"}  # closed forms, in numpy


@pytest.mark.parametrize("name", ["", *sorted(BESIDE), "sweep", "__main__"])
def test_importing_it_loads_no_torch(name):
    module = f"flbook.{name}".rstrip(".")
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
