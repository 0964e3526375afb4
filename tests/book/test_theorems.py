"""The table of theorems: complete, true to the pages, and safe in a table. And what the boxes of the book lack."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from flbook.book import theorems

ROOT = Path(__file__).parents[2]
LIB = Path(theorems.__file__).parents[2]

# Statements with neither a source in the box nor a proof on the page. Write the proof; this set may only shrink.
TODO: set[str] = set()

PAGE = """\
# A page

::::{prf:theorem} On $|x|$ and a | bar
:label: thm-one
:class: wide

Let $\\|x\\| > 0$, i.e. not zero. It grows like {doc}`this <b>` (for $3.5 < q$) at the rate

$$
|x| = 1. \\quad
$$

and so on. Source: {cite}`kou2023benign,cao2022benign`, Theorem 4.2.

:::{prf:lemma} Inside another box
:::
::::

:::{prf:proof}
Trivial.
:::

```{prf:definition} Without a source
:label: def-two
A thing.
```

:::{prf:proposition}
1. First, {glue:text}`b.number` of [them](b.ipynb) for $5. More.
2. Second.
:::

:::{prf:corollary} Hearsay
:label: cor-four
It is so. As on the slides, {cite}`cao2022benign`.
:::
"""


@pytest.fixture(scope="module")
def book():
    return [box for _, inside in theorems.collect(ROOT) for box in inside]


def test_every_statement_has_a_name_that_can_be_cited(book):
    assert [(box.page, box.title) for box in book if not box.label] == []
    assert [box.label for box in book if not box.title] == []
    labels = [box.label for box in book]
    assert len(set(labels)) == len(labels) >= 40


def test_every_statement_is_proved_or_has_a_source(book):
    open_ones = {box.label for box in book if not box.cited and not box.proved}
    assert open_ones <= TODO, "a proof or a source is missing"
    assert open_ones >= TODO, "mended: take it out of TODO"


def test_what_it_cites_is_in_the_bibliography(book, bibliography):
    assert {key for box in book for key in box.cited} <= bibliography


def test_boxes_are_read():
    one, definition, third, hearsay = theorems.boxes(PAGE, "a/a")
    assert (one.kind, one.title, one.label, one.page) == ("theorem", "On $|x|$ and a | bar", "thm-one", "a/a")
    assert one.body.startswith("Let $") and one.body.endswith("Inside another box\n:::"), "options are no body"
    assert one.cited == ("kou2023benign", "cao2022benign")
    assert (one.status, hearsay.status) == (theorems.PROVED, theorems.REPORTED)
    assert (definition.kind, definition.status) == ("definition", theorems.ARGUED)
    assert (third.title, third.label, third.proved) == ("", "", False)


@pytest.mark.parametrize(
    "body, line",
    [
        ("It is so. More.", "It is so."),
        ("It is so", "It is so"),
        ("Let $x = 1$. Then $y = 2.$ holds. More.", "Let $x = 1$. Then $y = 2.$ holds."),
        ("Let $x = 1$. For all\n\n$$\ny = 2. z\n$$\n\nit holds.", "Let $x = 1$. For all …"),
        ("Under this:\n\n1. one;\n2. two.", "Under this …"),
        ("1. One. Two.", "One."),
        (
            "As shown by Kou et al. in {cite}`kou. benign` it is. So.",
            "As shown by Kou et al. in {cite}`kou. benign` it is.",
        ),
    ],
)
def test_how_a_statement_begins(body, line):
    assert theorems.beginning(body) == line


def test_a_table_keeps_its_columns():
    found = [("Part", theorems.boxes(PAGE, "a/a"))]
    page = theorems.as_page(found)
    assert page.startswith("# Theorems\n\n**4 statements: 1 proved here, 1 reported, 2 argued in the text.**")
    rows = [line for line in page.splitlines() if line.startswith("| {prf") or line.startswith("| Prop")]
    assert [len(row.replace(r"\|", "").split("|")) for row in rows] == [5, 5, 5, 5]
    assert r"{prf:ref}`thm-one`. **On $\vert x\vert $ and a \| bar**<br>Let $\Vert x\Vert  > 0$, i.e. not" in rows[0]
    assert "{doc}`this <a/b>` (for $3.5 < q$) at the rate …" in rows[0]
    assert "{cite:t}`kou2023benign`<br>{cite:t}`cao2022benign`<br>{doc}`a/a`" in rows[0]
    assert "| *proved here* |" in rows[0]
    named = theorems.as_page([("Part", theorems.boxes(PAGE, "a/a", "The topic"))])
    assert "{doc}`The topic <a/a>` |" in named
    assert rows[2].startswith(
        r"| Proposition.<br>First, {glue:text}`a/a.ipynb::b.number:s` of [them](a/b.ipynb) for \$5."
    )


def test_it_runs_without_any_package(tmp_path):
    """As in the environment that renders the pages; a definition without a source is left out."""
    (tmp_path / "_toc.yml").write_text(
        "root: book/index\nparts:\n  - caption: One\n    chapters:\n"
        "      - file: book/a/x\n      - file: book/theorems\n"
    )
    (tmp_path / "book/a").mkdir(parents=True)
    (tmp_path / "book/theorems.md").write_text(PAGE)
    (tmp_path / "book/index.md").write_text("# Front\n")
    cells = [{"cell_type": "markdown", "source": PAGE.splitlines(True), "metadata": {}}]
    (tmp_path / "book/a/x.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}}))

    def call(*arguments):
        code = f"import sys; sys.path.insert(0, {str(LIB)!r}); import runpy; sys.argv = {['x', *arguments]!r}; "
        code += "runpy.run_module('flbook.book.theorems', run_name='__main__')"
        command = [sys.executable, "-I", "-S", "-c", code]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    assert call("book/theorems.md").returncode == 0 and call("book/theorems.md").returncode == 0
    page = (tmp_path / "book/theorems.md").read_text()
    assert page.startswith("# Theorems\n\n**3 statements") and "## One" in page and "def-two" not in page
    assert call().returncode == 2
    (tmp_path / "book/a/x.ipynb").write_text("not json")
    assert call("book/theorems.md").stderr == "flbook: a/x.ipynb is not a notebook: it holds no JSON.\n"
