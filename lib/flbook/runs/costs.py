"""Costs: what each preset of an experiment took, or is estimated to take, written down so that listing runs nothing.

A preset costs what its first and its last chunk take, times their number over two; where one of them takes longer than
a limit, or lacks its data here, it costs what the book's preset takes, times the ratio of the numbers of cells. A
result that was stored brings its own seconds and device. Times are the processor's, so that what else the machine does
costs nothing; memory is the peak of the whole process.
"""

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from flbook.runs import files, settings
from flbook.runs.experiment import Experiment
from flbook.runs.sweep import plan


class Cost(NamedTuple):
    """One preset: what it is, how large, and what it takes."""

    says: str
    size: str
    seconds: float
    gigabytes: float
    device: str
    how: str  # "run", "chunks" or "cells"

    def __str__(self) -> str:
        """As a line of a list."""
        about = {"run": "", "chunks": "about ", "cells": "roughly "}[self.how]
        takes = f"{about + _time(self.seconds):>14} {self.gigabytes:5.1f} GB  {self.device:<5}"
        return f"{self.size:<44} {takes} {self.says}"


def read(file: Path) -> dict[str, dict[str, Cost]]:
    """The costs of a file by experiment and preset; none if there is no such file.

    Parameters
    ----------
    file
        A JSON file, as `write` makes it.

    Returns
    -------
    dict[str, dict[str, Cost]]
        By name of the experiment, then by preset.
    """
    kept = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return {name: {preset: Cost(**cost) for preset, cost in presets.items()} for name, presets in kept.items()}


def write(file: Path, costs: dict[str, dict[str, Cost]]) -> None:
    """Write costs, one preset a line.

    Parameters
    ----------
    file
        The file, which is replaced.
    costs
        By name of the experiment, then by preset.
    """
    rows = []
    for name, presets in sorted(costs.items()):
        lines = [f"  {json.dumps(preset)}: {json.dumps(cost._asdict(), ensure_ascii=False)}"
                 for preset, cost in presets.items()]
        rows.append(f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}")
    files.write(file, ("{\n" + ",\n".join(rows) + "\n}\n").encode())


def size(setting: settings.Grid) -> str:
    """How many values each axis has, and how many cells that makes.

    Parameters
    ----------
    setting
        A setting.

    Returns
    -------
    str
        As in ``"3 lr x 10 seed = 30"``; axes of one value are left out.
    """
    axes = settings.axes(setting)
    long = " x ".join(f"{len(values)} {name}" for name, values in axes.items() if len(values) > 1)
    return f"{long or 'one cell'} = {prod(setting.shape):,}" if long else "1"


def costs(experiment: Experiment, limit: float = 2.0) -> dict[str, Cost]:
    """The cost of every preset, the book's first.

    The book's preset is run whole. Data in the cache is not used.

    Parameters
    ----------
    experiment
        The experiment.
    limit
        Seconds that a chunk of a preset may take; the book's and the tiny one run to their end.

    Returns
    -------
    dict[str, Cost]
        By preset.
    """
    found, names = {}, ["book", *(name for name in experiment.presets if name != "book")]
    for name in names:
        setting = experiment.setting(name)
        with _peak() as peak:
            seconds, device, how = _taken(experiment, name, found.get("book"), limit)
        found[name] = Cost(experiment.presets[name], size(setting), _round(seconds), _round(peak()), device, how)
    return {name: found[name] for name in experiment.presets}


def _taken(experiment: Experiment, name: str, book: Cost | None, limit: float) -> tuple[float, str, str]:
    """Seconds, the device, and how they are known."""
    if experiment.file and experiment.path(preset=name).is_file() and name == experiment.larger:
        stored = experiment.stored()
        return float(stored.attrs["seconds"]), str(stored.attrs["device"]), "run"
    chunks = [one.setting for one in plan(experiment.whole, experiment.setting(name), chunk=experiment.chunk)]
    if book is None:
        return sum(_seconds(experiment, one, None) for one in chunks), "cpu", "run"
    if name == "tiny":
        return _seconds(experiment, experiment.setting(name), None), "cpu", "run"
    ends = chunks[:1] + chunks[1:][-1:]
    try:
        taken = [_seconds(experiment, one, limit) for one in ends]
    except OSError:  # a TimeoutError, or its data cannot be had here
        ratio = prod(experiment.setting(name).shape) / prod(experiment.setting("book").shape)
        return book.seconds * max(ratio, limit / max(book.seconds, limit)), "cpu", "cells"
    return sum(taken) / len(taken) * len(chunks), "cpu", "run" if len(chunks) == len(ends) else "chunks"


def _seconds(experiment: Experiment, setting: settings.Grid, limit: float | None) -> float:
    """Seconds of the processor. Raises TimeoutError beyond the limit, where the system has an alarm."""
    def ring(*_: Any) -> None:
        raise TimeoutError

    alarmed = limit is not None and hasattr(signal, "SIGPROF")
    before = signal.signal(signal.SIGPROF, ring) if alarmed else None
    begin = time.process_time()
    try:
        if alarmed and limit is not None:
            signal.setitimer(signal.ITIMER_PROF, limit)
        experiment.measure(setting)
        return time.process_time() - begin
    finally:
        if alarmed:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)


@contextmanager
def _peak() -> Iterator:
    """A function that gives the peak memory of this process within the block, in GB."""
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if status.is_file():
        reset.write_text("5")  # the peak starts again from what is in use

    def peak() -> float:
        if status.is_file():
            line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
            return int(line.split()[1]) / 1e6
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e9  # in bytes on macOS

    yield peak


def _round(value: float) -> float:
    return float(f"{value:.2g}")


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
