"""Sweeps: the axes of a setting, measured chunk by chunk into one labelled Dataset; cached, and resumed after a kill.

A chunk is a smaller setting, so ``measure(chunk, device)`` is the same function for one cell and for the whole grid,
and vectorises over whatever it is given. A chunk's file has its final name only when it is complete, so an interrupted
sweep leaves what it finished, and the next call starts from there.

A file's name carries a digest of everything that may change its numbers: the measure and its version, the chunk, the
kind of device, ``FLBOOK_SEED`` and the files that the measure's code may run through (`flbook.runs.closure`). So a
stale number is never read. Old files stay; the cache folder may be deleted at any time. A measure that is defined in a
notebook leaves no file, since its source cannot be traced, and neither does one that was edited after it was imported.
"""

import dataclasses
import itertools
import os
import subprocess
import sys
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from tqdm import tqdm

from flbook.rng import fresh_seed
from flbook.runs import closure, settings
from flbook.runs.chunks import Chunk, origin, read, work

_PACKAGE = Path(__file__).parent.parent


def sweep(
    measure: Callable,
    setting: object,
    *,
    device: object = "cpu",
    chunk: Mapping | None = None,
    executor: object = None,
    progress: bool | None = None,
    cache: str | os.PathLike | None = None,
) -> xr.Dataset:
    """Measure a setting over all of its axes.

    Parameters
    ----------
    measure
        Function at the top level of a module, ``measure(setting, device) -> Dataset``; every axis of the setting is a
        dimension of what it returns, and every variable carries ``long_name`` and ``units``. A cell's value must depend
        on the cell alone, not on the grid around it.
    setting
        Frozen dataclass; its tuples are the axes.
    device
        Handed to `measure`; checked before any work unless an `executor` does the work elsewhere.
    chunk
        How many values of an axis a chunk may take, such as ``{"seed": 8}``; the whole axis where it is not named.
    executor
        Anything with ``submit`` that returns something with ``result``: a process pool, Dask
        (``Client.get_executor()``), submitit. Its workers need the cache folder on a file system that they share.
    progress
        Bar on stderr; None shows it on a terminal only.
    cache
        Folder of the chunk files; else ``$FLBOOK_CACHE``, else ``~/.cache/flbook``.

    Returns
    -------
    xarray.Dataset
        The axis values are coordinates. Attributes: the experiment, its version, the setting, its scale, source digest,
        commit, device, seconds (the sum over chunks), ``FLBOOK_SEED``, and ``not_finite``, which says how many values
        of which variables are nan or infinite, and is empty if none is. Warns of a variable without a finite value that
        the experiment does not call ``missing``.

    Raises
    ------
    ValueError
        For a bad setting or argument, before any work starts.
    RuntimeError
        When a worker was killed; calling again resumes.
    """
    about = _about(measure, setting, device)
    _check_place(device, executor)
    traced = _traced(measure)
    every = plan(measure, setting, device=device, chunk=chunk, cache=cache, traced=traced)
    kept = [read(chunk) for chunk in every]
    todo = [chunk for chunk, part in zip(every, kept, strict=True) if part is None]
    hidden = None if progress is None else not progress
    with tqdm(total=len(every), initial=len(every) - len(todo), disable=hidden, desc=about["experiment"]) as bar:
        for _ in map(work, todo) if executor is None else _handed_out(executor, todo):
            bar.update()
    done = [_finished(chunk) if part is None else part for chunk, part in zip(every, kept, strict=True)]
    if not traced:
        for one in every:
            one.path.unlink(missing_ok=True)
    seconds = sum(part.attrs.pop("seconds") for part in done)
    whole = _join(done, {name: len(ends) for name, ends in _pieces(setting, chunk).items()})
    lost, missing = not_finite(whole), getattr(getattr(measure, "experiment", None), "missing", ())
    for name, (count, size) in lost.items():
        if count == size and name not in missing:
            warnings.warn(f"{about['experiment']}: no value of {name} is finite; has training diverged?", stacklevel=2)
    about["not_finite"] = ", ".join(f"{name}: {count} of {size}" for name, (count, size) in lost.items())
    return whole.assign_attrs(about, seconds=round(float(seconds), 3))


