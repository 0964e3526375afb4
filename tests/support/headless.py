"""The browser of the tests: how it is started, what there is without one, and a page that tells what went wrong."""

import os
import shutil
from contextlib import contextmanager

import pytest

CHROMIUM = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
CHROMIUM = (CHROMIUM + " --disable-component-update --disable-sync").split()
LOCAL = ("file:", "data:", "blob:")
LEFT = "net::ERR_ABORTED"  # what was being loaded as its page was left: no fault of the page


def missing(reason: str):
    """Skip and say why; where the browser checks are required (FLBOOK_BROWSER=required), fail."""
    if os.environ.get("FLBOOK_BROWSER") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


def needs_chromium():
    """Skip where there is no Chromium; returns its path."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    return path or missing("no chromium on the PATH (on Debian: apt-get install chromium)")


def failed(sent) -> list[str]:
    """What there is to complain about in a request that failed."""
    return [] if sent.failure == LEFT else [f"could not load {sent.url}"]


@contextmanager
def opened(browser, address: str, **how):
    """A page after it has loaded, with everything that it complained about or asked for."""
    context = browser.new_context(**how)
    tab = context.new_page()
    tab.complaints, tab.asked = [], []
    tab.on("console", lambda message: tab.complaints.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
    tab.on("requestfailed", lambda sent: tab.complaints.extend(failed(sent)))
    tab.on("request", lambda sent: None if sent.url.startswith(LOCAL) else tab.asked.append(sent.url))
    try:
        arrive(tab, address)
        yield tab
    finally:
        context.close()


def arrive(tab, address: str):
    """Go there, and wait until its formulas are set."""
    tab.goto(address)
    tab.wait_for_function("() => !window.MathJax || !MathJax.startup || MathJax.startup.promise.then(() => true)")


def arrive_again_until(tab, shown):
    """Load a page once more, five times at most, while `shown()` does not find what was just stored.

    About once in a hundred times the browser gives a page the store of a moment before, and no event for what it
    missed; what was stored is there once the page is loaded again, on a loaded machine a little later.
    """
    for again in range(5):
        if shown():
            return
        tab.wait_for_timeout(100 * again)
        arrive(tab, tab.url)
