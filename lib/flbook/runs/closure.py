"""The import closure of a file: what its code may run through, of flbook and of the files beside it.

Read from the syntax, never executed. A file is in the closure when a name is imported from it, or it is imported
itself; a package that is only passed through (`a` and `a.b` in ``from a.b.c import x``) is not, so a list in its
``__init__`` may grow. Names that `flbook` resolves on first use (its ``PUBLIC``) are followed to their home. Not seen:
installed packages, data files, and imports by a name that is computed; these are listed by `unseen`.
"""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parent.parent
LOOK_ONLY = [PACKAGE / name for name in ("plots", "book", "course", "claims", "runs/explore.py")]  # change no number


class Source(NamedTuple):
    """A file as it was first read: digest, modules asked for as (module, names), lines of computed imports, time."""

    sha256: str
    imports: tuple[tuple[str, tuple[str, ...]], ...]
    unseen: tuple[int, ...]
    changed: int


def closure(file: Path) -> tuple[Path, ...]:
    """The files that the code of `file` may run through, itself included, sorted.

    Parameters
    ----------
    file
        A Python file.

    Returns
    -------
    tuple[Path, ...]
        Absolute paths, without those of `LOOK_ONLY`, which change no number.
    """
    found, todo = set(), [file.resolve()]
    while todo:
        one = todo.pop()
        if one not in found and not any(place == one or place in one.parents for place in LOOK_ONLY):
            found.add(one)
            todo += _targets(one, _root(file))
    return tuple(sorted(found))


def digest(files: tuple[Path, ...]) -> str:
    """Sixteen hexadecimal digits of the contents of files, at whatever place they lie, as they were first read.

    Parameters
    ----------
    files
        Those of a closure, and data files.

    Returns
    -------
    str
        The same on every machine.
    """
    lines = sorted(f"{_name(file)} {read(file).sha256}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:16]


def edited(files: tuple[Path, ...]) -> list[Path]:
    """Those of the files that have changed on disk since they were first read.

    Parameters
    ----------
    files
        Those of a closure.

    Returns
    -------
    list[Path]
        Empty if none has changed.
    """
    return [file for file in files if not file.exists() or file.stat().st_mtime_ns != read(file).changed]


def unseen(files: tuple[Path, ...]) -> list[str]:
    """Where a module is imported by a computed name, as ``file:line``; in files of flbook a test looks for that.

    Parameters
    ----------
    files
        Those of a closure.

    Returns
    -------
    list[str]
        Empty if every import names its module.
    """
    return [f"{file.name}:{line}" for file in files if PACKAGE not in file.parents for line in read(file).unseen]


@cache
def read(file: Path) -> Source:
    """One file's digest and imports; of a data file the digest.

    Parameters
    ----------
    file
        A Python file, or one of data.

    Returns
    -------
    Source
        As it was at the first call; a later edit is not seen.
    """
    content, changed = file.read_bytes(), file.stat().st_mtime_ns
    tree = ast.parse(content if file.suffix == ".py" else b"")
    imports, dark = [], []
    computed = b"import_module" in content or b"__import__" in content
    for node in (ast.walk if computed else _statements)(tree):
        if isinstance(node, ast.Import):
            imports += [(alias.name, ()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = file.parents[node.level - 1].resolve().as_posix() if node.level else ""
            module = f"{package}:{node.module or ''}" if node.level else node.module
            imports.append((module, tuple(alias.name for alias in node.names)))
        elif isinstance(node, ast.Call) and _called(node.func) in ("import_module", "__import__"):
            named = node.args[0] if node.args else None
            imports += [(named.value, ())] if isinstance(named, ast.Constant) else []
            dark += [] if isinstance(named, ast.Constant) else [node.lineno]
    return Source(hashlib.sha256(content).hexdigest(), tuple(dict.fromkeys(imports)), tuple(dark), changed)


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Every statement, at whatever depth; several times faster than every node."""
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for node in getattr(tree, part, ()):
            yield node
            yield from _statements(node)


def _called(function: ast.expr) -> str:
    return getattr(function, "attr", None) or getattr(function, "id", "")


def _targets(file: Path, root: Path) -> list[Path]:
    return [target for module, names in read(file).imports for target in _resolved(module, names, root)]


@cache
def _resolved(module: str, names: tuple[str, ...], root: Path) -> tuple[Path, ...]:
    """The files that one import statement asks for; none if it is of an installed package."""
    start, _, dotted = module.rpartition(":")
    parts = dotted.split(".") if dotted else []
    beside = [] if root == PACKAGE.parent else [root]  # beside flbook lies all else that is installed, and is not read
    places = [Path(start)] if start else [*beside, *([PACKAGE.parent] if parts[0] == PACKAGE.name else [])]
    here = [place.joinpath(*parts) for place in places]
    here = next((one for one in here if _file(one)), None) or next((one for one in here if one.is_dir()), None)
    if here is None:
        return ()
    found = [_file(here / name) or _home(here, name) for name in names]
    own = [_file(here)] if None in found or not names else []
    return tuple(dict.fromkeys(one for one in own + found if one is not None))


def _file(path: Path) -> Path | None:
    """The file of a module that would lie at this path."""
    if path.name.isidentifier() and path.with_suffix(".py").is_file():
        return path.with_suffix(".py")
    return path / "__init__.py" if (path / "__init__.py").is_file() else None


def _home(package: Path, name: str) -> Path | None:
    if package != PACKAGE:
        return None
    home = _homes().get(name)
    place = PACKAGE.parent.joinpath(*home.split(".")) if home else None
    return place and (_file(place / name) or _file(place))


@cache
def _homes() -> dict[str, str]:
    """Where flbook finds its public names, as its ``__init__`` says it."""
    tree = ast.parse((PACKAGE / "__init__.py").read_bytes())
    values = {ast.unparse(node.targets[0]): node.value for node in tree.body if isinstance(node, ast.Assign)}
    return ast.literal_eval(values["PUBLIC"])


def _root(file: Path) -> Path:
    """The folder from which a file's own imports are found: the one that is on the path when it is run."""
    return PACKAGE.parent if PACKAGE in file.resolve().parents else file.resolve().parent


def _name(file: Path) -> str:
    """The same on every machine."""
    return file.relative_to(PACKAGE).as_posix() if PACKAGE in file.parents else file.name
