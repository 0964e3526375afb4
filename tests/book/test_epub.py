"""The EPUB: a small book bound here, and the whole one where it was bound."""

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import pytest
import small_book
from headless import needs_chromium

from flbook.book import epub

XHTML, MATHML = "{http://www.w3.org/1999/xhtml}", "{http://www.w3.org/1998/Math/MathML}"
BOUND = Path(__file__).parents[2] / "_build" / "feature-learning.epub"
LIMIT = 12_000_000  # bytes


class Book:
    """A bound book: its files, and its pages as trees."""

    def __init__(self, path: Path):
        with zipfile.ZipFile(path) as book:
            self.order = [(entry.filename, entry.compress_type) for entry in book.infolist()]
            self.files = {name.removeprefix("book/"): book.read(name) for name, _ in self.order}
        self.pages = {name: ET.fromstring(text) for name, text in self.files.items() if name.endswith(".xhtml")}

    def links(self):
        """Each link inside the book: the page that has it, the file and the id that it leads to."""
        for page, tree in self.pages.items():
            for link in tree.iter(f"{XHTML}a"):
                if not link.get("href", "https:").startswith("http"):
                    file, _, name = link.get("href").partition("#")
                    yield page, file or page, name


@pytest.fixture(scope="module")
def bound(tmp_path_factory):
    """The small book, bound."""
    needs_chromium()
    folder = tmp_path_factory.mktemp("small")
    assert epub.write(small_book.build(folder), folder / "out" / "small.epub") == 4
    return Book(folder / "out" / "small.epub")


@pytest.fixture(scope="module")
def whole():
    if not BOUND.exists():
        pytest.skip("the EPUB is not bound here: run `make epub`")
    return Book(BOUND)


def headings(lecture) -> list[str]:
    """The headings of a lecture that are plain words, as a page shows them; the checks stay folded."""
    found = re.findall(r"^##? ([\w ,.:;'?-]+)$", lecture.text, re.M)
    return [heading.replace("'", "’") for heading in found if heading != "Checks"]


def assert_it_is_an_epub(book):
    assert book.order[0] == ("mimetype", zipfile.ZIP_STORED)
    assert book.files["mimetype"] == b"application/epub+zip"
    package = ET.fromstring(book.files["package.opf"])
    opf = "{http://www.idpf.org/2007/opf}"
    listed = {item.get("href"): item.get("properties", "") for item in package.iter(f"{opf}item")}
    assert listed.keys() == book.files.keys() - {"mimetype", "META-INF/container.xml", "package.opf"}
    for name, tree in book.pages.items():
        assert ("mathml" in listed[name].split()) == any(True for _ in tree.iter(f"{MATHML}math")), name


def assert_it_reads_without_scripts(book):
    for name, tree in book.pages.items():
        tags = {node.tag.rpartition("}")[2] for node in tree.iter()}
        styled = {"style"} if "svg" in tags else set()  # a drawing brings its own
        assert not tags & {"script", "input", "button", "iframe", "style", "merror"} - styled, name
        assert not [node for node in tree.iter() for key in node.attrib if key.startswith(("on", "data-"))], name
        assert all(image.get("alt", "").strip() for image in tree.iter(f"{XHTML}img")), name
        assert all(image.get("src") in book.files for image in tree.iter(f"{XHTML}img")), name
        ids = [node.get("id") for node in tree.iter() if node.get("id")]
        assert len(ids) == len(set(ids)), name


def assert_links_arrive(book):
    ids = {name: {node.get("id") for node in tree.iter()} for name, tree in book.pages.items()}
    assert not [(page, file, name) for page, file, name in book.links() if name and name not in ids[file]]
    assert all(file in book.pages for _, file, _ in book.links())


def test_the_small_book_is_an_epub(bound):
    assert_it_is_an_epub(bound)
    assert_it_reads_without_scripts(bound)
    assert_links_arrive(bound)


def test_folded_parts_stay_out_and_the_rest_is_in(bound):
    text = "".join(bound.pages["chapter.lecture.xhtml"].itertext())
    assert "hidden" not in text and "Checks" not in text and "Search" not in text
    for words in ("What is learned", "It grows: measured 0.25", "Halve it.", "Answer: 2", "angle: 90", small_book.CODE):
        assert words in text
    rows = "".join(bound.pages["notation.xhtml"].itertext())
    assert "Three rows" in rows and "hidden" not in rows, "where nothing else is left, a fold's title stands for it"


