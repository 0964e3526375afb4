"""The built pages, opened from the file system in Chromium on a desk and on a phone: silent, complete, playable."""

import pytest

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
def test_figures_stand_on_a_light_ground(browser, lecture, scheme):
    tab = browser.new_page(color_scheme=scheme)
    tab.goto(lecture.html.as_uri())
    grounds = tab.locator(".cell_output img").evaluate_all(
        "all => all.map(one => [getComputedStyle(one).backgroundColor, getComputedStyle(one).filter])"
    )
    assert grounds
    for ground, effect in grounds:
        assert effect == "none"
        if scheme == "dark":
            assert min(map(float, ground.removeprefix("rgb(").removesuffix(")").split(","))) > 240
    tab.close()


def test_its_slider_moves_the_figure(browser, lecture):
    tab = browser.new_page(viewport={"width": 390, "height": 900})
    tab.goto(lecture.html.as_uri())
    figure = tab.locator("[id^=frames-]").first  # beside it a live figure may have sliders of its own
    slider, picture = figure.locator("input[type=range]"), figure.locator("img")
    before = picture.get_attribute("src"), picture.get_attribute("alt")
    slider.focus()
    tab.keyboard.press("ArrowRight")
    assert picture.get_attribute("src") != before[0]
    assert picture.get_attribute("alt") != before[1]
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
