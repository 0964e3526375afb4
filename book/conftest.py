"""What the lectures are executed under when pytest (nbval) tests them.

Kernels inherit this process's environment: a missed key number raises, one thread, no display, and a cache that starts
empty, so that no lecture passes on numbers of yesterday. A kernel that falls silent is noticed and started once more.
"""

import os
import shutil
import tempfile
import time
from queue import Empty

import nbval.plugin
import pytest
from nbval.kernel import RunningKernel

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
        self.ran, self.restarted = [], False
        self.start = lambda: RunningKernel.__init__(self, kernel_name, cwd, ANSWER_SECONDS)
        try:
            self.start()
        except RuntimeError as error:
            self.again(error)

    def again(self, reason):
        """Start a second kernel and bring it to where the first one was; there is no third."""
        if self.is_alive():
            self.stop()
        if self.restarted:
            pytest.fail(f"The kernel, started twice, does not answer: {reason}.", pytrace=False)
        self.restarted = True
        try:
            self.start()
            for source in self.ran:
                self.await_reply(self.take_up(source), timeout=120)
        except (RuntimeError, Empty) as error:
            self.again(error)

    def take_up(self, source):
        """Send a cell; the kernel says at once that it takes it up, however long it then computes."""
        sent = super().execute_cell_input(source, allow_stdin=False)
        end = time.monotonic() + ANSWER_SECONDS
        while self.get_message("iopub", max(0, end - time.monotonic()))["parent_header"].get("msg_id") != sent:
            pass
        return sent

    def execute_cell_input(self, cell_input, allow_stdin=None):
        while True:
            try:
                sent = self.take_up(cell_input)
            except Empty:
                self.again(f"no answer in {ANSWER_SECONDS} s")
            else:
                self.ran.append(cell_input)
                return sent

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
    os.environ.update(ENVIRONMENT)
    if not hasattr(config, "workerinput"):  # the workers of pytest-xdist inherit the folder of the process above them
        os.environ["FLBOOK_CACHE"] = tempfile.mkdtemp(prefix="flbook-")


def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ["FLBOOK_CACHE"], ignore_errors=True)
