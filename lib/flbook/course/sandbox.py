"""Where a stranger's code runs: a process behind walls, with limits of time, memory, processes and output.

What is inside may start processes of its own. They are watched together: their number, and the memory that they hold.
"""

import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from threading import Event
from typing import NamedTuple

import psutil

from flbook.course.walls import Walls

_START = 120.0  # seconds until the first line: Python starts, on a slow machine too
_GRACE = 5.0  # beyond a step's seconds, after which it should have stopped itself
_GLANCE = 0.2  # seconds between two looks at the processes
_LONGEST, _MOST = 2**20, 2**24  # bytes of a line, and of all lines
_KEPT = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH")  # no secrets of whoever grades

INTERRUPTED = Event()  # set, it ends every run


class Limits(NamedTuple):
    """What one submission may take."""

    seconds: float = 60.0  # a step of it, a cell or the tests of a question
    memory: int = 4 * 2**30  # bytes, each process and all together
    processes: int = 100
    tasks: int = 200  # processes and threads, beside those that the same user has already

    @property
    def altogether(self) -> float:
        """Seconds for all steps."""
        return 5 * self.seconds


class Stopped(Exception):
    """The run was ended from outside; the message says why."""


def lines(arguments: list[str], job: dict, limits: Limits, walls: Walls | None, until: float) -> Iterator[str]:
    """Run ``python ARGUMENTS`` in the sandbox and yield the lines that it writes, as they come; each begins a step.

    Parameters
    ----------
    arguments
        Of the Python that runs this.
    job
        What the process reads from its standard input, as JSON, with ``limits`` beside it.
    limits
        What it may take.
    walls
        Around the process; none if nothing can be lost here.
    until
        When all has to be over, by `time.monotonic`.

    Yields
    ------
    str
        A line without its end.

    Raises
    ------
    Stopped
        When a limit is reached; the process and its children are then ended.
    """
    within = limits._replace(tasks=limits.tasks + _tasks(walls))
    with tempfile.TemporaryDirectory(prefix="flbook-") as work, tempfile.TemporaryFile() as given:
        given.write(json.dumps(job | {"limits": within}).encode())
        given.seek(0)
        process = subprocess.Popen(
            [*(walls.command(work) if walls else ()), sys.executable, *arguments],
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=work,
            env=_environment("/tmp" if walls else work),
            start_new_session=True,
        )
        assert process.stdout is not None  # a pipe
        try:
            yield from _read(process, limits, until)
        finally:
            _end(process)
            process.stdout.close()
            process.wait()


def _tasks(walls):
    """How many tasks the user inside has already; a newer Linux does not count them, an older one does."""
    if walls and walls.apart:
        return 0
    own = (one.info for one in psutil.process_iter(["uids", "num_threads"]))
    return sum(one["num_threads"] or 0 for one in own if one["uids"] and one["uids"].real == os.getuid())


def _environment(work: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS")}
    places = dict.fromkeys(("HOME", "TMPDIR", "FLBOOK_CACHE", "IPYTHONDIR", "MPLCONFIGDIR"), work)
    return kept | threads | places | {"MPLBACKEND": "agg", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8"}


def _read(process, limits, until):
    """Whole lines from a process until it closes its output; nobody has to write the last newline."""
    pipe, rest, total = process.stdout.fileno(), b"", 0
    silent, glance = time.monotonic() + max(_START, limits.seconds), 0.0
    while True:
        now = time.monotonic()
        if now > silent:
            raise Stopped(f"did not end within {limits.seconds:g} s")
        if now > until:
            raise Stopped(f"took the last of the {limits.altogether:g} s for all cells and tests")
        if now > glance:
            _watch(process, limits)
            glance = time.monotonic() + _GLANCE
        if not select.select([pipe], [], [], _GLANCE)[0]:
            continue
        found = os.read(pipe, 65536)
        total += len(found)
        *whole, rest = (rest + found).split(b"\n")
        if len(rest) > _LONGEST or total > _MOST:
            raise Stopped("wrote what it should not")
        for line in whole:
            silent = time.monotonic() + limits.seconds + _GRACE
            yield line.decode(errors="replace")
        if not found:
            return


def _watch(process, limits):
    """Look at a process and all that descend from it."""
    if INTERRUPTED.is_set():
        raise Stopped("was interrupted")
    family = _family(process)
    if len(family) > limits.processes:
        raise Stopped(f"started more than {limits.processes} processes")
    if all(_held(family, kind) > limits.memory for kind in ("rss", "pss")):  # the second counts shared pages once
        raise Stopped(f"held more than {limits.memory / 2**30:.2g} GiB of memory")


def _family(process):
    with suppress(psutil.Error):
        return [first := psutil.Process(process.pid), *first.children(recursive=True)]
    return []


def _held(family, kind):
    """Bytes that processes hold together; where the system does not tell the share of each, all that they map."""
    total = 0
    for one in family:
        with suppress(psutil.NoSuchProcess):
            total += getattr(_memory(one, kind), kind, one.memory_info().rss)
    return total


def _memory(one, kind):
    try:
        return one.memory_full_info() if kind == "pss" else one.memory_info()
    except psutil.AccessDenied:
        return one.memory_info()


def _end(process):
    """End a process and all that descend from it; behind walls the first process takes all others with it."""
    family = _family(process)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for one in family:
        with suppress(psutil.Error):
            one.kill()


def restrain(limits: Limits) -> None:
    """Limit this process and those that it will start; there is no way back without a capability.

    Parameters
    ----------
    limits
        What a submission may take.
    """
    most = {
        resource.RLIMIT_DATA: limits.memory,
        resource.RLIMIT_FSIZE: 2**29,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NPROC: limits.tasks,
        resource.RLIMIT_CPU: int(limits.altogether + _START),  # for what nobody watches any more
    }
    for kind, amount in most.items():
        with suppress(ValueError, OSError):  # a system that has no such limit
            resource.setrlimit(kind, (amount, amount))
