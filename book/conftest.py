"""What the lectures are executed under when pytest (nbval) tests them.

Kernels inherit this process's environment: a missed key number raises, one thread, no display, and a cache that starts
empty, so that no lecture passes on numbers of yesterday.
"""

import os
import shutil
import tempfile

ENVIRONMENT = {
    "FLBOOK_STRICT": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
}


def pytest_configure(config):
    os.environ.update(ENVIRONMENT)
    if not hasattr(config, "workerinput"):  # the workers of pytest-xdist inherit the folder of the process above them
        os.environ["FLBOOK_CACHE"] = tempfile.mkdtemp(prefix="flbook-")


def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ["FLBOOK_CACHE"], ignore_errors=True)
