"""What the tests run under: one thread (or what is set outside), no display, an empty cache, no seed, no strictness."""

import os
import shutil
import sys
import tempfile

import chosen
import pytest
from headless import CHROMIUM, missing


def pytest_configure(config):
    config.addinivalue_line("markers", "numeric: what it computes may hang on the processor (support/chosen.py)")
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # `make kernels` asks for two: sums in another order
    os.environ["MPLBACKEND"] = "agg"
    for name in ("FLBOOK_STRICT", "FLBOOK_SEED"):
        os.environ.pop(name, None)
    if not hasattr(config, "workerinput"):  # the workers of pytest-xdist inherit the folder of the process above them
        os.environ["FLBOOK_CACHE"] = tempfile.mkdtemp(prefix="flbook-")


def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ["FLBOOK_CACHE"], ignore_errors=True)


def pytest_ignore_collect(collection_path, config):
    """`-m numeric` does not even import what is not."""
    if config.option.markexpr == "numeric" and collection_path.name.startswith("test_"):
        return None if chosen.numeric(collection_path) else True


@pytest.hookimpl(tryfirst=True)  # before what the marks deselect
def pytest_collection_modifyitems(config, items):
    """Mark what is numeric, and keep what is about the lectures asked for."""
    for item in items:
        if chosen.numeric(item.path):
            item.add_marker("numeric")
    asked = chosen.lectures()
    if asked:
        cases = [item.callspec.id if hasattr(item, "callspec") else "" for item in items]
        kept = [any(chosen.about(one, item.path, case) for one in asked)
                for item, case in zip(items, cases, strict=True)]
        config.hook.pytest_deselected(items=[item for item, keep in zip(items, kept, strict=True) if not keep])
        items[:] = [item for item, keep in zip(items, kept, strict=True) if keep]


@pytest.fixture(autouse=True)
def same_numbers():
    """A test that draws its own numbers draws the same ones every time."""
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    """A test that draws leaves no figure to the next one."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def without_type_checks():
    """As a user calls the library: annotations are checked under pytest only, and would speak first."""
    from jaxtyping import config

    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


@pytest.fixture(scope="module")
def chromium():
    """The system's Chromium, headless; closed with its module, because Playwright allows one at a time."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not path:
        missing("no chromium on the PATH (on Debian: apt-get install chromium)")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed here: run `make test`")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=CHROMIUM)
        yield browser
        browser.close()
