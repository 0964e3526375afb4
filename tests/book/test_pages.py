"""What a page of the book consists of, counted: words, height, machinery, claims, the place of the first picture.

The limits are those of CONTRIBUTING, "Add a lecture". Pages that do not keep them yet stand in todo.toml with what they
have; there a page may only get better, and what keeps the limit is taken off the list.
"""

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from flbook.book import facts, kinds

TODO = tomllib.loads(Path(__file__).with_name("todo.toml").read_text())
OPEN = re.compile(r"^## (?:Checks|Exercises)\b", re.M)  # where the main line of a page ends
BOX = re.compile(r"^(:{3,})\{prf:(\w+)\}([^\n]*)\n(.*?)^\1\s*$", re.S | re.M)


def main_line(page) -> list[dict]:
    """The cells before the sections that are closed or are work for the reader."""
    for number, cell in enumerate(page.cells):
        if cell["cell_type"] == "markdown" and OPEN.search(cell["source"]):
            return page.cells[:number]
    return page.cells


def claims(page) -> int:
    """Claims that are checked on the main line."""
    code = "\n".join(cell["source"] for cell in main_line(page) if cell["cell_type"] == "code")
    return len(re.findall(r"\bclaims\.(?:check|identity)\(", code))


def other_events(page) -> int:
    """Words about where the material was shown; a lecture speaks to who has never been there."""
    return len(re.findall(r"\b(?:slides?|tutorials?|talks?)\b", page.text, re.I))


def unsourced(page) -> int:
    """Theorem boxes without a statement in formulas, or with neither a source nor a proof on the page."""
    boxes = BOX.findall(page.text)
    proofs = sum(kind == "proof" for _, kind, _, _ in boxes)
    stated = [body for _, kind, _, body in boxes if kind in ("theorem", "proposition", "lemma", "corollary")]
    return sum("$" not in body for body in stated) + max(0, sum("{cite" not in body for body in stated) - proofs)


def typed_numbers(page) -> int:
    """Numbers of this book's own theorems, figures and exercises that were typed; a paper's come with its citation."""
    found = re.finditer(r"\b(?:Theorem|Proposition|Lemma|Definition|Exercise|Figure)s? \d+\b(?![.]\d)", page.text)
    return sum("{cite" not in page.text[max(0, match.start() - 120) : match.end() + 60] for match in found)


def proofs(page) -> int:
    return -sum(kind == "proof" for _, kind, _, _ in BOX.findall(page.text))


@dataclass(frozen=True)
class Count:
    """A number that a page may have at most."""

    of: Callable
    limit: float


COUNTS = {
    "words": Count(lambda page: facts.words(page.cells), 1800),
    "machinery": Count(lambda page: round(1 - kinds.share([page.cells]), 2), 0.30),
    "claims": Count(claims, 4),
    "other_events": Count(other_events, 0),
    "unsourced": Count(unsourced, 0),
    "typed_numbers": Count(typed_numbers, 0),
    "proofs": Count(proofs, -1),  # one at least
}
IN_BROWSER = {"height": 12_000, "first_picture": 900}  # pixels at a width of 1280, everything folded


def within(name: str, count: str, value: float, limit: float, slack: float = 1) -> None:
    """The limit is kept, or the page stands on the list and is no worse than there."""
    listed = TODO.get(name, {}).get(count)
    if listed is None:
        assert value <= limit * slack, f"{count}: {value} of at most {limit}"
    else:
        assert value <= listed * slack, f"{count}: {value}, and the list has {listed}: a page may not get worse"
        assert value > limit / slack, f"{count}: {value} keeps the limit: take it off the list"


@pytest.mark.parametrize("count", COUNTS)
def test_it_is_a_page_that_one_reads(lecture, count):
    within(lecture.name.removeprefix("book/"), count, COUNTS[count].of(lecture), COUNTS[count].limit)


def test_its_picture_comes_first_and_its_end_is_near(browser, lecture):
    """Fonts differ between machines, so pixels have five parts in a hundred of room."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.goto(lecture.html.as_uri())
    tab.wait_for_function("() => !window.MathJax || !MathJax.startup || MathJax.startup.promise.then(() => true)")
    top = "e => e.getBoundingClientRect().top + scrollY"
    first = tab.locator(".cell_output :is(img, .fll)").first.evaluate(top)
    height = tab.locator("article").first.evaluate("e => e.getBoundingClientRect().height")
    tab.close()
    for count, value in {"height": height, "first_picture": first}.items():
        within(lecture.name.removeprefix("book/"), count, value, IN_BROWSER[count], slack=1.05)


def test_the_list_names_pages_and_counts(lectures):
    names = {page.name.removeprefix("book/") for page in lectures}
    assert set(TODO) <= names
    assert {count for counts in TODO.values() for count in counts} <= {*COUNTS, *IN_BROWSER}
