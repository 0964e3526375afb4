"""The browser of the tests: how it is started, and what to do where there is none."""

import os

import pytest

CHROMIUM = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
CHROMIUM = (CHROMIUM + " --disable-component-update --disable-sync").split()


def missing(reason: str):
    """Skip and say why; where the browser checks are required (FLBOOK_BROWSER=required), fail."""
    if os.environ.get("FLBOOK_BROWSER") == "required":
        pytest.fail(reason)
    pytest.skip(reason)
