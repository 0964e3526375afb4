"""The house: an import points only downwards; what one lecture uses lives in its folder, what several of one chapter
use in that chapter's `shared`, and what two chapters use is core."""

import ast
import json
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]
ROOT = TOP / "lib" / "flbook"
LAYERS = (
    {"shapes", "rng", "devices", "domains", "hermite", "fits", "runs", "claims"},
    {"data", "models", "theory", "estimators"},  # siblings: none imports another
    {"training"},
    {"dynamics", "measures", "observe", "rivals"},
    {"lectures"},
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
BESIDE = {"plots", "book", "course", "report"}  # what shows results, and what asks for them
ENTRY = {"__init__", "__main__", "deprecation"}  # these import what they need when they need it
WITHOUT_TORCH = ["", "domains", "fits", "hermite", "plots", "book", "claims.check", "runs", "runs.files", "theory",
                 "course.grading", "__main__"]
FILES = {path.relative_to(ROOT).with_suffix("").parts: path for path in sorted(ROOT.rglob("*.py"))}
PACKAGES = {parts[:-1] for parts in FILES if parts[-1] == "__init__"}


@cache
def imported(path: Path, top_only: bool = False) -> frozenset[tuple[str, ...]]:
    """What a file of Python or a notebook imports, as paths: ("torch",), ("flbook", "data", "signal_noise", "Sample").

    Names that a package re-exports are followed home; so are those that it is asked for by a dot.
    """
    tree = tree_of(path)
    found, packages = set(), {"flbook": ()}
    for node in tree.body if top_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {tuple(alias.name.split(".")) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path.name}, line {node.lineno}: imports are absolute here"
            for alias in node.names:
                full = (*node.module.split("."), alias.name)
                found.add(home(full))
                if full[0] == "flbook" and full[1:] in PACKAGES:
                    packages[alias.asname or alias.name] = full[1:]
    for node in () if top_only else ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in packages:
            found.add(home(("flbook", *packages[node.value.id], node.attr)))
    return frozenset(found)


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a file of Python or a notebook; an empty one where it is neither, which its own tests say."""
    try:
        return ast.parse(_code_of(path) if path.suffix == ".ipynb" else path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def _code_of(notebook: Path) -> str:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return "\n".join(line.replace("%pip", "pass  # %pip") if line.lstrip().startswith("%") else line
                     for line in code.splitlines())


@cache
def public_names() -> dict[str, str]:
    """What ``flbook.NAME`` gives, and the module that it is in."""
    return next(ast.literal_eval(node.value) for node in ast.parse(FILES["__init__",].read_text()).body
                if isinstance(node, ast.Assign) and node.targets[0].id == "PUBLIC")


@cache
def home(path: tuple[str, ...]) -> tuple[str, ...]:
    """Where a name comes from that a package only hands on."""
    own, name = path[1:-1], path[-1]
    if path[0] != "flbook" or own not in PACKAGES or path[1:] in FILES or path[1:] in PACKAGES:
        return path
    if not own:
        table = public_names()
        return home((*table[name].split("."), name)) if name in table else path
    for node in tree_of(FILES[(*own, "__init__")]).body:
        if isinstance(node, ast.ImportFrom) and name in {alias.asname or alias.name for alias in node.names}:
            return home((*node.module.split("."), name))
    return path


def file_of(path: tuple[str, ...]) -> tuple[str, ...] | None:
    """The file of flbook that an imported path stands in."""
    if path[0] != "flbook":
        return None
    for end in range(len(path), 1, -1):
        if path[1:end] in FILES:
            return path[1:end]
        if path[1:end] in PACKAGES and end >= len(path) - 1:
            return (*path[1:end], "__init__")
    return None


def files_of(path: Path) -> set[tuple[str, ...]]:
    """The files of flbook that a file imports."""
    return {file_of(found) for found in imported(path)} - {None}


def test_every_module_has_a_place():
    assert {parts[0] for parts in FILES} <= LEVEL.keys() | BESIDE | ENTRY


@pytest.mark.parametrize("parts", [p for p in FILES if p[0] in LEVEL], ids="/".join)
def test_imports_point_downwards(parts):
    here, names = LEVEL[parts[0]], {path[0] for path in files_of(FILES[parts])} - {parts[0]}
    draws = lecture_of(parts) and parts[-1].endswith("_pictures") or parts == ("runs", "explore")
    names -= {"plots"} if draws else set()
    assert all(LEVEL.get(name, 9) <= here for name in names), names
    siblings = {name for name in names if LEVEL[name] == here}
    assert here != 1 or not siblings, f"data, models, theory and estimators are siblings: {siblings}"


@pytest.mark.parametrize("parts", [p for p in FILES if p[0] in LEVEL and p[0] != "runs"], ids="/".join)
def test_imports_stand_at_the_top(parts):
    """One inside a function hides a circle: what both files need belongs into a third."""
    tree = ast.parse(FILES[parts].read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inside = [node for function in functions for node in ast.walk(function) if isinstance(node, ast.ImportFrom)]
    assert not [node.module for node in inside if "flbook" in node.module]


def lecture_of(parts: tuple[str, ...]) -> str | None:
    """The lecture in whose folder a file lies."""
    return "/".join(parts[1:3]) if parts[0] == "lectures" and len(parts) > 3 and parts[2] != "shared" else None


def shared_by(parts: tuple[str, ...]) -> str | None:
    """The chapter in whose `shared` a file lies."""
    return parts[1] if parts[0] == "lectures" and parts[2:3] == ("shared",) else None


COMMANDS = "the command line"


def reach() -> dict[tuple[str, ...], set[str]]:
    """For every file of the library, the lectures that use it: in their folder, on their page, or through other files.

    The command line is a user too.
    """
    users = {parts: set() for parts in FILES}
    pages = {page.relative_to(TOP / "book").with_suffix("").as_posix(): page for page in (TOP / "book").rglob("*.ipynb")
             if not {".ipynb_checkpoints", "assignments"} & set(page.parts)}
    pages[COMMANDS] = FILES["__main__",]
    for lecture, page in pages.items():
        todo = [*files_of(page), *(parts for parts in FILES if lecture_of(parts) == lecture)]
        seen = set()
        while todo:
            parts = todo.pop()
            if parts in seen or lecture_of(parts) not in (None, lecture):
                continue
            seen.add(parts)
            if parts[-1] != "__init__" or parts[0] in ("lectures", "plots", "book"):
                todo += files_of(FILES[parts])
        for parts in seen:
            users[parts].add(lecture)
    return users


USERS = reach()
CORE = [parts for parts in FILES if parts[0] in LEVEL and parts[0] != "lectures" and parts[-1] != "__init__"]


SHARED = [parts for parts in FILES if shared_by(parts) and parts[-1] != "__init__"]
PUBLIC = {file_of(home(("flbook", name))) for name in public_names()}


def chapters(parts: tuple[str, ...]) -> set[str]:
    """The chapters that use a file."""
    return {user.partition("/")[0] for user in USERS[parts]}


@pytest.mark.parametrize("parts", CORE, ids="/".join)
def test_what_one_chapter_uses_lives_there(parts):
    """A file of the core serves two chapters, directly or through other files, or the command line, or it is public."""
    users = USERS[parts]
    assert len(chapters(parts)) >= 2 or COMMANDS in users or parts in PUBLIC, (
        f"it serves {users or 'tests only'}: it belongs into that lecture's folder, or into the chapter's `shared`")


@pytest.mark.parametrize("parts", SHARED, ids="/".join)
def test_what_a_chapter_shares_serves_two_of_its_lectures_and_nobody_else(parts):
    assert len(USERS[parts]) >= 2, f"it serves {USERS[parts] or 'tests only'}: it belongs into that lecture's folder"
    assert chapters(parts) == {shared_by(parts)}, f"it serves {USERS[parts]}: it is core"


def test_every_public_file_is_in_the_core():
    assert PUBLIC <= {*CORE, *(parts for parts in FILES if parts[0] in BESIDE)}, "a public name is no lecture's"


@pytest.mark.parametrize("parts", [p for p in FILES if p[0] not in ("lectures", "book")], ids="/".join)
def test_the_core_names_no_lecture(parts):
    """Not even as a string: it is given an experiment."""
    assert "flbook.lectures" not in FILES[parts].read_text(encoding="utf-8")


@pytest.mark.parametrize("parts", [p for p in FILES if p[0] in LEVEL], ids="/".join)
def test_nothing_computes_with_pictures(parts):
    assert not [path for path in files_of(FILES[parts]) if path[-1].endswith("_pictures")]


@pytest.mark.parametrize("parts", [p for p in FILES if p[0] == "lectures"], ids="/".join)
def test_no_lectures_folder_imports_another(parts):
    used = files_of(FILES[parts])
    assert not {lecture_of(path) for path in used} - {None, lecture_of(parts)}
    assert not {shared_by(path) for path in used} - {None, parts[1]}, "another chapter's: it is core"


@pytest.mark.parametrize("parts", [p for p in FILES if lecture_of(p) and p[-1] != "__init__"], ids="/".join)
def test_what_lies_in_a_lectures_folder_is_used_there(parts):
    assert USERS[parts] or "class Setting" in FILES[parts].read_text(encoding="utf-8"), "only tests use it"


def test_two_files_never_share_a_name():
    stems = Counter(parts[-2] if parts[-1] == "__init__" else parts[-1] for parts in FILES
                    if len(parts) > 1 and (parts[-1] != "__init__" or lecture_of(parts)))
    assert not [stem for stem, count in stems.items() if count > 1]


def test_two_classes_never_share_a_name():
    names = Counter(node.name for path in FILES.values() for node in ast.parse(path.read_text("utf-8")).body
                    if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))
    assert not [name for name, count in names.items() if count > 1 and name != "Setting"]


def test_no_part_of_a_lecture_hides_behind_a_name_of_its_experiment():
    """`lecture.gates` is the file or what the experiment calls so, not one of them by turns."""
    for parts in [p for p in FILES if lecture_of(p) and p[-1] == "__init__"]:
        stems = {other[-1] for other in FILES if other[:-1] == parts[:-1]}
        tree = ast.parse(FILES[parts].read_text(encoding="utf-8"))
        names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        assert not names & stems, "/".join(parts)


@pytest.mark.parametrize("name", WITHOUT_TORCH)
def test_importing_it_loads_no_torch(name):
    module = f"flbook.{name}".rstrip(".")
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
