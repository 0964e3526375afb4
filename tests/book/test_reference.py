"""The reference: every public name in one task, read from the sources alone, and reached from the pages' code."""

import ast
import importlib
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import flbook
from flbook.book import kinds, reference
from flbook.book.definitions import LIBRARY, definition

ROOT = Path(__file__).parents[2]
TASKS = reference.read(ROOT)
ENTRIES = {entry.name: entry for task in TASKS for entry in reference.entries(task)}
PAGE = reference.as_page(ROOT)


def test_every_public_name_serves_a_task():
    missing = reference.unplaced(TASKS)
    assert not missing, f"{', '.join(missing)}: public, so name the task of each in lib/flbook/book/reference.toml"


def test_a_name_stands_in_one_task():
    counted = Counter(name for task in TASKS for name in task.names.split())
    assert not [name for name, count in counted.items() if count > 1]
    places = Counter(entry.place for entry in ENTRIES.values())
    assert not [place for place, count in places.items() if count > 1], "one thing under two names"


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_what_it_says_to_import_can_be_imported(name):
    scope = {}
    exec(ENTRIES[name].imported, scope)
    found = eval(ENTRIES[name].called, scope)
    parts = Path(ENTRIES[name].place.file).with_suffix("").parts
    home = importlib.import_module(".".join(parts).removesuffix(".__init__"))
    whole = ENTRIES[name].place.line == 1
    assert found is (home if whole else getattr(home, ENTRIES[name].called.rpartition(".")[2]))


def docs(name: str) -> str:
    """The docstring of a public name; of a value that of its class, of a module those of all that it offers."""
    place = definition("flbook", name)
    tree = ast.parse((LIBRARY / place.file).read_text())
    if place.line == 1:
        return "".join(ast.get_docstring(node) or "" for node in tree.body if isinstance(node, ast.FunctionDef))
    node = next(node for node in tree.body if node.lineno == place.line)
    if isinstance(node, ast.Assign):
        of = ast.unparse(node.value).partition("(")[0]
        node = next(node for node in tree.body if getattr(node, "name", "") == of)
    return (ast.get_docstring(node) or "") + (ast.get_docstring(tree) or "" if name in ("Experiment", "Grid") else "")


@pytest.mark.parametrize("name", sorted(flbook.PUBLIC))
def test_a_public_name_has_an_example(name):
    """Which runs, as tests/test_doctests.py holds."""
    assert ">>> " in docs(name)


def test_every_entry_has_an_address_and_says_something():
    ids = re.findall(r'<h3 class="reference" id="([^"]+)"', PAGE)
    assert ids == list(ENTRIES)
    for part in PAGE.split('<h3 class="reference" id="')[1:]:
        said = re.sub(r"(?s)```\{raw\} html.*?```|^.*?```\n", "", part, count=1)
        assert len(re.sub(r"(?s)```.*?```", "", said).split()) >= 3, part[:80]


@pytest.mark.parametrize(("docstring", "lines"), [
    ("A number ``x`` of `f`, :math:`a_1 < b`.", ["A number `x` of `f`, $a_1 < b$."]),
    ("As ``{doc}`x```.", ["As `` {doc}`x` ``."]),
    ("So:\n\n.. math:: a = b,\n          c\n\nand on.", ["So:", "$$", "a = b, c", "$$", "and on."]),
    ("Two\n\n- one *star*\n  goes on\n- two", ["Two", r"- one \*star\* goes on", "- two"]),
    ("As::\n\n    x   y\n\nend", ["As:", "```text", "x   y", "```", "end"]),
])
def test_text_of_a_docstring_is_set_as_myst(docstring, lines):
    assert [line for line in reference.prose(docstring) if line] == lines


def test_parts_of_a_docstring():
    doc = ("Sum.\n\nParameters\n----------\na, b\n    Two\n    lines.\n\nSource: A paper,\nin two lines.\n\n"
           "Examples\n--------\n>>> 1\n1\n")
    parts = reference.sections(doc)
    assert list(parts) == ["", "Parameters", "Examples", "Source"]
    assert reference.items(parts["Parameters"]) == [("a, b", "Two\n    lines.")]
    assert (parts[""], parts["Source"]) == ("Sum.", "A paper,\nin two lines.")


@pytest.mark.parametrize(("source", "said"), [
    ("def f(a: int, *, b: str = 'x') -> int: ...", "f(a, *, b='x')"),
    ("class C:\n    def __init__(self, a: int): ...", "C(a)"),
    ("class C:\n    a: int\n    b: float = 1.0\n    c: ClassVar[int] = 2", "C(a, b=1.0)"),
    ("relu = Power(1.0)", "relu = Power(1.0)"),
])
def test_signatures(source, said):
    node = ast.parse(source).body[0]
    assert reference.signature(node, said.partition("(")[0].partition(" ")[0]) == said


def test_a_name_that_the_library_lacks_is_one_sentence():
    with pytest.raises(ValueError, match="reference.toml, 'T': the library has no observe.nothing."):
        reference.entries(reference.Task("T", "says", "agop observe.nothing"))


def test_it_is_made_without_any_package(tmp_path):
    out = str(tmp_path / "r.md")
    code = f"import runpy, sys; sys.path.insert(0, {str(ROOT / 'lib')!r}); sys.argv[1:] = [{out!r}]; "
    code += "runpy.run_module('flbook.book.reference', run_name='__main__')"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and (tmp_path / "r.md").read_text() == PAGE


def test_your_own_network_takes_fewer_than_fifty_lines(notebooks):
    page = next(page for page in notebooks if page.name == "book/your_own")
    assert "fewer than fifty lines" in page.text
    code = "\n".join(kinds.visible(page.cells))
    assert len([line for line in code.splitlines() if line.strip()]) < 50
    assert "class Net(nn.Module)" in code and "observe." in code


def test_the_code_of_every_lecture_leads_there(built, lectures):
    addresses = set(re.findall(r'<h3 class="reference" id="([^"]+)"', (built / "book/reference.html").read_text()))
    assert addresses == set(ENTRIES)
    for lecture in lectures:
        text = (built / f"{lecture.name}.html").read_text()
        found = re.findall(r'<a class="defined" href="\.\./reference\.html#([^"]+)"', text)
        assert found and set(found) <= addresses, lecture.name


def test_an_address_is_shown_and_opens_by_keyboard(browser, built):
    tab = browser.new_page()
    tab.goto((built / "book/reference.html").as_uri() + "#agop")
    tab.wait_for_function("() => Math.abs(document.getElementById('agop').getBoundingClientRect().top) < 300")
    fold = tab.locator("h3#agop ~ details").first
    example = fold.locator("pre").first
    assert not example.is_visible()
    fold.locator("summary").press("Enter")
    example.wait_for(state="visible", timeout=3000)
    tab.close()
