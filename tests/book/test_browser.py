"""The built pages, opened from the file system in Chromium: silent, complete, playable.

A page is loaded once on a desk and once on a phone, and each load is asked everything; on the desk it gets dark, too.
"""

import io
import re
from contextlib import contextmanager

from limits import IN_BROWSER, within
from PIL import Image

LOCAL = ("file:", "data:", "blob:")
DESK, PHONE = ({"width": width, "height": 900} for width in (1280, 390))
PICTURES = ".cell_output img:not(.fll img)"
TOP = "e => e.getBoundingClientRect().top + scrollY"
HEIGHT = "e => e.getBoundingClientRect().height"
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@contextmanager
def opened(browser, page, **how):
    """A page after it has loaded, with everything that it complained about or asked for."""
    context = browser.new_context(**how)
    tab = context.new_page()
    tab.complaints, tab.asked = [], []
    tab.on("console", lambda message: tab.complaints.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
    tab.on("requestfailed", lambda sent: tab.complaints.append(f"could not load {sent.url}"))
    tab.on("request", lambda sent: None if sent.url.startswith(LOCAL) else tab.asked.append(sent.url))
    try:
        arrive(tab, page)
        yield tab
    finally:
        context.close()


def arrive(tab, page):
    """Go there, and wait until its formulas are set."""
    tab.goto(page.html.as_uri())
    tab.wait_for_function("() => !window.MathJax || !MathJax.startup || MathJax.startup.promise.then(() => true)")


def silent_and_whole(tab):
    assert tab.complaints == []
    assert tab.asked == []
    formulas = tab.locator("article .math").count()
    assert tab.locator("article .math mjx-container").count() >= formulas
    assert tab.locator("mjx-merror").count() == 0
    assert tab.evaluate(SIDEWAYS) <= 0, "the page scrolls sideways"


def on_the_page_s_own_ground(tab, scheme):
    """Figures as they are on a light page; on a dark one with lightness turned round, maps by their own picture."""
    seen = [picture for picture in tab.locator(PICTURES).all() if picture.is_visible()]
    assert seen
    for picture in seen:
        effect = picture.evaluate("one => getComputedStyle(one).filter")
        turned = scheme == "dark" and "map" not in (picture.get_attribute("class") or "").split()
        assert ("invert" in effect) == turned
    # A slider over maps keeps their light ground: a second set of frames would double the page.
    first = next(one for one in seen if "dark-light map" != one.get_attribute("class"))
    corner = Image.open(io.BytesIO(first.screenshot())).convert("L").getpixel((1, 1))
    assert corner > 240 if scheme == "light" else corner < 60, "no white slab"


def picture_first_and_end_near(tab, name):
    """Fonts differ between machines, so pixels have five parts in a hundred of room."""
    measured = {"height": tab.locator("article").first.evaluate(HEIGHT),
                "first_picture": tab.locator(".cell_output :is(img, .fll)").first.evaluate(TOP)}
    for count, value in measured.items():
        within(name, count, value, IN_BROWSER[count], slack=1.05)


def folded_code_opens_by_keyboard(tab):
    fold = tab.locator("div.cell.tag_kind-check details").first
    assert fold.locator("summary").inner_text() == "How this is checked"
    assert not fold.locator("pre").is_visible() and fold.locator("xpath=..").locator(".cell_output").is_visible()
    fold.locator("summary").press("Enter")
    fold.locator("pre").wait_for(state="visible", timeout=3000)
    assert "@title" not in tab.locator("article").inner_text()


def checks_open_by_keyboard(tab):
    checks = tab.locator("details.checks")
    inside = checks.locator(".cell").first
    assert tab.locator("section:has(> details.checks) > h2").is_visible() and not inside.is_visible()
    checks.locator("summary").first.press("Enter")
    inside.wait_for(state="visible", timeout=3000)


def solutions_are_folded_and_open(tab):
    solution = tab.locator(".solution.dropdown").first
    content = solution.locator(".section, .cell, p:not(.admonition-title)").first
    assert not content.is_visible()
    solution.locator(".admonition-title").click()
    content.wait_for(state="visible", timeout=3000)


def predictions_are_kept_drawn_and_compared(tab, page):
    """One after the other is drawn into the figure that follows it, kept over a reload, and compared."""
    tab.evaluate("localStorage.clear()")
    arrive(tab, page)
    boxes = tab.locator(".predict:has(fieldset)")
    kept, drawn = [], 0
    for box in boxes.all():
        chosen = box.locator("fieldset input").first
        chosen.check() if chosen.get_attribute("type") == "radio" else chosen.press("ArrowRight")
        kept.append(chosen.input_value())
        box.get_by_role("button", name="Keep my prediction").press("Enter")
        assert "Kept in this browser" in box.locator(".said").inner_text()
        drawn += "mark-" in (box.get_attribute("class") or "")
        assert tab.locator(".prediction").count() == drawn, "drawn into the figure that follows"
    arrive(tab, page)
    assert tab.locator(".prediction").count() == drawn
    for box, value in zip(boxes.all(), kept, strict=True):
        assert box.locator("fieldset input").first.input_value() == value
        box.get_by_role("button", name="Compare").press("Enter")
        assert re.search("^(Right|You said)", box.locator(".said").inner_text())
    assert kept


def the_slider_moves_the_figure(tab):
    figure = tab.locator("[id^=frames-], .fll").first
    slider = figure.locator("input[type=range]").first
    drawn = figure.evaluate("box => box.innerHTML")
    slider.focus()
    tab.keyboard.press("ArrowLeft" if slider.evaluate("slider => slider.value === slider.max") else "ArrowRight")
    tab.wait_for_function("([box, drawn]) => box.innerHTML !== drawn", arg=[figure.element_handle(), drawn])


def test_on_a_desk(browser, page, lectures, asking, checked):
    with opened(browser, page, viewport=DESK, color_scheme="light") as tab:
        silent_and_whole(tab)
        if page not in lectures:
            return
        picture_first_and_end_near(tab, page.name.removeprefix("book/"))
        on_the_page_s_own_ground(tab, "light")
        tab.emulate_media(color_scheme="dark")
        tab.wait_for_selector("html[data-theme=dark]")
        on_the_page_s_own_ground(tab, "dark")
        tab.emulate_media(color_scheme="light")
        solutions_are_folded_and_open(tab)
        if page in checked:
            checks_open_by_keyboard(tab)
        folded_code_opens_by_keyboard(tab)
        if page in asking:
            predictions_are_kept_drawn_and_compared(tab, page)
        assert tab.complaints == []
        tab.emulate_media(media="print")
        assert tab.locator("div.cell details:not([open])").first.is_hidden()


def test_on_a_phone(browser, page, lectures):
    with opened(browser, page, viewport=PHONE, color_scheme="light") as tab:
        silent_and_whole(tab)
        if page in lectures:
            the_slider_moves_the_figure(tab)
            assert tab.complaints == []


def test_the_front_door_leads_to_the_book(browser, pages, built):
    tab = browser.new_page()
    tab.goto((built / "index.html").as_uri())
    tab.wait_for_url(f"**/{pages[0].name}.html", timeout=5000)
    tab.close()


def test_search_works_without_a_server(browser, built):
    tab = browser.new_page()
    tab.goto((built / "search.html").as_uri() + "?q=noise")
    tab.locator("#search-results li a").first.wait_for(timeout=5000)
    tab.close()