def not_finite(dataset: xr.Dataset) -> dict[str, tuple[int, int]]:
    """How many values of each variable are nan or infinite, where any is.

    Parameters
    ----------
    dataset
        The result of a run.

    Returns
    -------
    dict[str, tuple[int, int]]
        By name: such values, and all values.
    """
    floats = {str(name): values for name, values in sorted(dataset.data_vars.items()) if values.dtype.kind in "fc"}
    counts = {name: int((~np.isfinite(values.values)).sum()) for name, values in floats.items()}
    return {name: (count, floats[name].size) for name, count in counts.items() if count}


def plan(measure: Callable, setting: object, *, device: object = "cpu", chunk: Mapping | None = None,
         cache: str | os.PathLike | None = None, traced: bool = True) -> list[Chunk]:
    """The chunks that a sweep of this setting finds or measures; none is measured here.

    Parameters
    ----------
    measure, setting, device, chunk, cache
        As `sweep` takes them.
    traced
        Can the measure's source be followed, so that what was kept may be read again?

    Returns
    -------
    list[Chunk]
        In the order of the cells, the last axis running fastest.
    """
    about, axes, pieces = _about(measure, setting, device), settings.axes(setting), _pieces(setting, chunk)
    folder, own = cache_folder(cache), "" if traced else uuid.uuid4().hex
    return [_chunk(measure, part, about, str(device), folder, own) for part in _parts(setting, axes, pieces)]


def _pieces(setting: object, chunk: Mapping | None) -> dict[str, list[tuple[int, int]]]:
    return cut({name: len(values) for name, values in settings.axes(setting).items()}, chunk or {})


