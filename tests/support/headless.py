"""The browser of the tests: how it is started, and what to do where there is none."""

import os
import shutil

import pytest

CHROMIUM = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
CHROMIUM = (CHROMIUM + " --disable-component-update --disable-sync").split()


def missing(reason: str):
    """Skip and say why; where the browser checks are required (FLBOOK_BROWSER=required), fail."""
    if os.environ.get("FLBOOK_BROWSER") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


def needs_chromium():
    """Skip where there is no Chromium; returns its path."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    return path or missing("no chromium on the PATH (on Debian: apt-get install chromium)")
