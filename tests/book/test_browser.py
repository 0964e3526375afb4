"""The built pages, opened from the file system in Chromium on a desk and on a phone: silent, complete, playable."""

import io
import re

import pytest
from PIL import Image

LOCAL = ("file:", "data:", "blob:")
WIDTHS = {"desktop": 1280, "phone": 390}


@pytest.fixture(params=WIDTHS)
def opened(request, browser, page):
    """A page after it has loaded, with everything that it complained about or asked for."""
    context = browser.new_context(viewport={"width": WIDTHS[request.param], "height": 900})
    tab = context.new_page()
    tab.complaints, tab.asked = [], []
    tab.on("console", lambda message: tab.complaints.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
    tab.on("requestfailed", lambda sent: tab.complaints.append(f"could not load {sent.url}"))
    tab.on("request", lambda sent: None if sent.url.startswith(LOCAL) else tab.asked.append(sent.url))
    tab.goto(page.html.as_uri())
    tab.wait_for_function("() => !window.MathJax || !MathJax.startup || MathJax.startup.promise.then(() => true)")
    yield tab
    context.close()


def test_it_opens_in_silence(opened):
    assert opened.complaints == []
    assert opened.asked == []
    formulas = opened.locator("article .math").count()
    assert opened.locator("article .math mjx-container").count() >= formulas
    assert opened.locator("mjx-merror").count() == 0
    sideways = opened.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert sideways <= 0, "the page scrolls sideways"


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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_stand_on_the_page_s_own_ground(browser, lecture, scheme):
    """As they are on a light page; on a dark one with lightness turned round, maps by a picture of their own."""
    tab = browser.new_page(color_scheme=scheme)
    tab.goto(lecture.html.as_uri())
    pictures = tab.locator(".cell_output img:not(.fll img)")
    seen = [picture for picture in pictures.all() if picture.is_visible()]
    assert seen
    for picture in seen:
        effect = picture.evaluate("one => getComputedStyle(one).filter")
        turned = scheme == "dark" and "map" not in (picture.get_attribute("class") or "").split()
        assert ("invert" in effect) == turned
    # A slider over maps keeps their light ground: a second set of frames would double the page.
    first = next(one for one in seen if "dark-light map" != one.get_attribute("class"))
    corner = Image.open(io.BytesIO(first.screenshot())).convert("L").getpixel((1, 1))
    assert corner > 240 if scheme == "light" else corner < 60, "no white slab"
    tab.close()


def test_its_slider_moves_the_figure(browser, lecture):
    tab = browser.new_page(viewport={"width": 390, "height": 900})
    tab.goto(lecture.html.as_uri())
    figure = tab.locator("[id^=frames-], .fll").first
    slider = figure.locator("input[type=range]").first
    drawn = figure.evaluate("box => box.innerHTML")
    slider.focus()
    tab.keyboard.press("ArrowLeft" if slider.evaluate("slider => slider.value === slider.max") else "ArrowRight")
    tab.wait_for_function("([box, drawn]) => box.innerHTML !== drawn", arg=[figure.element_handle(), drawn])
    tab.close()


def test_a_prediction_is_kept_drawn_and_compared(browser, asking):
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.goto(asking.html.as_uri())
    tab.evaluate("localStorage.clear()")
    tab.reload()
    for number, box in enumerate(tab.locator(".predict:has(fieldset)").all()):
        inputs = box.locator("fieldset input")
        chosen = inputs.first
        chosen.check() if chosen.get_attribute("type") == "radio" else chosen.press("ArrowRight")
        value = chosen.input_value()
        box.get_by_role("button", name="Keep my prediction").press("Enter")
        assert "Kept in this browser" in box.locator(".said").inner_text()
        marked = "mark-" in (box.get_attribute("class") or "")
        assert tab.locator(".prediction").count() == marked, "drawn into the figure that follows"
        tab.reload()
        again = tab.locator(".predict:has(fieldset)").nth(number)
        assert again.locator("fieldset input").first.input_value() == value
        assert tab.locator(".prediction").count() == marked
        again.get_by_role("button", name="Compare").press("Enter")
        assert re.search("^(Right|You said)", again.locator(".said").inner_text())
        tab.evaluate("localStorage.clear()")
        tab.reload()
    tab.close()


def test_the_checks_are_closed_and_open_by_keyboard(browser, checked):
    tab = browser.new_page()
    tab.goto(checked.html.as_uri())
    checks = tab.locator("details.checks")
    inside = checks.locator(".cell").first
    assert tab.locator("section:has(> details.checks) > h2").is_visible() and not inside.is_visible()
    checks.locator("summary").first.press("Enter")
    inside.wait_for(state="visible", timeout=3000)
    tab.close()


def test_solutions_are_folded_and_open(browser, lecture):
    tab = browser.new_page()
    tab.goto(lecture.html.as_uri())
    solution = tab.locator(".solution.dropdown").first
    content = solution.locator(".section, .cell, p:not(.admonition-title)").first
    assert not content.is_visible()
    solution.locator(".admonition-title").click()
    content.wait_for(state="visible", timeout=3000)
    tab.close()


def test_folded_code_opens_by_keyboard(browser, lecture):
    tab = browser.new_page()
    tab.goto(lecture.html.as_uri())
    fold = tab.locator("div.cell.tag_kind-check details").first
    assert fold.locator("summary").inner_text() == "How this is checked"
    assert not fold.locator("pre").is_visible() and fold.locator("xpath=..").locator(".cell_output").is_visible()
    fold.locator("summary").press("Enter")
    fold.locator("pre").wait_for(state="visible", timeout=3000)
    assert "@title" not in tab.locator("article").inner_text()
    tab.emulate_media(media="print")
    assert tab.locator("div.cell details:not([open])").first.is_hidden()
    tab.close()
