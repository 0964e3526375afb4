"""Where a stranger's code runs: a process of its own with limits, without a network and on a read-only disk.

Time and memory are limited everywhere. Linux also gives, to anyone, namespaces of their own: a network without an
interface, and a view of the disk in which everything is read-only but one empty folder in memory. Where it does not,
`isolation` says what is missing.
"""

import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import NamedTuple

# Every mount is set read-only, for this process and its children alone; then the one folder that may be written to.
_READ_ONLY = """
while read -r _ at _; do mount -o remount,bind,ro "$at" 2>/dev/null; done < /proc/mounts
mount -t tmpfs -o size=1g tmpfs "$1" && cd "$1" && shift && exec "$@"
"""
_NO_NETWORK = ("unshare", "--map-root-user", "--net")
_ALONE = (*_NO_NETWORK, "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", _READ_ONLY, "sh")
_KEPT = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH")  # no secrets of whoever grades


class Limits(NamedTuple):
    """What one run may take."""

    seconds: float = 300.0
    memory: int = 4 * 2**30  # bytes of data in a process


class Timeout(Exception):
    """The run was ended, because its time was over."""


@cache
def _prefix() -> tuple[str, ...]:
    """The strictest of the known ways to start a process that works here."""
    for command in (_ALONE, _NO_NETWORK):
        with tempfile.TemporaryDirectory(prefix="flbook-") as work, suppress(OSError, subprocess.TimeoutExpired):
            into = [work] if command is _ALONE else []
            if subprocess.run([*command, *into, "true"], capture_output=True, timeout=30).returncode == 0:
                return command
    return ()


def isolation() -> str:
    """What this system does not give, as a sentence; nothing if it gives everything."""
    if _prefix() == _ALONE:
        return ""
    lacks = "a read-only disk" if _prefix() == _NO_NETWORK else "a read-only disk, nor a cut network"
    return f"this system does not give {lacks}: grade where nothing can be lost, in a container for example."


def lines(arguments: list[str], given: str, limits: Limits) -> Iterator[str]:
    """Run ``python ARGUMENTS`` in the sandbox and yield the lines that it writes, as they come.

    Parameters
    ----------
    arguments
        Of the Python that runs this.
    given
        What the process reads from its standard input.
    limits
        Time and memory.

    Raises
    ------
    Timeout
        When the time is over; the process and its children are then ended.
    """
    work = tempfile.mkdtemp(prefix="flbook-")
    into = [work] if _prefix() == _ALONE else []
    process = subprocess.Popen(
        [*_prefix(), *into, sys.executable, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=work,
        env=_environment(work),
        start_new_session=True,
        preexec_fn=lambda: _limit(limits),
    )
    assert process.stdin is not None and process.stdout is not None  # pipes, both
    try:
        with suppress(BrokenPipeError):
            process.stdin.write(given.encode())
            process.stdin.close()
        yield from _read(process.stdout.fileno(), time.monotonic() + limits.seconds)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.wait()
        shutil.rmtree(work, ignore_errors=True)


def _environment(work: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS")}
    places = dict.fromkeys(("HOME", "TMPDIR", "FLBOOK_CACHE", "IPYTHONDIR", "MPLCONFIGDIR"), work)
    return kept | threads | places | {"MPLBACKEND": "agg", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8"}


def _limit(limits):
    """In the child, before it becomes another program."""
    limited = {resource.RLIMIT_DATA: limits.memory, resource.RLIMIT_FSIZE: 2**30, resource.RLIMIT_CORE: 0}
    for kind, most in limited.items():
        with suppress(ValueError, OSError):  # a system that has no such limit
            resource.setrlimit(kind, (most, most))


def _read(pipe, end):
    """Whole lines from a pipe until it closes; nobody has to write the last newline."""
    rest = b""
    while True:
        if not select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
            raise Timeout
        found = os.read(pipe, 65536)
        *whole, rest = (rest + found).split(b"\n")
        yield from (line.decode(errors="replace") for line in whole)
        if not found:
            return
