"""The built Ledger page: its filter, by keyboard, the addresses of its claims, and the page without scripts."""

import re

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
    opened.get_by_label("Filter the claims by whole words").press_sequentially("nothing has these words")
    assert status(opened, "No") == f"No claim of {len(records)} fits."
    opened.get_by_label("Filter the claims by whole words").fill("XOR angle")
    opened.wait_for_function("() => /^\\d+ of/.test(document.getElementById('ledger-status').textContent)")
    found = opened.locator("#ledger-status").inner_text()
    assert found.startswith(f"{shown(opened)} of {len(records)} claims, in ") and shown(opened) > 0
    rows = opened.locator(".ledger-claims tbody tr:visible").all_inner_texts()
    assert all(re.search(r"\bangle\b", row.lower()) for row in rows)
    opened.get_by_label("Filter the claims by whole words").fill("ang")
    assert status(opened, "No"), "a piece of a word is none"
    opened.get_by_label("Filter the claims by whole words").fill("")
    status(opened, "All")
    assert shown(opened) == 0 and opened.locator(".ledger-claims:visible").count() > 5, "folded again, and all there"


def test_headlines_and_weak_ones_by_keyboard(opened):
    records = ledger.collect()
    headlines = [record for record in records if record["headline"]]
    weak = [record for record in headlines if record["sharpness"] is not None and record["sharpness"] < ledger.SHARP[1]]
    opened.get_by_label("Filter the claims by whole words").focus()
    opened.keyboard.press("Tab")
    opened.keyboard.press("Space")
    assert status(opened, f"{len(headlines)} of") and shown(opened) == len(headlines)
    opened.keyboard.press("Tab")
    opened.keyboard.press("Space")
    assert status(opened, f"{len(weak)} of") and shown(opened) == len(weak) > 0
    opened.keyboard.press("Enter")
    assert opened.url.endswith("ledger.html?headlines=1&weak=1"), "the filter stands in the address"
    opened.reload()
    assert status(opened, f"{len(weak)} of") and shown(opened) == len(weak)


def test_one_mark(opened):
    close = [record for record in ledger.collect() if record["mark"] == "close"]
    opened.get_by_label("Mark").select_option("close")
    assert status(opened, f"{len(close)} of") and shown(opened) == len(close) > 0
    assert all("≈ close" in row for row in opened.locator(".ledger-claims tbody tr:visible").all_inner_texts())
    assert opened.url.endswith("ledger.html?mark=close")
    opened.reload()
    assert status(opened, f"{len(close)} of") and shown(opened) == len(close)


def test_a_lecture_links_its_claim_and_the_row_is_shown(opened, built):
    """Even where the filter of the address would hide it."""
    opened.goto((built / "book/benign_overfitting/xor.html").as_uri())
    link = opened.locator("details.flbook-claim a[href*='ledger.html#']").first
    name = link.get_attribute("href").partition("#")[2]
    assert name == link.text_content() and name in {record["name"] for record in ledger.collect()}
    opened.goto((built / "book/ledger.html").as_uri() + "?words=mamba#" + name)
    row = opened.locator(f"tr:has([id='{name}'])")
    row.wait_for(state="visible", timeout=5000)
    assert status(opened, "") and opened.get_by_label("Filter the claims by whole words").input_value() == "mamba"
    opened.wait_for_function("row => row.getBoundingClientRect().top > 0", arg=row.element_handle())
    assert 0 < row.bounding_box()["y"] < 900


def test_every_claim_has_an_address_of_its_own(built):
    page = (built / "book/ledger.html").read_text()
    names = re.findall(r'<a class="headerlink" id="([^"]+)"', page)
    assert names == list(dict.fromkeys(names)) and set(names) == {record["name"] for record in ledger.collect()}


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
