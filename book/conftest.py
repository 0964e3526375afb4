"""What the lectures are executed under when pytest (nbval) tests them.

Kernels inherit this process's environment: a missed key number raises, one thread, no display, and a cache that starts
empty, so that no lecture passes on numbers of yesterday. A kernel that falls silent is noticed and started once more.
"""

import logging
import os
import shutil
import tempfile
import time
from contextlib import suppress
from queue import Empty

import nbval.plugin
import pytest
from nbval.kernel import RunningKernel

from flbook.book.cost import seconds

ANSWER_SECONDS = 30  # within which a kernel starts, and takes up a cell; as in flbook.book.executor

ENVIRONMENT = {
    "FLBOOK_STRICT": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
}


class Kernel(RunningKernel):
    """nbval's kernel; one that does not start or take up a cell within half a minute is started once more."""

    def __init__(self, kernel_name, cwd=None, startup_timeout=None):
        self.ran, self.starts_left = [], 2
        self.begin = lambda: RunningKernel.__init__(self, kernel_name, cwd, ANSWER_SECONDS)
        self.start("")

    def start(self, reason):
        """Start a kernel and bring it to where the one before it was; there is no third."""
        while True:
            if self.is_alive():
                self.stop()
            if not self.starts_left:
                pytest.fail(f"The kernel, started twice, does not answer: {reason}.", pytrace=False)
            self.starts_left -= 1
            try:
                self.begin()
                for source in self.ran:
                    self.await_reply(self.take_up(source), timeout=120)
                return
            except (RuntimeError, Empty) as error:
                reason = str(error) or reason

    def take_up(self, source):
        """Send a cell; the kernel says at once that it takes it up, however long it then computes."""
        sent = super().execute_cell_input(source, allow_stdin=False)
        end = time.monotonic() + ANSWER_SECONDS
        while self.get_message("iopub", max(0, end - time.monotonic()))["parent_header"].get("msg_id") != sent:
            pass
        return sent

    def execute_cell_input(self, cell_input, allow_stdin=None):
        while True:
            with suppress(Empty):
                sent = self.take_up(cell_input)
                self.ran.append(cell_input)
                return sent
            self.start(f"no answer in {ANSWER_SECONDS} s")

    def await_reply(self, msg_id, timeout=None):
        """Wait as nbval does, but for no dead kernel."""
        end = time.monotonic() + timeout
        while True:
            try:
                return super().await_reply(msg_id, timeout=1)
            except Empty:
                if not self.is_alive():
                    pytest.fail("The kernel died.", pytrace=False)
                if time.monotonic() > end:
                    raise


def pytest_configure(config):
    nbval.plugin.RunningKernel = Kernel
    logging.getLogger("nbval").setLevel(logging.CRITICAL)  # of a failed start we say one sentence, it a traceback
    os.environ.update(ENVIRONMENT)
    if not hasattr(config, "workerinput"):  # the workers of pytest-xdist inherit the folder of the process above them
        os.environ["FLBOOK_CACHE"] = tempfile.mkdtemp(prefix="flbook-")


def pytest_collection_modifyitems(items):
    """The longest pages go first, so that at the end no worker waits for one; cells stay in their order."""
    stated = {path: seconds(path.read_text(encoding="utf-8")) for path in {item.path for item in items}}
    items.sort(key=lambda item: -stated[item.path])


def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ["FLBOOK_CACHE"], ignore_errors=True)
