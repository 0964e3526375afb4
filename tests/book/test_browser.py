"""The built pages, opened from the file system in Chromium: silent, complete, playable.

A page is loaded once, on a phone, and asked everything; so it is on a desk, where it gets dark, too.
"""

import base64
import io
import re

import pytest
from headless import arrive, arrive_again_until, opened
from limits import IN_BROWSER, within
from PIL import Image

from flbook.plots import look

DESK, PHONE = ({"width": width, "height": 900} for width in (1280, 390))
PICTURES = ".cell_output img:not(.fll img)"
TOP = "e => e.getBoundingClientRect().top + scrollY"
HEIGHT = "e => e.getBoundingClientRect().height"
FITS = 844 - 48  # of a phone, below the bar above the page
KINDS = "search genindex prf-prf book/index book/ledger book/reference book/atlas book/bibliography".split()
KINDS += ["book/benign_overfitting/relu_heatmap"]
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def silent_and_whole(tab):
    assert tab.complaints == []
    assert tab.asked == []
    formulas = tab.locator("article .math").count()
    assert tab.locator("article .math mjx-container").count() >= formulas
    assert tab.locator("mjx-merror").count() == 0
    assert tab.evaluate(SIDEWAYS) <= 0, "the page scrolls sideways"


def bars_nobody(tab, contrast):
    """What axe finds, the theme's part of the page included; asked last, since formulas, which take long, go.

    Contrast takes as long as all else and comes of one style sheet: it is asked of each kind of page.
    """
    from axe_playwright_python.sync_playwright import Axe

    options = {"resultTypes": ["violations"], "preload": False}  # it would ask for style sheets, in vain
    options["rules"] = {"color-contrast": {"enabled": contrast}}
    tab.evaluate("document.querySelectorAll('mjx-container').forEach(formula => formula.remove())")
    found = Axe().run(tab, options=options)
    rules = [rule for rule in found.response["violations"] if rule["impact"] != "minor"]
    assert [(rule["id"], [node["html"] for node in rule["nodes"]][:3]) for rule in rules] == []


def live_figures_fit(tab):
    """From the first control over the picture to the verdict, a live figure is on the screen of a phone at once."""
    for figure in tab.locator(".fll").all():
        assert figure.locator(":is(input, select, button:not(.fll-fold)) >> visible=true").count() <= 4
        span = "box => box.querySelector('.fll-say').getBoundingClientRect().bottom - box.getBoundingClientRect().top"
        assert figure.evaluate(span) <= FITS


def panels_have_letters(tab, b):
    """Of two panels each has its letter; `b` says where that of the second stands, in parts of the picture."""
    where = """box => ["left", "top"].map(side => {
      const letter = getComputedStyle(box, "::after"), size = side === "left" ? box.clientWidth : box.clientHeight;
      return letter.content + (parseFloat(letter[side]) / size).toFixed(2);
    })"""
    for figure in tab.locator(".figure.two >> visible=true").all():
        assert figure.evaluate(where) == [f'"(b)"{part:.2f}' for part in b]


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
    shown = Image.open(io.BytesIO(first.screenshot())).convert("L")
    corner = shown.getpixel((1, shown.height - 2))  # the upper one may hold a panel's letter
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
    tab.wait_for_timeout(200)  # a loaded machine writes what is kept a little later
    arrive(tab, page.html.as_uri())
    arrive_again_until(tab, lambda: tab.get_by_role("button", name="Compare").count() == len(kept))
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


def formulas_are_whole(tab):
    """A displayed formula fits the column: of a wider one the end is cut, or lies under its number."""
    wider = "e => e.querySelector('mjx-container').scrollWidth - e.querySelector('mjx-container').clientWidth"
    formulas = "[...document.querySelectorAll('div.math')].filter(e => e.querySelector('mjx-container'))"
    cut = tab.evaluate(f"() => MathJax.startup.promise.then(() => {formulas}.map({wider}))")
    assert max(cut, default=0) <= 24, f"pixels beyond the column, formula by formula: {cut}"


