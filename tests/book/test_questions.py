"""The two questions of each lecture: how they are written, and how they behave in a browser, stored or not."""

import json
import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from headless import arrive_again_until

from flbook.book import facts, questions

STATIC = Path(__file__).parents[2] / "book" / "_static"
CHOICES = "1. One\n   - It is odd.\n2. Two\n   - Right: it is even.\n3. Three\n   - It is odd, too.\n"
BOX = f":::{{admonition}} Which is even?\n:class: question dropdown answer-2\n{CHOICES}:::\n"
SECTION = f"## Two questions\n\n{BOX}\n{BOX}"

# As a page has it once built: what folds is the theme's, and is left out.
PAGE = """<!doctype html><html lang="en" data-theme="{theme}"><head><meta charset="utf-8"><title>Page</title>
<meta name="viewport" content="width=device-width"><style>body {{ background: {ground}; color: {ink}; }}
:root {{ --pst-color-success: {good}; --pst-color-danger: {bad}; }}
.visually-hidden {{ position: absolute; clip-path: inset(50%); }}
{style}</style><script>{before}</script><script>{script}</script></head>
<body><main class="bd-article"><h1>Page</h1>{body}</main></body></html>"""
ASKED = """<div class="question dropdown answer-2 admonition"><p class="admonition-title">Which is even?</p>
<ol><li><p>One</p><ul><li><p>It is odd.</p></li></ul></li><li><p>Two</p><ul><li><p>Right: it is even.</p></li></ul></li>
<li><p>Three</p><ul><li><p>It is odd, too.</p></li></ul></li></ol></div>"""
FRONT = '<div class="questions-so-far" data-questions="106"><p>Every lecture ends with two questions.</p></div>'
COLOURS = {"light": ("#fff", "#111", "#008000", "#b00020"), "dark": ("#121417", "#eee", "#5fb560", "#f08080")}
REFUSED = "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('no', 'SecurityError'); }});"


def test_every_lecture_has_two_with_one_right_answer_and_a_reason_below_each_choice(lecture):
    assert len(questions.read(lecture.text)) == 2
    (number,) = [n for n, cell in enumerate(lecture.cells) if cell["source"].startswith(questions.HEADING)]
    after = lecture.cells[number + 1]
    assert after["cell_type"] == "markdown" and after["source"].startswith("## Exercises"), "just before the exercises"


def test_no_place_among_the_choices_is_a_good_guess(lectures):
    """Nor is the longest choice: in both, chance would be a third."""
    every = [question for page in lectures for question in questions.read(page.text)]
    places = [question.answer for question in every]
    assert max(places.count(place) for place in set(places)) <= 0.4 * len(every)
    longest = [max(question.choices, key=lambda one: len(one[0])) for question in every]
    told = sum(choice == question.choices[question.answer - 1] for choice, question in zip(longest, every, strict=True))
    assert told <= 0.5 * len(every)


@pytest.mark.parametrize(
    "old, new, said",
    [
        (BOX, "", "1 sections of 0 questions; it must be one of two"),
        ("## Two questions", "## Two questions\n\n## Next\n\n## Two questions", "2 sections"),
        ("answer-2", "answer-4", "'Which is even[?]' says that choice 4 of 3 is right"),
        ("answer-2", "answer-1", "must have 'Right:' before the reason of choice 1, and before no other"),
        ("   - It is odd.\n", "", "has no reason below choice 1"),
        ("3. Three\n   - It is odd, too.\n", "", "has 2 choices; it must have three or four"),
        ("Three", "One", "has a choice twice"),
    ],
)
def test_what_is_written_wrongly_is_refused_in_one_sentence(tmp_path, old, new, said):
    (tmp_path / "chapter").mkdir()
    cell = {"cell_type": "markdown", "source": SECTION.replace(old, new)}
    (tmp_path / "chapter" / "page.ipynb").write_text(json.dumps({"cells": [cell]}))
    with pytest.raises(ValueError, match=rf"^chapter/page.ipynb: .*{said}") as error:
        questions.with_count("<!-- questions -->", tmp_path)
    assert "\n" not in str(error.value)


def test_they_are_counted_on_the_front_page_and_not_among_the_words(tmp_path):
    (tmp_path / "chapter").mkdir()
    for name, text in {"one": SECTION, "two": "A page without questions."}.items():
        cell = {"cell_type": "markdown", "source": text}
        (tmp_path / "chapter" / f"{name}.ipynb").write_text(json.dumps({"cells": [cell]}))
    assert 'data-questions="2"' in questions.with_count("<!-- questions -->", tmp_path)
    assert questions.with_count("no mark", tmp_path) == "no mark"
    cells = [{"cell_type": "markdown", "source": f"one two\n\n{SECTION}\n\n## Exercises\n\nfour"}]
    assert facts.words(cells) == 4


def test_without_scripts_they_are_read_on_the_page(lecture, built):
    """Two boxes in the built page, with every choice and every reason."""
    html = lecture.html.read_text()
    boxes = re.findall(r'<div class="question dropdown answer-\d admonition">.*?</div>', html, re.S)
    assert [box.count("<li>") for box in boxes] == [2 * len(one.choices) for one in questions.read(lecture.text)]


