"""What lectures say of themselves: complete, known to the bibliography, and needing only what stands before them."""

import json
import re
from pathlib import Path

import nbformat
import pytest

from flbook.book import lectures, metadata, tidy

ROOT = Path(__file__).parents[2]
GOOD = {"topic": "XOR", "paper": "meng2024benign", "level": 2, "needs": ["one/first"], "tools": ["flow"]}


@pytest.fixture(scope="module")
def book():
    return metadata.collect(ROOT)


@pytest.fixture
def written(tmp_path):
    """A book of two lectures; the second says of itself what it is given."""
    (tmp_path / "_toc.yml").write_text(
        "root: book/index\nchapters:\n  - file: book/one/first\n  - file: book/two/second\n"
    )

    def write(said, name="two/second"):
        path = tmp_path / "book" / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        cells = [{"cell_type": "markdown", "source": ["# A title\n"], "metadata": {}}]
        path.write_text(json.dumps({"cells": cells, "metadata": {} if said is None else {"lecture": said}}))
        return path

    write(GOOD | {"needs": []}, "one/first")
    (tmp_path / "book" / "references.bib").write_text("@article{meng2024benign,\n}\n@article{xu2024benign,\n}\n")
    return write


def test_every_lecture_says_what_it_is(book):
    assert [lecture.name for lecture in book] == list(lectures.listed(ROOT))
    assert all(lecture.title for lecture in book)
    topics = [lecture.topic for lecture in book]
    assert len(set(topics)) == len(topics), "two lectures of one topic"


def test_what_is_needed_stands_before(book):
    """Backwards in one order, and so without a circle."""
    place = {lecture.name: number for number, lecture in enumerate(book)}
    later = [(page.name, need) for page in book for need in page.needs if place[need] >= place[page.name]]
    assert later == []


def test_a_book_has_a_beginning_that_needs_nothing(book):
    first = {}
    for lecture in book:
        first.setdefault(lecture.chapter, lecture)
    assert book[0].needs == () and book[0].level == 1
    assert all(lecture.level == 1 for lecture in book if not lecture.needs and lecture == first[lecture.chapter])


def test_it_reads(written):
    found = metadata.read(written(GOOD))
    assert found == metadata.Lecture("two/second", "A title", "XOR", ("meng2024benign",), 2, ("one/first",))
    assert found.chapter == "two"
    many = metadata.read(written(GOOD | {"paper": ["meng2024benign", "xu2024benign"]}))
    assert many.paper == ("meng2024benign", "xu2024benign")


def test_executing_a_lecture_keeps_it():
    nb = nbformat.v4.new_notebook(metadata={"lecture": GOOD, "widgets": {}})
    tidy.notebook(nb, {"device": "cpu"})
    assert nb.metadata["lecture"] == GOOD and "widgets" not in nb.metadata


@pytest.mark.parametrize(
    "wrong, said",
    [
        (None, 'its metadata have no object "lecture" with topic, paper, level, needs'),
        ({"topic": "XOR"}, "paper is missing"),
        (GOOD | {"levle": 1}, "'levle' is no key"),
        (GOOD | {"topic": " "}, "topic is ' '; it must be a few words"),
        (GOOD | {"topic": "x" * 41}, "topic has 41 characters; it may have 40"),
        (GOOD | {"paper": "meng2024malign"}, "the paper 'meng2024malign' is not in the bibliography"),
        (GOOD | {"paper": []}, r"paper is \[\]; it must be a key"),
        (GOOD | {"level": 4}, "level is 4; it must be 1, 2 or 3"),
        (GOOD | {"level": True}, "level is True"),
        (GOOD | {"needs": ["one/frist"]}, "it needs 'one/frist', which is no other lecture"),
        (GOOD | {"needs": ["two/second"]}, "it needs 'two/second', which is no other lecture"),
        (GOOD | {"needs": "one/first"}, "needs is 'one/first'; it must be a list of at most 3"),
        (GOOD | {"tools": []}, r"tools is \[\]; it must be a list among concentration, hermite"),
        (GOOD | {"tools": ["trees"]}, r"tools is \['trees'\]; it must be"),
        (GOOD | {"needs": ["one/first"] * 2}, "of at most 3 different lectures"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(written, wrong, said):
    with pytest.raises(ValueError, match=rf"^two/second.ipynb: .*{said}") as error:
        metadata.read(written(wrong))
    assert "\n" not in str(error.value)


def test_a_file_that_is_no_notebook(written):
    path = written(GOOD)
    path.write_text("not json")
    with pytest.raises(ValueError, match="two/second.ipynb is not a notebook"):
        metadata.read(path)


def test_the_sidebar_names_each_lecture_by_its_topic():
    toc = (ROOT / "_toc.yml").read_text()
    for name, path in lectures.listed(ROOT).items():
        topic = metadata.read(path).topic
        assert re.search(rf"file: book/{name}\n +title: [\"']?{re.escape(topic)}[\"']?\n", toc), name
