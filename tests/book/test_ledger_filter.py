"""The filter of the built Ledger page, by keyboard, and the page without scripts."""

import pytest

from flbook.book import ledger


@pytest.fixture
def opened(browser, built):
    """The Ledger page, opened, with its filter in place."""
    tab = browser.new_page()
    tab.goto((built / "book/ledger.html").as_uri())
    tab.locator("#ledger-filter").wait_for(state="visible", timeout=5000)
    yield tab
    tab.close()


def shown(tab):
    return tab.locator(".ledger-claims tbody tr:visible").count()


def status(tab, begins):
    """The status line, once it begins so; it waits for a pause in typing."""
    says = "begins => document.getElementById('ledger-status').textContent.startsWith(begins)"
    tab.wait_for_function(says, arg=begins, timeout=5000)
    return tab.locator("#ledger-status").inner_text()


def test_it_finds_words(opened):
    records = ledger.collect()
    assert status(opened, "All") == f"All {len(records)} claims are listed." and shown(opened) == 0, "folded as before"
    opened.get_by_label("Filter the claims by words").press_sequentially("nothing has these words")
    assert status(opened, "No") == f"No claim of {len(records)} fits."
    opened.get_by_label("Filter the claims by words").fill("XOR angle")
    opened.wait_for_function("() => /^\\d+ of/.test(document.getElementById('ledger-status').textContent)")
    found = opened.locator("#ledger-status").inner_text()
    assert found.startswith(f"{shown(opened)} of {len(records)} claims, in ") and shown(opened) > 0
    rows = opened.locator(".ledger-claims tbody tr:visible").all_inner_texts()
    assert all("angle" in row.lower() for row in rows)
    opened.get_by_label("Filter the claims by words").fill("")
    status(opened, "All")
    assert shown(opened) == 0 and opened.locator(".ledger-claims:visible").count() > 5, "folded again, and all there"


def test_headlines_and_weak_ones_by_keyboard(opened):
    records = ledger.collect()
    headlines = [record for record in records if record["headline"]]
    weak = [record for record in headlines if record["sharpness"] is not None and record["sharpness"] < ledger.SHARP[1]]
    opened.get_by_label("Filter the claims by words").focus()
    opened.keyboard.press("Tab")
    opened.keyboard.press("Space")
    assert status(opened, f"{len(headlines)} of") and shown(opened) == len(headlines)
    opened.keyboard.press("Tab")
    opened.keyboard.press("Space")
    assert status(opened, f"{len(weak)} of") and shown(opened) == len(weak) > 0
    opened.keyboard.press("Enter")
    assert opened.url.endswith("ledger.html"), "nothing is sent"


def test_without_scripts_the_page_is_whole(browser, built):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto((built / "book/ledger.html").as_uri())
    assert tab.locator("#ledger-filter").is_hidden()
    assert tab.locator(".ledger-claims tbody tr:visible").count() == len(ledger.collect())
    context.close()


def test_no_other_page_loads_it(built, pages):
    loading = [page.name for page in pages if "ledger.js" in page.html.read_text()]
    assert loading == ["book/ledger"]
