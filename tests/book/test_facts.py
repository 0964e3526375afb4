"""The line under a lecture's title, and how its reading time is counted."""

import json
import re
from pathlib import Path

import nbformat
import pytest

from flbook.book import facts, lectures

ROOT = Path(__file__).parents[2]
LECTURE = {"topic": "ReLU networks", "paper": "kou2023benign", "level": 2, "needs": ["data/model"]}
PAPERS = {"kou2023benign": "Kou, Chen, Chen and Gu 2023"}


@pytest.fixture
def book(tmp_path):
    other = tmp_path / "book" / "data" / "model.ipynb"
    other.parent.mkdir(parents=True)
    other.write_text(json.dumps({"metadata": {"lecture": {"topic": "The data"}}, "cells": []}))
    return tmp_path / "book"


def notebook(*texts, **metadata):
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text) for text in texts], metadata=metadata)


def test_it_stands_under_the_title_and_is_written_anew(book):
    nb = notebook("# A claim\n\nA question?", "word " * 400, lecture=LECTURE)
    path = book / "benign" / "relu.ipynb"
    line = "*ReLU networks · Kou, Chen, Chen and Gu 2023 · Level 2 of 3 · 5 minutes · "
    line += "Read first: [The data](../data/model.ipynb)*"
    for _ in range(2):
        facts.write(nb, path, PAPERS)
        assert nb.cells[0].source == f"# A claim\n\n{line}\n\nA question?"
    nb.cells[1].source, nb.metadata.lecture["needs"] = "word " * 900, []
    facts.write(nb, path, PAPERS)
    assert "10 minutes*\n\nA question?" in nb.cells[0].source


def test_tools_are_sections_of_the_primer(book):
    nb = notebook("# A claim", lecture={**LECTURE, "needs": [], "tools": ["flow", "concentration"]})
    facts.write(nb, book / "benign" / "relu.ipynb", PAPERS)
    assert nb.cells[0].source.endswith(
        "5 minutes · Tools: [Gradient flow](../primer.ipynb#gradient-flow), "
        "[Gaussian concentration](../primer.ipynb#gaussian-concentration)*\n"
    )
    primer = nbformat.read(ROOT / "book/primer.ipynb", as_version=4)
    headings = re.findall(r"^## (.+)$", "\n".join(cell.source for cell in primer.cells), flags=re.MULTILINE)
    assert headings == list(facts.TOOLS.values())


def test_a_page_counts_lectures_and_minutes(book):
    nb = notebook("# The data", "word " * 400, lecture={**LECTURE, "needs": []})
    facts.write(nb, book / "data" / "model.ipynb", PAPERS)
    nbformat.write(nb, book / "data" / "model.ipynb")
    (book / "assignments").mkdir()
    toc = "root: book/index\nparts:\n  - caption: One\n    chapters:\n      - file: book/primer\n"
    toc += "      - file: book/data/model\n      - file: book/assignments/one\n"
    (book.parent / "_toc.yml").write_text(toc)
    for name in ("primer", "assignments/one"):
        nbformat.write(notebook("# Primer", "word " * 900), book / f"{name}.ipynb")
    text = "<!-- lectures --> lectures, <!-- minutes: primer data/model -->"
    assert facts.with_counts(text, book) == "1 lectures, 15 minutes"


def test_a_page_without_facts_stays_as_it_is(book):
    nb = notebook("# A claim")
    facts.write(nb, book / "benign" / "relu.ipynb", PAPERS)
    assert nb.cells[0].source == "# A claim"


@pytest.mark.parametrize(
    "text, count",
    [
        ("one two, three's a word", 5),
        ("a formula $x + y$ is one\n\n$$a = b$$", 6),
        (":::{admonition} Hint\n:class: tip dropdown\nsix words that nobody sees here\n:::\nend", 1),
        (":::{solution-start} ex\n:class: dropdown\n:::\nhidden\n\n:::{solution-end}\n:::\nseen", 1),
        (":::{prf:theorem} Three word title\n:label: thm-x\nbody\n:::", 1),
        ("see [the page](../a/b.ipynb) and {doc}`c`", 5),
    ],
)
def test_words_are_those_that_one_sees(text, count):
    assert facts.words(notebook(text).cells) == count


def test_papers_are_called_by_their_authors(tmp_path):
    (tmp_path / "references.bib").write_text(
        "@article{one2020a,\n  author = {One, Ann},\n  year = {2020}\n}\n\n"
        "@article{many2021b,\n  author = {A, B and C, D and\n    E, F and {G H}, I and J, K},\n  year = {2021}\n}\n"
    )
    assert lectures.papers(tmp_path) == {"one2020a": "One 2020", "many2021b": "A et al. 2021"}
