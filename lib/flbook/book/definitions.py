"""Where the names of a page's code are defined: read from the sources, so that nothing is imported for it."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

LIBRARY = Path(__file__).parents[2]  # the folder that holds the package


class Definition(NamedTuple):
    """A file of the library, relative to the folder of the package, and a line of it."""

    file: str
    line: int


@cache
def _read(module: str) -> tuple[Path, ast.Module] | None:
    place = LIBRARY.joinpath(*module.split("."))
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.is_file():
            return path, ast.parse(path.read_text(encoding="utf-8"))
    return None


def _bound(statement: ast.stmt) -> list[str]:
    """Names to which an assignment at the top of a module or a class gives a value."""
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    return [node.id for target in filter(None, targets) for node in ast.walk(target) if isinstance(node, ast.Name)]


def _public(body: list[ast.stmt], name: str) -> str | None:
    """The module that a package names for a public name which it imports on first use."""
    for statement in body:
        if isinstance(statement, ast.Assign) and _bound(statement) == ["PUBLIC"]:
            return ast.literal_eval(statement.value).get(name)
    return None


def definition(module: str, *names: str) -> Definition | None:
    """Where the last of ``names`` is defined, each looked for in the one before it, the first in ``module``.

    None where the sources do not say, such as for what is set at run time.
    """
    found = _read(module)
    if not found:
        return None
    path, tree = found
    return _within(module, path, tree.body, *names) if names else Definition(str(path.relative_to(LIBRARY)), 1)


def _within(module: str, path: Path, body: list[ast.stmt], name: str, *rest: str) -> Definition | None:
    for statement in body:
        here = Definition(str(path.relative_to(LIBRARY)), statement.lineno)
        if isinstance(statement, ast.ClassDef) and statement.name == name:
            return _within(module, path, statement.body, *rest) if rest else here
        if (isinstance(statement, ast.FunctionDef) and statement.name == name) or name in _bound(statement):
            return None if rest else here
        if isinstance(statement, ast.ImportFrom) and statement.module and statement.module != module:
            for alias in statement.names:
                if (alias.asname or alias.name) == name:
                    return definition(statement.module, alias.name, *rest)
    home = _public(body, name)
    if home:
        return definition(home, name, *rest) or definition(f"{home}.{name}", *rest)
    return definition(f"{module}.{name}", *rest)


def imported(cells: list[str]) -> dict[str, tuple[str, ...]]:
    """Names that cells of code import from the package, and nothing else gives a value: module, and name in it."""
    found, given = {}, set()
    for node in (node for cell in cells for node in _parsed(cell)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "flbook":
            found |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            given.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            given.add(node.name)
    return {name: place for name, place in found.items() if name not in given}


def _parsed(cell: str) -> list[ast.AST]:
    commands = r"^(\s*)[%!].*$"  # to the notebook, which are no Python
    try:
        return list(ast.walk(ast.parse(re.sub(commands, r"\1pass", cell, flags=re.MULTILINE))))
    except SyntaxError:
        return []
