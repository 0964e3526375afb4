"""The notation page: every name in code is one that the library has, and no symbol has two rows."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = re.compile(r"^\| *(\$[^|]+?) *\|[^|]*\| *([^|]*?) *\|", re.M)


def rows() -> list[tuple[str, str]]:
    return ROWS.findall((ROOT / "book/notation.md").read_text())


def names_of_the_library() -> set[str]:
    found = set()
    for path in (ROOT / "lib/flbook").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            for kind in ("id", "attr", "arg", "name"):
                value = getattr(node, kind, None)
                found |= {value} if isinstance(value, str) else set()
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                found.add(node.value)  # names of variables and dimensions in a Dataset
    return found


def test_every_name_in_code_exists():
    code = [name for _, column in rows() for name in re.findall(r"`([^`]+)`", column)]
    assert len(code) > 20
    plain = {re.sub(r"\(.*", "", name).rpartition(".")[2] for name in code}
    assert plain - {"cnn"} <= names_of_the_library()


def test_no_symbol_has_two_rows():
    symbols = [symbol for symbol, _ in rows()]
    assert len(symbols) > 30
    assert sorted(symbols) == sorted(set(symbols))
