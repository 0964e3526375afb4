"""Symbols: every name in code is one that the library has, and on no page does a symbol have two rows.

A row stands on the notation page, or in the folded table "Symbols of this page" of a lecture.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = re.compile(r"^\| *(\$[^|]+?) *\|[^|]*\| *([^|]*?) *\|", re.M)
CHAPTERS = ("signal_noise", "training_strategies", "foundation_models")  # that are held
SAME = {  # one meaning that the pages of a chapter say in different words
    "training_strategies": {
        "a": "a filter's response to the signal",
        "a_u": "a filter's response to the feature u",
        "a_v": "a filter's response to the feature v",
        "u_i": "a filter's response to the noise of sample i",
        "X_i": "minus the derivative of a sample's loss",
        r"\tau": "SAM's radius",
        r"\varsigma(z)=1/(1+e^{-z})": "logistic function",
    },
    "foundation_models": {
        r"\epsilon": "the noise that a network predicts",
        r"\lambda": "level of the degrees of freedom",
        "B": "budget: features per layer",
    },
}
APART = re.compile(r"[,;]\s*(?=\$)")  # between the symbols of one row


def rows(text: str) -> list[tuple[str, str]]:
    """Symbols and names in code of a page's tables."""
    return ROWS.findall(text)


def symbols(text: str) -> list[str]:
    """The symbols of all rows, one by one."""
    return [symbol for cell, _ in rows(text) for symbol in APART.split(cell)]


@pytest.fixture(scope="module")
def notation(pages) -> str:
    return next(page for page in pages if page.name == "book/notation").text


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


def test_every_name_in_code_exists(notation, lectures):
    texts = [notation, *(page.symbols for page in lectures)]
    code = [name for text in texts for _, column in rows(text) for name in re.findall(r"`([^`]+)`", column)]
    assert len(code) > 100
    plain = {re.sub(r"\(.*", "", name).rpartition(".")[2] for name in code}
    assert plain - {"cnn"} <= names_of_the_library()


def test_the_notation_page_is_short(notation):
    assert 30 <= len(rows(notation)) <= 60


def test_a_lecture_has_few_symbols_of_its_own(lecture):
    assert len(rows(lecture.symbols)) <= 12


def test_no_symbol_has_two_rows(lecture, notation):
    found = symbols(notation) + symbols(lecture.symbols)
    assert sorted(found) == sorted(set(found))


def meanings(text: str) -> dict[str, str]:
    """What each symbol of a page's tables is, in words; of several in one row, all have the row's words."""
    found = re.findall(r"^\| *(\$[^|]+?) *\| *([^|]*?) *\|", text, re.M)
    parts = [(part.partition(" = ")[0].strip("$ ") if " of " not in part else part, words)
             for cell, words in found for part in APART.split(cell)]
    return dict(parts)


def conflicts(tables: dict[str, str], chapter: str) -> dict[str, dict[str, str]]:
    """Symbols of a chapter's pages to which two of them give different meanings, with these."""
    told: dict[str, dict[str, str]] = {}
    for name, table in tables.items():
        for symbol, words in meanings(table).items():
            told.setdefault(symbol, {})[name] = words
    return {symbol: said for symbol, said in told.items()
            if len(set(said.values())) > 1 and symbol not in SAME.get(chapter, {})}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_within_a_chapter_a_symbol_has_one_meaning(lectures, chapter):
    pages = {page.name: page.symbols for page in lectures if page.source.parent.name == chapter}
    assert len(pages) > 1
    assert conflicts(pages, chapter) == {}
    assert all(len(rows(table)) <= 10 for table in pages.values())


def test_two_meanings_of_a_symbol_are_found():
    one, other = "| $\\tau$, $s = 2t$ | SAM's radius | | |", "| $\\tau$ | memory | | |\n| $u$ | a response | | |"
    assert conflicts({"one": one, "other": other}, "any") == {"\\tau": {"one": "SAM's radius", "other": "memory"}}
    assert conflicts({"one": one, "same": one}, "any") == {}
