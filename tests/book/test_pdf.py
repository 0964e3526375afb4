"""The PDFs: a small book printed here, and the whole one where it was printed."""

import re
import unicodedata
from pathlib import Path

import pytest
import small_book
from headless import needs_chromium
from pypdf import PdfReader

from flbook.book import pdf

PRINTED = Path(__file__).parents[2] / "_build" / "pdf"
PAGES, BYTES = 800, 40_000_000


def outline(reader, items=None, depth=0):
    """The outline as rows: depth, words, page."""
    for item in reader.outline if items is None else items:
        if isinstance(item, list):
            yield from outline(reader, item, depth + 1)
        else:
            yield depth, item.title, reader.get_destination_page_number(item) + 1


def text(reader) -> str:
    return " ".join(" ".join(page.extract_text().replace("\u00ad", "") for page in reader.pages).split())


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """The small book and its chapter, printed."""
    needs_chromium()
    folder = tmp_path_factory.mktemp("small")
    made = pdf.write(small_book.build(folder), folder / "out")
    assert [path.name for path in made] == ["feature-learning.pdf", "chapter.pdf"]
    readers = {path.name: PdfReader(path) for path in made}
    assert [len(reader.pages) for reader in readers.values()] == list(made.values())
    return readers


@pytest.fixture(scope="module")
def whole():
    if not (PRINTED / "feature-learning.pdf").exists():
        pytest.skip("the book is not printed here: run `make pdf`")
    return PdfReader(PRINTED / "feature-learning.pdf")


def test_the_outline_says_the_headings_in_words(printed):
    book = list(outline(printed["feature-learning.pdf"]))
    assert [(depth, words) for depth, words, _ in book] == [
        (0, "A Small Book"), (0, "1. The chapter"), (1, "Signals of length μ"), (2, "The model"),
        (0, "Notation"), (1, "Rows")]
    assert len({page for _, _, page in book}) == 4, "each leaf begins a page"
    assert printed["chapter.pdf"].metadata.title == "A Small Book – 1. The chapter"
    below = [words for _, words, _ in outline(printed["chapter.pdf"])]
    assert below == ["1. The chapter", "Signals of length μ", "The model"]


def test_pages_are_numbered_after_the_cover(printed):
    for reader in printed.values():
        last = [page.extract_text().split()[-1] for page in reader.pages]
        first = [page.extract_text().split()[0] for page in reader.pages]
        said = [str(i + 1) in (a, b) for i, (a, b) in enumerate(zip(first, last, strict=True))]
        assert said == [False] + [True] * (len(reader.pages) - 1)


def test_contents_say_where_a_page_begins(printed):
    reader = printed["feature-learning.pdf"]
    contents = reader.pages[1].extract_text()
    begins = {words: page for depth, words, page in outline(reader)}
    for words in ("A Small Book", "1. The chapter", "Signals of length μ", "Notation"):
        assert re.search(rf"{re.escape(words)}\s+{begins[words]}\b", contents), words


def test_folded_parts_stay_out_and_the_rest_is_in(printed):
    book = text(printed["feature-learning.pdf"])
    assert "hidden" not in book and "Checks" not in book and "Search" not in book
    for words in ("What is learned", "It grows: measured 0.25", "Halve it.", "Answer: 2", "Three rows"):
        assert words in book
    assert "Notation" not in text(printed["chapter.pdf"])


def test_live_figures_are_stills_and_code_is_whole(printed):
    reader = printed["chapter.pdf"]
    assert sum(len(page.images) for page in reader.pages) >= 3  # the cover's too
    assert "".join(small_book.CODE.split()) in "".join(text(reader).split())


@pytest.mark.parametrize("formula, said", [(r"\broken", "formulas in error"), (r"\wide", "wider than the paper")])
def test_what_is_wrong_is_refused_before_anything_is_written(tmp_path, capsys, formula, said):
    needs_chromium()
    site = small_book.build(tmp_path, formula=formula)
    assert pdf.main([str(site), str(tmp_path / "out")]) == 1
    assert re.fullmatch(rf"flbook: the PDF would have \d+ .*{said}: .*chapter\.lecture.*\n", capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


def test_a_page_that_is_not_built_gets_one_sentence(tmp_path, capsys):
    needs_chromium()
    site = small_book.build(tmp_path)
    (site / "book" / "notation.html").unlink()
    assert pdf.main([str(site), str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err == "flbook: the page 'notation' is not built: run `make book` first.\n"
    assert pdf.main([]) == 2


def test_the_whole_book_is_printed(whole, pages):
    assert len(whole.pages) <= PAGES and (PRINTED / "feature-learning.pdf").stat().st_size <= BYTES
    assert len({page for _, _, page in outline(whole)}) > len(pages), "pages that the outline leads to"
    assert "1" not in whole.pages[0].extract_text().split()
    for number in (1, len(whole.pages) // 2, len(whole.pages) - 1):
        assert str(number + 1) in whole.pages[number].extract_text().split()


def test_the_whole_book_has_every_lecture(whole, lectures):
    """Its outline has each lecture's title, and leads to it; the page shows these words, and no mark of an error."""
    found = {words: page for _, words, page in outline(whole)}
    assert not [words for words in found if "\\" in words or "{" in words]
    for lecture in lectures:
        title = re.search(r"^# (.+)$", lecture.text, re.M)[1].replace("'", "’")
        start = next((page for words, page in found.items() if words.endswith(title)), None)
        assert start or "$" in title, title
        shown = unicodedata.normalize("NFKC", whole.pages[(start or 1) - 1].extract_text())  # ligatures are letters
        assert not re.search(r"Math input error|\{(?:glue|cite|prf|ref|numref|doc)[\w:]*\}", shown)
        assert not start or "".join(title.split()) in "".join(shown.split()), title


def test_each_chapter_is_printed(whole, lectures):
    assert {lecture.name.split("/")[1] for lecture in lectures} <= {path.stem for path in PRINTED.glob("*.pdf")}
