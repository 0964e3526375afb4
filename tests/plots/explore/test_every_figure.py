"""Every live figure: it opens in silence, keys alone are enough, a change is seen at once, and it is for everybody."""

import json
import re

import pytest
from axe_playwright_python.sync_playwright import Axe

from flbook import plots
from flbook.plots import explore, look


def luminance(colour):
    return 1.05 / look.contrast(colour) - 0.05


@pytest.mark.parametrize("name", explore.FIGURES)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_it_opens_in_silence_and_fits(opened, name, width, theme):
    tab = opened(name, width, theme)
    assert tab.complaints == [] and tab.asked == []
    assert tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    targets = "[...document.querySelectorAll('.fll :is(button, select, input)')].filter(e => e.checkVisibility())"
    small = targets + ".filter(e => e.offsetHeight < 24).length"
    assert tab.evaluate(small) == 0, "targets of at least 24 px"
    unnamed = "[...document.querySelectorAll('.fll :is(svg, canvas)')].filter(e => !e.ariaLabel).length"
    assert tab.evaluate(unnamed) == 0, "every picture says what it shows"


@pytest.mark.parametrize("name", explore.FIGURES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(opened, name, theme):
    """The rules of the Web Content Accessibility Guidelines that a machine can check, contrast among them."""
    found = Axe().run(opened(name, theme=theme)).response["violations"]
    assert [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found] == []


@pytest.mark.parametrize("name", explore.FIGURES)
def test_keys_alone_are_enough(opened, name):
    tab = opened(name, 360)
    tab.evaluate("document.querySelector('.fll-fold').click()")  # the focus stays before the figure
    reached = "[...document.querySelectorAll('.fll :is(button, select, input, canvas, [tabindex])')]"
    order = tab.evaluate(reached + ".filter(e => e.checkVisibility() && e.tabIndex >= 0).length")
    for _ in range(order):
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.closest('.fll') !== null")
    drawn = "[...document.querySelectorAll('.fll :is(svg, .fll-say)')].map(e => e.outerHTML).join()"
    sliders = tab.evaluate("[...document.querySelectorAll('.fll input[type=range]')].map(e => e.name)")
    for slider in sliders:
        before = tab.evaluate(drawn)
        tab.focus(f"[name={slider}]")
        end = "max" if tab.input_value(f"[name={slider}]") != tab.get_attribute(f"[name={slider}]", "max") else "min"
        tab.keyboard.press({"max": "End", "min": "Home"}[end])
        tab.wait_for_function(f"before => {drawn} !== before", arg=before)
    assert tab.complaints == []


@pytest.mark.parametrize("name", explore.FIGURES)
def test_picture_verdict_and_controls_fit_a_phone(opened, name):
    """Four controls at most; with the others unfolded, too, all of it is on the screen at once (390 x 844)."""
    tab = opened(name, 390)
    controls = tab.locator(".fll :is(input, select, button:not(.fll-fold)) >> visible=true")
    span = "document.querySelector('.fll-say').getBoundingClientRect().bottom - "
    span += "document.querySelector('.fll').getBoundingClientRect().top"
    shown = controls.count()
    assert 2 <= shown <= 4 and tab.evaluate(span) <= 844 - 48, "below the bar above the page"
    fold = tab.locator(".fll-fold")
    assert fold.get_attribute("aria-expanded") == "false"
    fold.press("Enter")
    assert fold.get_attribute("aria-expanded") == "true"
    assert controls.count() > shown and tab.evaluate(span) <= 844
    tab.set_viewport_size({"width": 1280, "height": 900})
    tab.wait_for_function("!document.querySelector('.fll-fold').checkVisibility()")


@pytest.mark.parametrize("theme", ["LIGHT", "DARK"])
def test_its_colours_are_seen_on_their_ground(theme):
    colours = dict(re.findall(r"--(\w+):(#\w+)", re.search(rf'const {theme} = "(.*?)"', explore.script("core"))[1]))
    ground = luminance(colours.pop("ground"))
    for name in colours.keys() - {"edge"}:  # frames and empty cells
        low, high = sorted((ground, luminance(colours[name])))
        assert (high + 0.05) / (low + 0.05) >= 3, name


@pytest.mark.parametrize("name", explore.FIGURES)
def test_a_change_is_seen_at_once(opened, name):
    """The middle of ten changes takes less than a tenth of a second, on a machine that may be busy."""
    tab = opened(name)
    slider = tab.evaluate("document.querySelector('.fll input[type=range]').name")
    times = tab.evaluate(
        """async name => {
        const input = document.querySelector(`[name=${name}]`), box = input.closest(".fll"), times = [];
        for (let k = 0; k < 10; k++) {
          input.value = +input.min + (k % 2 ? 0.25 : 0.3) * (input.max - input.min);
          const begin = performance.now();
          box.dispatchEvent(new Event("input"));
          input.dispatchEvent(new Event("input", {bubbles: true}));
          await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
          times.push(performance.now() - begin);
        }
        return times;
    }""",
        slider,
    )
    assert sorted(times)[5] < 400


@pytest.mark.parametrize("name", explore.FIGURES)
def test_its_weight(name):
    assert len((explore.script("core") + explore.script(name)).encode()) <= 42_000  # bytes, uncompressed
    assert "</script" not in explore.script(name) + explore.script("core")
    assert not re.search(r"https?://", explore.script(name) + explore.script("core"))


def test_the_still_picture_stands_where_no_script_runs(monkeypatch):
    outputs = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw, metadata: outputs.append((data, metadata)))
    for _ in range(2):
        plots.live("benign", plots.panels(1)[0], alt='Errors "above" the line', d=500)
    (data, metadata), (again, _) = outputs
    assert data == again and metadata["flbook"] == {"alt": 'Errors "above" the line', "live": "benign"}
    assert f'<img class="dark-light" src="data:image/png;base64,{data["image/png"]}"' in data["text/html"]
    assert json.dumps({"d": 500}) in data["text/html"]


@pytest.mark.parametrize(
    "name, changes, said",
    [
        ("malign", {}, "live: there is no figure 'malign'; there are benign"),
        ("benign", dict(steeps=3), "the figure 'benign' has no setting 'steeps'; did you mean 'steps'"),
        ("benign", dict(alt=" "), "live: alt is empty"),
    ],
)
def test_mistakes(name, changes, said):
    with pytest.raises(ValueError, match=said):
        plots.live(name, plots.panels(1)[0], **{"alt": "words", **changes})
