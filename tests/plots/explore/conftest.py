"""What the tests of live figures share: a page that knows their mathematics, and a page that shows one."""

import pytest

from flbook import plots
from flbook.plots import explore

PAGE = """<!doctype html><html lang="en" data-theme="{theme}"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>Live</title>
<style>body{{margin:0;padding:8px;background:{ground};color:{ink}}}</style></head><body><main><h1>Live</h1>{body}</main></body></html>"""


@pytest.fixture(scope="module")
def tab(chromium):
    """A page that knows every live figure's mathematics."""
    tab = chromium.new_page()
    tab.goto("about:blank")
    for name in ("core", *explore.FIGURES):
        tab.evaluate(explore.script(name))
    yield tab
    tab.close()


@pytest.fixture
def opened(chromium, tmp_path, monkeypatch):
    """A function that shows a figure as a page would, opens it, and keeps what it complains of and asks for."""
    outputs = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw, metadata: outputs.append((data, metadata)))
    tabs = []

    def open_figure(name, width=1280, theme="light", **given):
        fig = plots.panels(1)[0]
        plots.live(name, fig, alt="A still picture of the figure", **given)
        path = tmp_path / f"{name}.html"
        ground, ink = {"light": ("#fff", "#111"), "dark": ("#121417", "#eee")}[theme]
        path.write_text(PAGE.format(theme=theme, ground=ground, ink=ink, body=outputs[-1][0]["text/html"]))
        tab = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
        tabs.append(tab)
        tab.complaints, tab.asked = [], []
        tab.on("console", lambda m: tab.complaints.append(m.text) if m.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
        ours = ("file:", "data:", "blob:")
        tab.on("request", lambda r: None if r.url.startswith(ours) else tab.asked.append(r.url))
        tab.goto(path.as_uri())
        tab.wait_for_function("document.querySelector('.fll-say')?.textContent.length > 20")
        return tab

    yield open_figure
    for tab in tabs:
        tab.close()
