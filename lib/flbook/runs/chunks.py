"""Chunks of a sweep: one smaller setting, measured by one worker, in one file that is there whole or not at all."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from flbook.rng import fresh_seed
from flbook.runs import closure, files, settings


class Chunk(NamedTuple):
    """What to measure, where its file goes, and what the worker must agree on with the caller."""

    measure: Callable
    setting: Any
    device: str
    path: Path
    source: str
    fresh_seed: str
    every_axis: bool = True  # must every axis of the setting be a dimension of the result?


class Origin(NamedTuple):
    """Where a measure comes from: the name, version and files of its experiment, or of its module."""

    name: str
    version: int
    files: tuple[Path, ...]  # none where the source is no file, as in a notebook
    source: str
    experiment: Any = None

    def scale_of(self, setting: object) -> str:
        """The preset that a setting is, else ``"custom"``.

        Parameters
        ----------
        setting
            That of a run.

        Returns
        -------
        str
            The preset's name, or ``"custom"``.
        """
        return self.experiment.scale_of(setting) if self.experiment else "custom"


def origin(measure: Callable) -> Origin:
    """Where a measure comes from. Raises ValueError if it is neither an experiment's nor at a module's top level.

    Parameters
    ----------
    measure
        A function ``(setting, device) -> Dataset``, or a part of an experiment.

    Returns
    -------
    Origin
        The version of a function in no experiment is its module's ``VERSION``, or 0.
    """
    one = getattr(measure, "experiment", None)
    if one is not None:
        return Origin(one.name, one.version, one.files, one.source, one)
    module = sys.modules.get(getattr(measure, "__module__", ""))
    if module is None or getattr(module, getattr(measure, "__qualname__", ""), None) is not measure:
        raise ValueError(f"measure must be a function at the top level of a module, not {measure!r}")
    return _of_module(module)


def _of_module(module: ModuleType) -> Origin:
    file = Path(getattr(module, "__file__", None) or ".")
    files = closure.closure(file) if file.is_file() else ()
    return Origin(module.__name__.replace(".", "/"), getattr(module, "VERSION", 0), files, closure.digest(files))


def source_of(measure: Callable) -> str:
    """The digest of what a measure's code may run through.

    Parameters
    ----------
    measure
        As `origin` takes it.

    Returns
    -------
    str
        Sixteen hexadecimal digits.
    """
    return origin(measure).source


def work(chunk: Chunk) -> Path:
    """Measure one chunk and write its file: the function that runs on the workers.

    Raises RuntimeError if the worker would compute other numbers than the caller, ValueError if `measure` returns no
    Dataset with the chunk's axes as dimensions and ``long_name`` and ``units`` on every variable.

    Parameters
    ----------
    chunk
        What to measure, and where its file goes.

    Returns
    -------
    Path
        That of the file.
    """
    if (fresh_seed(), source_of(chunk.measure)) != (chunk.fresh_seed, chunk.source):
        raise RuntimeError(
            "the worker has another FLBOOK_SEED or another source of flbook than the caller; "
            "start the workers anew, in the caller's environment"
        )
    start = time.perf_counter()
    dataset = getattr(chunk.measure, "uncached", chunk.measure)(chunk.setting, chunk.device)
    seconds = time.perf_counter() - start
    files.save(_labelled(dataset, chunk).assign_attrs(seconds=seconds), chunk.path)
    return chunk.path


def read(chunk: Chunk) -> xr.Dataset | None:
    """The chunk's numbers from its file, in memory; None if there is no file, or it is damaged.

    Parameters
    ----------
    chunk
        That whose file is read.

    Returns
    -------
    xarray.Dataset | None
        The numbers; the chunk's axes are labelled coordinates.
    """
    try:
        return _labelled(files.load(chunk.path).drop_encoding(), chunk)
    except (OSError, ValueError):
        return None


def _labelled(dataset: object, chunk: Chunk) -> xr.Dataset:
    """The Dataset with the chunk's axes as labelled coordinates, once it is as a measurement has to be."""
    name = origin(chunk.measure).name
    if not isinstance(dataset, xr.Dataset):
        raise ValueError(f"{name} must return an xarray.Dataset, not {type(dataset).__name__}")
    axes = settings.axes(chunk.setting)
    sizes = {axis: len(values) for axis, values in axes.items()}
    found = {axis: dataset.sizes.get(axis, 0) for axis in sizes}
    if chunk.every_axis and found != sizes:
        raise ValueError(f"{name} must return every axis as a dimension: it returned {found} for the axes {sizes}")
    bare = [str(key) for key, da in dataset.data_vars.items() if not {"long_name", "units"} <= da.attrs.keys()]
    if bare:
        raise ValueError(f"{name} must give every variable the attributes long_name and units; {bare[0]!r} lacks one")
    for axis, values in axes.items():
        if found[axis] == sizes[axis] and axis in dataset.dims:
            metadata = dict(type(chunk.setting).__dataclass_fields__[axis].metadata)
            attrs = dataset[axis].attrs if axis in dataset.coords and dataset[axis].attrs else metadata
            dataset = dataset.assign_coords({axis: (axis, np.asarray(values), attrs)})
    return dataset