def test_on_a_phone_and_on_a_desk(browser, page, lectures, asking, checked):
    """In one load, since setting the formulas takes longest; the phone first, where nothing is unfolded yet."""
    lecture = page in lectures
    with opened(browser, page.html.as_uri(), viewport=PHONE, color_scheme="light") as tab:
        silent_and_whole(tab)
        live_figures_fit(tab)
        if lecture:
            panels_have_letters(tab, (0, 0.45))
            the_slider_moves_the_figure(tab)
            assert tab.complaints == []
        tab.set_viewport_size(DESK)
        silent_and_whole(tab)
        if lecture:
            a_lecture_on_a_desk(tab, page, asks=page in asking, has_checks=page in checked)
        bars_nobody(tab, contrast=page.name in KINDS)


def a_lecture_on_a_desk(tab, page, asks, has_checks):
    panels_have_letters(tab, (0.5, 0))
    picture_first_and_end_near(tab, page.name.removeprefix("book/"))
    formulas_are_whole(tab)
    on_the_page_s_own_ground(tab, "light")
    tab.emulate_media(color_scheme="dark")
    tab.wait_for_selector("html[data-theme=dark]")
    on_the_page_s_own_ground(tab, "dark")
    tab.emulate_media(color_scheme="light")
    solutions_are_folded_and_open(tab)
    if has_checks:
        checks_open_by_keyboard(tab)
    folded_code_opens_by_keyboard(tab)
    if asks:
        predictions_are_kept_drawn_and_compared(tab, page)
    assert tab.complaints == []
    tab.emulate_media(media="print")
    assert tab.locator("div.cell details:not([open])").first.is_hidden()
    tab.emulate_media(media="screen")


def test_the_front_door_leads_to_the_book(browser, pages, built):
    tab = browser.new_page()
    tab.goto((built / "index.html").as_uri())
    tab.wait_for_url(f"**/{pages[0].name}.html", timeout=5000)
    tab.close()


@pytest.mark.parametrize("name", KINDS)
def test_in_the_dark_on_a_phone(browser, built, name):
    """A page of each kind, those among them that only the theme makes."""
    with opened(browser, (built / f"{name}.html").as_uri(), viewport=PHONE, color_scheme="dark") as tab:
        tab.wait_for_selector("html[data-theme=dark]")
        bars_nobody(tab, contrast=True)
        assert tab.complaints == []
        tab.set_viewport_size(DESK)
        logo = tab.locator("img.logo__image >> visible=true")
        assert logo.get_attribute("src").endswith("logo_dark.svg")
        corner = Image.open(io.BytesIO(logo.screenshot())).convert("L").getpixel((1, 1))
        assert corner < 60, "no white tile"


def luminance(pixel):
    return 1.05 / look.contrast(tuple(part / 255 for part in pixel[:3])) - 0.05


def test_every_series_is_seen_in_the_dark(browser, lectures):
    """A picture of all colours in place of a page's own; the last is that of stored pictures, drawn by viridis."""
    colours = [look.SIGNAL, look.NOISE, look.TEST, look.TRAIN, *look.OTHERS, *(of[0] for of in look.MODELS.values())]
    colours += [look.to_hex(look.SHADES(part / 5)) for part in range(6)] + ["#aadc32"]
    swatch = Image.new("RGB", (10 * len(colours), 40), "white")
    for k, colour in enumerate(colours):
        swatch.paste(colour, (10 * k, 0, 10 * k + 10, 20))
    held = io.BytesIO()
    swatch.save(held, "png")
    source = "data:image/png;base64," + base64.b64encode(held.getvalue()).decode()
    with opened(browser, lectures[0].html.as_uri(), viewport=DESK, color_scheme="dark") as tab:
        tab.wait_for_selector("html[data-theme=dark]")
        picture = tab.locator("picture.lines img >> visible=true").first
        show = """async (one, source) => {
          one.parentElement.querySelectorAll("source").forEach(wide => wide.remove());
          one.src = source;
          await one.decode();
        }"""
        picture.evaluate(show, source)
        seen = Image.open(io.BytesIO(picture.screenshot())).convert("RGB")
    step, ground = seen.width / len(colours), luminance(seen.getpixel((seen.width // 2, seen.height - 3)))
    for k, colour in enumerate(colours):
        shown = luminance(seen.getpixel((int((k + 0.5) * step), seen.height // 4)))
        assert (shown + 0.05) / (ground + 0.05) >= 3, colour


def test_without_scripts_a_page_says_how_its_formulas_are_read(browser, lectures):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(lectures[0].html.as_uri())
    note = tab.locator("article noscript .admonition")
    assert note.is_visible() and "Allow scripts for this page" in note.inner_text()
    context.close()
