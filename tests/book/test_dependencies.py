"""The picture of dependencies: every lecture once, arrows that only point downwards, nothing behind a box."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import pytest

from flbook.book import dependencies, metadata
from flbook.book.dependencies import NARROW, WIDE

ROOT = Path(__file__).parents[2]
LIB = Path(dependencies.__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def book():
    return metadata.collect(ROOT)


def lecture(name, *needs):
    return metadata.Lecture(name, f"On {name} & <more>", name.replace("_", " "), ("x2020y",), 1 + len(needs) % 3, needs)


CHAIN = [lecture("a/one"), lecture("a/two", "a/one"), lecture("b/three", "a/two", "a/one"), lecture("b/four", "a/one")]


def drawn(text):
    """The SVG elements of a fragment or a file."""
    body = text.partition("```{raw} html\n")[2].rpartition("```")[0] or text
    return [one for one in ET.fromstring(f"<all>{body}</all>").iter() if one.tag == f"{SVG}svg"]


def test_no_arrow_says_what_others_say_together():
    assert dependencies.reduced(CHAIN) == {
        "a/one": [], "a/two": ["a/one"], "b/three": ["a/two"], "b/four": ["a/one"]
    }  # fmt: skip


def test_rows_go_chapter_by_chapter_and_by_depth():
    wide = [lecture(f"a/{k}") for k in range(7)] + [lecture("a/deep", "a/3")]
    assert [[one.name for one in row] for row in dependencies.rows(CHAIN, 5)] == [
        ["a/one"], ["a/two"], ["b/three", "b/four"]
    ]  # fmt: skip
    assert [len(row) for row in dependencies.rows(wide, 5)] == [4, 3, 1]


@pytest.mark.parametrize("sizes", [WIDE, NARROW], ids=["wide", "narrow"])
def test_arrows_lead_one_row_down_and_nothing_overlaps(book, sizes):
    table = dependencies.layout(book, sizes)
    assert sorted(spot.lecture.name for row in table for spot in row if spot.lecture) == sorted(x.name for x in book)
    for number, row in enumerate(table):
        for spot in row:
            assert spot.row == number and all(end.row == number + 1 for end in spot.below)
        halves = [(sizes.box if spot.lecture else sizes.lane) / 2 for spot in row]
        assert row[0].x - halves[0] >= 0 and row[-1].x + halves[-1] <= sizes.width
        for (left, a), (right, b) in pairwise(zip(row, halves, strict=True)):
            assert right.x - left.x >= a + b, (sizes.width, number)


@pytest.mark.parametrize("sizes", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_arrows_are_what_the_lectures_need(book, sizes):
    """Followed from box to box, through lanes."""

    def ends(spot):
        return {spot.lecture.name} if spot.lecture else set().union(*map(ends, spot.below))

    found = {one.name: set() for one in book}
    for spot in (spot for row in dependencies.layout(book, sizes) for spot in row if spot.lecture):
        for below in spot.below:
            for name in ends(below):
                found[name].add(spot.lecture.name)
    assert found == {name: set(needs) for name, needs in dependencies.reduced(book).items()}


def test_ordering_takes_crossings_away():
    crossed = [lecture("a/1"), lecture("a/2"), lecture("a/3"), lecture("a/x", "a/3"), lecture("a/y", "a/2"),
               lecture("a/z", "a/1")]  # fmt: skip
    table = dependencies.layout(crossed, WIDE)
    assert dependencies.crossings(table) == 0
    table[0].reverse()
    assert dependencies.crossings(table) == 3


def test_every_lecture_is_a_link_three_times(book):
    text = dependencies.fragment(ROOT)
    wide, narrow = drawn(text)
    pages = [f"{one.name}.html" for one in book]
    for picture in (wide, narrow):
        links = list(picture.iter(f"{SVG}a"))
        assert sorted(link.get("href") for link in links) == sorted(pages)
        assert all(link.get("aria-label") for link in links) and picture.get("aria-label")
    listed = text.partition("<details>")[2]
    assert [listed.count(f'href="{page}"') for page in pages] == [1] * len(pages)
    assert all(caption in listed for caption in ("Representation", "Benign overfitting"))


def test_text_of_a_lecture_cannot_break_the_page(monkeypatch):
    monkeypatch.setattr(dependencies.metadata, "collect", lambda _: CHAIN)
    monkeypatch.setattr(dependencies, "captions", lambda _: {"a": "A & B", "b": "<b>"})
    wide, narrow = drawn(dependencies.fragment(ROOT))
    assert [title.text for title in wide.iter(f"{SVG}title")][0] == "On a/one & <more>"
    (alone,) = drawn(dependencies.svg(ROOT))
    assert len(list(alone.iter(f"{SVG}a"))) == len(CHAIN)


def test_it_runs_without_any_package(tmp_path):
    """As in the environment that renders the pages."""
    (tmp_path / "_toc.yml").write_text(
        "root: book/index\nparts:\n  - caption: One\n    chapters:\n      - file: book/a/x\n"
    )
    (tmp_path / "book/a").mkdir(parents=True)
    (tmp_path / "book/references.bib").write_text("@article{x2020y,\n}\n")
    cell = {"cell_type": "markdown", "source": "# Title", "metadata": {}}
    said = {"topic": "Topic", "paper": "x2020y", "level": 1, "needs": [], "tools": ["flow"]}
    (tmp_path / "book/a/x.ipynb").write_text(json.dumps({"cells": [cell], "metadata": {"lecture": said}}))

    def call(*arguments):
        code = f"import sys; sys.path.insert(0, {str(LIB)!r}); import runpy; sys.argv = {['x', *arguments]!r}; "
        code += "runpy.run_module('flbook.book.dependencies', run_name='__main__')"
        command = [sys.executable, "-I", "-S", "-c", code]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    assert (call("a.svg").returncode, call("a.md").returncode) == (0, 0)
    assert len(drawn((tmp_path / "a.svg").read_text())) == 1 and len(drawn((tmp_path / "a.md").read_text())) == 2
    assert call().returncode == 2 and call("a.png").returncode == 2
    assert dependencies.fragment(tmp_path) == (tmp_path / "a.md").read_text()
    (tmp_path / "book/references.bib").write_text("")
    assert call("b.svg").stderr == "flbook: a/x.ipynb: the paper 'x2020y' is not in the bibliography.\n"