def test_pictures_keep_their_words(bound):
    images = list(bound.pages["chapter.lecture.xhtml"].iter(f"{XHTML}img"))
    assert [image.get("alt") for image in images] == ["A still & its words", "A frame in words", "Two panels"]
    assert bound.files[images[0].get("src")] == small_book.picture()
    assert bound.files[images[2].get("src")] == small_book.picture(len("wide"))


def test_formulas_are_mathml_with_their_source(bound):
    formulas = list(bound.pages["chapter.lecture.xhtml"].iter(f"{MATHML}math"))
    assert [formula.get("alttext") for formula in formulas] == [r"\mu", r"f(x) = \mu"]


def test_links_lead_from_file_to_file(bound):
    led = [(file, name) for page, file, name in bound.links() if page == "chapter.lecture.xhtml"]
    assert led == [("chapter.lecture.xhtml", "chapter.lecture.fig-live"), ("notation.xhtml", "notation.mu")]
    outside = [link.get("href") for link in bound.pages["chapter.lecture.xhtml"].iter(f"{XHTML}a")]
    assert "https://example.org/paper" in outside and not any("genindex" in address for address in outside)


def test_contents_have_lectures_below_their_chapter(bound):
    top = bound.pages["nav.xhtml"].find(f".//{XHTML}nav/{XHTML}ol")
    said = [("".join(item.find(f"{XHTML}a").itertext()), item.find(f"{XHTML}ol") is not None) for item in top]
    assert said == [("A Small Book", False), ("1. The chapter", True), ("Notation", False)]
    below = top.find(f".//{XHTML}ol/{XHTML}li/{XHTML}a")
    assert below.text == "Signals of length μ" and below.get("href") == "chapter.lecture.xhtml"


@pytest.mark.parametrize(
    "given, said", [({"formula": r"\broken"}, "formulas in error"), ({"alt": " "}, "without alt text")])
def test_what_is_wrong_is_refused_before_anything_is_written(tmp_path, capsys, given, said):
    needs_chromium()
    site = small_book.build(tmp_path, **given)
    assert epub.main([str(site), str(tmp_path / "out" / "small.epub")]) == 1
    assert re.fullmatch(rf"flbook: the EPUB .*{said} on chapter\.lecture\.xhtml\.\n", capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


def test_a_page_that_is_not_built_gets_one_sentence(tmp_path, capsys):
    needs_chromium()
    site = small_book.build(tmp_path)
    (site / "book" / "notation.html").unlink()
    assert epub.main([str(site), str(tmp_path / "small.epub")]) == 1
    assert capsys.readouterr().err == "flbook: the page 'notation' is not built: run `make book` first.\n"
    assert epub.main([]) == 2


def test_epubcheck_is_silent(tmp_path):
    needs_chromium()
    checker = shutil.which("epubcheck")
    if not checker or not shutil.which("java"):
        pytest.skip("epubcheck is not installed here")
    epub.write(small_book.build(tmp_path), tmp_path / "small.epub")
    jar = ["java", "-jar"] if Path(checker).read_bytes()[:2] == b"PK" else []
    for book in (tmp_path / "small.epub", BOUND):
        answer = subprocess.run([*jar, checker, book], capture_output=True, text=True) if book.exists() else None
        assert answer is None or "0 fatals / 0 errors / 0 warnings" in answer.stdout + answer.stderr, answer.stderr


def test_the_whole_book_is_an_epub(whole, pages):
    assert BOUND.stat().st_size <= LIMIT
    assert_it_is_an_epub(whole)
    assert_it_reads_without_scripts(whole)
    assert_links_arrive(whole)
    assert [name.removeprefix("book/").replace("/", ".") + ".xhtml" for name in (page.name for page in pages)] == [
        name for name in whole.pages if name not in ("cover.xhtml", "nav.xhtml")]


def test_the_whole_book_has_every_lecture_s_text(whole, lecture):
    text = "".join(whole.pages[lecture.name.removeprefix("book/").replace("/", ".") + ".xhtml"].itertext())
    assert len(text) > 4000 and not re.search(r"\{(?:glue|cite|prf|ref|numref|doc|eq)[\w:]*\}|\\\(|\\\[", text)
    assert not [heading for heading in headings(lecture) if heading not in text]