def cut(sizes: Mapping[str, int], chunk: Mapping) -> dict[str, list[tuple[int, int]]]:
    """Where to cut each axis: ``(start, stop)`` pairs of about equal width, none wider than `chunk` allows.

    Parameters
    ----------
    sizes
        Number of values of each axis.
    chunk
        Number of values of an axis that a piece may have; the whole axis where it is not named.

    Returns
    -------
    dict[str, list[tuple[int, int]]]
        The pieces of each axis, in order.
    """
    for name, width in chunk.items():
        if name not in sizes:
            raise ValueError(f"chunk names {name!r}, which is no axis of the setting; these are: {', '.join(sizes)}")
        if isinstance(width, bool) or not isinstance(width, int) or width < 1:
            raise ValueError(f"chunk must give {name!r} a whole number of values, at least 1; got {width!r}")
    counts = {name: -(-size // chunk.get(name, size)) for name, size in sizes.items()}
    ends = {name: [size * k // counts[name] for k in range(counts[name] + 1)] for name, size in sizes.items()}
    return {name: list(itertools.pairwise(end)) for name, end in ends.items()}


def _about(measure: Callable, setting: object, device: object) -> dict[str, Any]:
    """The attributes of the result that are known before it."""
    settings.axes(setting)  # refuses what is no setting
    came = origin(measure)
    if came.experiment is not None:
        came.experiment.check_device(device)
    return {
        "experiment": came.name,
        "version": came.version,
        "setting": settings.to_json(setting),
        "scale": came.scale_of(setting),
        "source": came.source,
        "commit": _commit(),
        "device": str(device).partition(":")[0],
        "fresh_seed": fresh_seed(),
    }


@lru_cache
def _commit() -> str:
    """The last commit that touched flbook's source, or "" where it is in no repository."""
    command = ["git", "-C", str(_PACKAGE), "log", "-1", "--format=%H", "--", "."]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _check_place(device: Any, executor: object) -> None:
    """Is there what the work would run on? The CPU is, so a sweep on it need not import torch."""
    if executor is None and str(device) != "cpu":
        from flbook.devices import device as present

        present(device)
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise ValueError(f"executor must have submit (a process pool, Dask's get_executor()), not {executor!r}")


def cache_folder(cache: str | os.PathLike | None) -> Path:
    """The folder of the chunk files: the one given, else ``$FLBOOK_CACHE``, else ``~/.cache/flbook``; made if missing.

    Raises ValueError if it cannot be made or written to.

    Parameters
    ----------
    cache
        The folder given, if any.

    Returns
    -------
    Path
        An absolute path.
    """
    folder = Path(cache or os.environ.get("FLBOOK_CACHE") or Path.home() / ".cache" / "flbook").expanduser().absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"cache folder {str(folder)!r} cannot be made ({error.strerror}); set FLBOOK_CACHE") from None
    if not os.access(folder, os.W_OK):
        raise ValueError(f"cache folder {str(folder)!r} cannot be written to; set FLBOOK_CACHE to another one")
    return folder


def _traced(measure: Callable) -> bool:
    """Can the source of a measure be followed, and is it what was imported?"""
    files = origin(measure).files
    edited = closure.edited(files)
    if edited:
        print(f"flbook: {edited[0].name} was edited after it was imported; these numbers are of the code as it was "
              "imported, and are not kept. Restart Python to run the new code.", file=sys.stderr)
    return bool(files) and not edited


def _parts(setting: Any, axes: dict[str, tuple], pieces: dict) -> Iterator:
    """The smaller settings, the last axis running fastest."""
    for ends in itertools.product(*pieces.values()):
        yield dataclasses.replace(setting, **{name: axes[name][a:b] for name, (a, b) in zip(axes, ends, strict=True)})


def _chunk(measure: Callable, part: object, about: dict, device: str, folder: Path, own: str) -> Chunk:
    what = (about["experiment"], getattr(measure, "__qualname__", ""), about["version"], type(part).__qualname__, own)
    where = (about["device"], about["fresh_seed"], about["source"])
    stem = about["experiment"].rpartition("/")[2].replace(":", "_")
    name = f"{stem}-{settings.digest(*what, settings.to_json(part), *where)}.nc"
    every_axis = getattr(measure, "every_axis", True)
    return Chunk(measure, part, device, folder / name, about["source"], about["fresh_seed"], every_axis)


def _handed_out(executor: Any, todo: list[Chunk]) -> Iterator:
    """Results as they come, in order; if one fails, the chunks that have not started are called off."""
    jobs = []
    try:
        jobs = [executor.submit(work, chunk) for chunk in todo]
        yield from (job.result() for job in jobs)
    except BrokenExecutor:
        kept = sum(chunk.path.exists() for chunk in todo)
        raise RuntimeError(
            f"a worker process was killed (out of memory?): {kept} of the {len(todo)} chunks handed out are kept; "
            "make a new pool and call again, and the sweep resumes there"
        ) from None
    except BaseException:
        for job in jobs:
            getattr(job, "cancel", bool)()
        raise


def _finished(chunk: Chunk) -> xr.Dataset:
    dataset = read(chunk)
    if dataset is None:
        raise RuntimeError(
            f"the workers wrote no file that can be read at {str(chunk.path)!r}; "
            "cache must be a folder on a file system that caller and workers share"
        )
    return dataset


def _join(parts: list[xr.Dataset], counts: dict[str, int]) -> xr.Dataset:
    """Put the chunks together, the last axis first. A variable without an axis has to agree along it."""
    for name, count in reversed(counts.items()):
        rows = [parts[k : k + count] for k in range(0, len(parts), count)] if count > 1 else []
        try:
            parts = [xr.concat(row, name, data_vars="minimal", coords="minimal", compat="equals", join="exact",
                               combine_attrs="drop_conflicts") for row in rows] or parts
        except (xr.MergeError, ValueError) as error:
            raise ValueError(f"the chunks along {name!r} do not fit together: {error}") from None
    return parts[0]