@pytest.fixture
def opened(chromium, tmp_path):
    """A function that opens a small page with the book's script and style, and keeps what it complained about.

    It opens in a context of its own, in the `tab` of another page, or `beside` one, sharing what is stored.
    """
    tabs = []

    def open_page(body, theme="light", width=1280, before="", tab=None, beside=None):
        light = {"ground": "#fff", "ink": "#111", "good": "#008000", "bad": "#b00020"}
        colours = (
            light if theme == "light" else {"ground": "#121417", "ink": "#eee", "good": "#5fb560", "bad": "#f08080"}
        )
        path = tmp_path / "page.html"
        style, script = ((STATIC / name).read_text() for name in ("flbook.css", "predict.js"))
        path.write_text(PAGE.format(theme=theme, **colours, style=style, script=script, before=before, body=body))
        if tab is None:
            viewport = {"width": width, "height": 900}
            tab = (beside.context if beside else chromium.new_context(viewport=viewport)).new_page()
            tabs.append(tab)
            tab.complaints = []
            tab.on("console", lambda m: tab.complaints.append(m.text) if m.type in ("error", "warning") else None)
            tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
        tab.goto(path.as_uri())
        return tab

    yield open_page
    for tab in tabs:
        tab.context.close()


def answer(tab, place):
    """Choose and check, by keyboard alone."""
    tab.locator(f".question input[value='{place}']").press("Space")
    tab.get_by_role("button", name="Check").press("Enter")
    return tab.locator(".question .said").inner_text()


@pytest.mark.parametrize("before", ["", REFUSED], ids=["storage", "storage refused"])
def test_a_wrong_choice_says_why_and_a_right_one_ends_it(opened, before):
    tab = opened(ASKED, before=before)
    reasons = tab.locator(".question li li")
    assert not [one for one in reasons.all() if one.is_visible()]
    assert tab.get_by_role("button", name="Check").is_disabled()
    assert answer(tab, 3).startswith("Not this one.")
    assert [one.is_visible() for one in reasons.all()] == [False, False, True]
    assert answer(tab, 2) == "Right, though not at once."
    assert all(one.is_visible() for one in reasons.all())
    assert tab.evaluate("document.activeElement.className") == "said"
    assert tab.locator("li.right").inner_text().strip().startswith("Two") and tab.locator("li.wrong").count() == 1
    kept = "" if before else "Right, though not at once."
    tab.reload()
    arrive_again_until(tab, lambda: tab.locator(".question .said").inner_text() == kept)
    assert tab.locator(".question .said").inner_text() == kept
    assert tab.complaints == []


def front_beside(opened, tab):
    """The front page beside a tab that has just stored an answer."""
    front = opened(FRONT, beside=tab)
    arrive_again_until(front, lambda: front.locator(".kept").count() > 0)
    return front


def test_the_front_page_counts_and_forgets(opened):
    asked = opened(ASKED)
    assert answer(asked, 2) == "Right."
    front = front_beside(opened, asked)
    assert "You have answered 1 of 106 questions, 1 of them right at once." in front.locator(".kept").inner_text()
    front.get_by_role("button", name="Forget").press("Enter")
    assert front.locator(".kept").inner_text() == "Forgotten."
    assert front.evaluate("localStorage.length") == 0
    front.reload()
    assert front.locator(".kept").count() == 0
    opened(ASKED, tab=asked)
    assert asked.locator(".question .said").inner_text() == "" and asked.complaints == front.complaints == []


def test_the_front_page_counts_what_is_answered_in_another_window(opened):
    front = opened(FRONT)
    asked = opened(ASKED, beside=front)
    front.evaluate("window.same = true")
    assert answer(asked, 2) == "Right."
    front.locator(".kept").wait_for()
    assert "answered 1 of 106" in front.locator(".kept").inner_text()
    assert front.evaluate("window.same"), "it was not loaded again"


def test_the_front_page_is_silent_where_storage_is_refused(opened):
    tab = opened(FRONT, before=REFUSED)
    assert tab.locator(".kept").count() == 0 and tab.complaints == []


@pytest.mark.parametrize(
    "junk", ["5", "[1]", "{", "null", '{"ID": 3}', '{"ID": {"value": 9, "first": 9}}', '{"ID": null}']
)
def test_what_someone_else_stored_does_no_harm(opened, junk):
    tab = opened(ASKED)
    name = tab.evaluate("location.pathname.replace(/\\.html$/, '') + '#0'")
    tab.evaluate("text => localStorage.setItem('flbook:questions', text)", junk.replace("ID", name))
    tab.reload()
    assert answer(tab, 1).startswith("Not this one.")
    front = front_beside(opened, tab)
    assert "answered 1 of 106 questions, 0 of them" in front.locator(".kept").inner_text()
    assert tab.complaints == front.complaints == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_everybody_can_use_them(opened, theme, width):
    tab = opened(ASKED + FRONT, theme, width)
    for place in (1, 2):
        found = Axe().run(tab).response["violations"]
        assert [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found] == []
        answer(tab, place)
    small = "[...document.querySelectorAll('.question :is(button, label)')].filter(e => e.offsetHeight < 24).length"
    assert tab.evaluate(small) == 0, "targets of at least 24 px"
    assert tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
