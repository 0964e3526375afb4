"""The book as the tests see it: its pages from _toc.yml, its stored notebooks, what was built, and a browser."""

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest
import yaml
from headless import missing

from flbook.book.lectures import bibliography as keys

ROOT = Path(__file__).parents[2]
HTML = ROOT / "_build" / "html"


@dataclass(frozen=True)
class Page:
    """A page of the book, under its name in _toc.yml."""

    name: str

    @property
    def source(self) -> Path:
        path = ROOT / f"{self.name}.ipynb"
        return path if path.exists() else path.with_suffix(".md")

    @property
    def html(self) -> Path:
        return HTML / f"{self.name}.html"

    @cached_property
    def cells(self) -> list[dict]:
        """The cells of a notebook, their sources as one string; none where it cannot be read.

        So its own tests fail, test_it_is_a_notebook first, and nobody else's.
        """
        try:
            cells = json.loads(self.source.read_text())["cells"]
            return [{"outputs": [], **cell, "source": "".join(cell["source"])} for cell in cells]
        except (OSError, ValueError, KeyError, TypeError):
            return []

    @cached_property
    def text(self) -> str:
        """What a person wrote as Markdown."""
        if self.source.suffix == ".md":
            return self.source.read_text()
        return "\n\n".join(cell["source"] for cell in self.cells if cell["cell_type"] == "markdown")

    @property
    def symbols(self) -> str:
        """The folded table of a lecture's own symbols, or nothing."""
        titled = "{admonition} Symbols of this page"
        return next((cell["source"] for cell in self.cells if titled in cell["source"].partition("\n")[0]), "")

    @property
    def code(self) -> list[dict]:
        return [cell for cell in self.cells if cell["cell_type"] == "code" and cell["source"].strip()]

    @property
    def outputs(self) -> list[dict]:
        return [output for cell in self.code for output in cell["outputs"]]

    @property
    def claims(self) -> list[dict]:
        records = (output.get("metadata", {}).get("flbook", {}) for output in self.outputs)
        return [record for record in records if record.get("kind") in ("claim", "identity")]


def listed(entry: dict) -> list[str]:
    """Every page that a part of _toc.yml names, in order."""
    own = [entry[key] for key in ("root", "file") if key in entry]
    below = [item for key in ("parts", "chapters", "sections") for item in entry.get(key, ())]
    return own + [name for item in below for name in listed(item)]


PAGES = [Page(name) for name in listed(yaml.safe_load((ROOT / "_toc.yml").read_text()))]
ASSIGNMENTS = [page for page in PAGES if page.source.parent == ROOT / "book/assignments"]  # they wait for answers
NOTEBOOKS = [page for page in PAGES if page.source.suffix == ".ipynb" and page not in ASSIGNMENTS]
LECTURES = [page for page in NOTEBOOKS if page.source.parent != ROOT / "book"]  # in a chapter's folder


def pytest_generate_tests(metafunc):
    kinds = {"lecture": LECTURES, "notebook": NOTEBOOKS, "page": PAGES}
    for fixture, pages in kinds.items():
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, pages, ids=[page.name.removeprefix("book/") for page in pages])


@pytest.fixture(scope="session")
def lectures() -> list[Page]:
    return LECTURES


@pytest.fixture(scope="session")
def asking() -> list[Page]:
    """Lectures whose predictions the page turns into choices."""
    return [page for page in LECTURES if re.search(r"^:class:.* predict.* answer-", page.text, re.M)]


@pytest.fixture(scope="session")
def checked() -> list[Page]:
    """Lectures with a closed section of checks."""
    return [page for page in LECTURES if re.search(r"^## Checks", page.text, re.M)]


@pytest.fixture(scope="session")
def notebooks() -> list[Page]:
    return NOTEBOOKS


@pytest.fixture(scope="session")
def pages() -> list[Page]:
    return PAGES


@pytest.fixture(scope="session")
def bibliography() -> set[str]:
    return keys(ROOT / "book")


@pytest.fixture(scope="session")
def glue(lectures) -> dict[str, set[str]]:
    """The names that each lecture glues."""
    named = {}
    for page in lectures:
        records = (output.get("metadata", {}).get("scrapbook", {}) for output in page.outputs)
        named[page.name] = {record["name"] for record in records if record}
    return named


@pytest.fixture(scope="session")
def built() -> Path:
    """The built book, if there is one and no page was written since."""
    stamp = HTML / ".built"
    if not stamp.exists():
        missing("the book is not built here: run `make book`")
    made = ("ledger.md", "differences.md", "theorems.md", "reference.md", "atlas.md")  # by the build
    sources = [page.source for page in PAGES if page.source.name not in made]
    newer = [path.name for path in sources if path.stat().st_mtime > stamp.stat().st_mtime]
    if newer:
        missing(f"the built book is older than {newer[0]}: run `make book`")
    return HTML


@pytest.fixture(scope="module")
def browser(built, chromium):
    """The browser, once there is a book to open."""
    return chromium
