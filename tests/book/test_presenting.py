"""A lecture presented from its own page, in Chromium: nothing overflows, keys move, the page gets all back."""

from contextlib import contextmanager

import pytest

SIZES = {"1280x720": {"width": 1280, "height": 720}, "1920x1080": {"width": 1920, "height": 1080}}
PRESENTED = ("benign_overfitting/relu_heatmap", "in_context_learning/linear_attention")
OVERFLOW = """() => [...document.querySelectorAll(".presenting .slide, .presenting .slide *")].filter(node => {
  const box = node.getBoundingClientRect();
  return box.width && box.height && node.checkVisibility({contentVisibilityAuto: true}) 
    && !node.closest("mjx-assistive-mml, .visually-hidden")
    && (box.left < -1 || box.top < -1 || box.right > innerWidth + 1 || box.bottom > innerHeight + 1);
}).map(node => `${node.tagName}.${node.className}: ${node.textContent.slice(0, 60)}`)"""
TEXT = """() => {
  const copy = document.querySelector("article").cloneNode(true);
  copy.querySelectorAll(".fll").forEach(live => live.remove());  // a live figure goes on by itself
  return copy.textContent;
}"""
CLIPPED = """() => [...document.querySelectorAll(".presenting :is(pre, div.math)")].filter(
  node => node.scrollWidth > node.clientWidth + 1).map(node => node.textContent.slice(0, 60))"""


@contextmanager
def presented(browser, built, name, **how):
    """A lecture that begins to be presented; what the page complains of is kept."""
    tab = browser.new_page(viewport=SIZES["1280x720"], **how)
    tab.complaints = []
    tab.on("console", lambda message: tab.complaints.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
    tab.goto((built / "book" / f"{name}.html").as_uri())
    tab.evaluate("() => window.MathJax?.startup?.promise.then(() => true)")
    tab.before = tab.evaluate(TEXT)
    tab.keyboard.press("p")
    yield tab
    assert tab.complaints == []
    tab.close()


def place(tab) -> tuple[int, int]:
    """Which slide is shown, of how many."""
    now, _, count = tab.locator(".presenting .place").inner_text().partition(" / ")
    return int(now), int(count)


def nothing_overflows(tab):
    """On either screen; the slide follows the screen as it changes."""
    for size in SIZES.values():
        tab.set_viewport_size(size)
        tab.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert tab.evaluate(OVERFLOW) == [] == tab.evaluate(CLIPPED), size


def slides_are_the_lecture_s_own_and_fit(tab):
    now, count = place(tab)
    assert now == 1 and 8 <= count <= 25
    coded, shown, seen = 0, "", set()
    for wanted in range(1, count + 1):
        assert place(tab)[0] == wanted
        plain = tab.locator(".presenting .slide").inner_text()
        assert len(plain) > 20 and not tab.locator(".presenting .cell_input").filter(visible=True).count()
        shown += plain
        seen |= {kind for kind in (".theorem, .proposition", "figure", "div.math", ".flbook-claim", ".predict")
                 if tab.locator(f".presenting .slide :is({kind})").count()}
        nothing_overflows(tab)
        tab.keyboard.press("c")
        if tab.locator(".presenting .cell_input pre").filter(visible=True).count():
            coded += 1
            nothing_overflows(tab)
        tab.keyboard.press("c")
        tab.keyboard.press("ArrowRight")
    assert place(tab)[0] == count, "the last slide stays"
    assert coded >= 2 and len(seen) >= 4, seen
    assert "What to remember" in shown and "Exercise " not in shown


def keys_move_and_the_page_gets_everything_back(tab):
    moves = {"Home": 1, "ArrowRight": 2, "PageDown": 3, "ArrowLeft": 2, "PageUp": 1, "End": place(tab)[1]}
    for key, wanted in moves.items():
        tab.keyboard.press(key)
        assert place(tab)[0] == wanted, key
    tab.set_viewport_size(SIZES["1280x720"])
    tab.keyboard.press("Escape")
    tab.wait_for_selector(".presenting", state="detached")
    assert tab.evaluate(TEXT) == tab.before
    tab.keyboard.press("p")
    assert place(tab)[0] == 1
    tab.keyboard.press("p")
    tab.wait_for_selector(".presenting", state="detached")
    tab.get_by_role("button", name="Present").click()
    assert place(tab)[0] == 1
    tab.keyboard.press("Escape")


def keys_typed_into_a_field_are_letters(tab):
    tab.evaluate("document.body.prepend(Object.assign(document.createElement('input'), {id: 'typed'}))")
    tab.locator("#typed").press("p")
    assert tab.locator("#typed").input_value() == "p" and not tab.locator(".presenting").count()


@pytest.mark.parametrize("name", PRESENTED)
def test_a_lecture_presented(browser, built, name):
    with presented(browser, built, name) as tab:
        slides_are_the_lecture_s_own_and_fit(tab)
        keys_move_and_the_page_gets_everything_back(tab)
        keys_typed_into_a_field_are_letters(tab)


def test_it_is_readable_in_the_dark(browser, built):
    from axe_playwright_python.sync_playwright import Axe

    with presented(browser, built, PRESENTED[0], color_scheme="dark") as tab:
        for _ in range(0, place(tab)[1], 4):  # axe takes its time
            found = Axe().run(tab, context=".presenting", options={"runOnly": ["color-contrast"]})
            assert found.violations_count == 0, found.generate_report()
            for _ in range(4):
                tab.keyboard.press("ArrowRight")


def test_a_page_that_is_no_lecture_has_no_slides(browser, built):
    tab = browser.new_page()
    tab.goto((built / "book" / "glossary.html").as_uri())
    tab.keyboard.press("p")
    assert not tab.locator(".presenting, .present-button").count()
    tab.close()
