"""Chunks of a sweep: one smaller setting, measured by one worker, in one file that is there whole or not at all.

The file is netCDF followed by the 32 bytes of its SHA-256, which readers of netCDF pass over.
"""

import hashlib
import io
import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr

from flbook.runs import settings

_PACKAGE = Path(__file__).parent.parent
_LOOK_ONLY = {"plots", "book", "keynumbers.py", "__main__.py"}  # no experiment imports these


class Chunk(NamedTuple):
    """What to measure, where its file goes, and what the worker must agree on with the caller."""

    measure: Callable
    setting: object
    device: str
    path: Path
    source: str
    fresh_seed: str


def source_digest() -> str:
    """Digest of the source files of flbook that a measurement may run through."""
    files = sorted(file.relative_to(_PACKAGE) for file in _PACKAGE.rglob("*.py"))
    traced = [file for file in files if file.parts[0] not in _LOOK_ONLY]
    return settings.digest(*((file, (_PACKAGE / file).read_text()) for file in traced))


SOURCE = source_digest()  # of the files as they are imported, should they be edited while this process lives


def fresh_seed() -> str:
    """``FLBOOK_SEED``, or "" where it is not set."""
    return os.environ.get("FLBOOK_SEED", "")


def work(chunk: Chunk) -> Path:
    """Measure one chunk and write its file: the function that runs on the workers.

    Raises RuntimeError if the worker would compute other numbers than the caller, ValueError if `measure` returns no
    Dataset with the chunk's axes as dimensions and ``long_name`` and ``units`` on every variable.
    """
    if (fresh_seed(), SOURCE) != (chunk.fresh_seed, chunk.source):
        raise RuntimeError(
            "the worker has another FLBOOK_SEED or another source of flbook than the caller; "
            "start the workers anew, in the caller's environment"
        )
    start = time.perf_counter()
    dataset = chunk.measure(chunk.setting, chunk.device)
    seconds = time.perf_counter() - start
    write(_labelled(dataset, chunk).assign_attrs(seconds=seconds), chunk.path)
    return chunk.path


def write(dataset: xr.Dataset, path: Path) -> None:
    """Write a netCDF file that appears under its name only when it is complete, also after a power cut."""
    content = bytes(dataset.to_netcdf(engine="scipy"))
    temporary = path.with_name(f"{path.stem}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content + hashlib.sha256(content).digest())
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def read(chunk: Chunk) -> xr.Dataset | None:
    """The chunk's numbers from its file, in memory; None if there is no file, or it is damaged."""
    try:
        file = chunk.path.read_bytes()
    except OSError:
        return None
    content, checksum = file[:-32], file[-32:]
    if hashlib.sha256(content).digest() != checksum:
        return None
    return _labelled(xr.load_dataset(io.BytesIO(content), engine="scipy").drop_encoding(), chunk)


def _labelled(dataset: object, chunk: Chunk) -> xr.Dataset:
    """The Dataset with the chunk's axis values as coordinates, once it is as a measurement has to be."""
    name = f"{chunk.measure.__module__}.{chunk.measure.__qualname__}"
    if not isinstance(dataset, xr.Dataset):
        raise ValueError(f"{name} must return an xarray.Dataset, not {type(dataset).__name__}")
    sizes = {axis: len(values) for axis, values in settings.axes(chunk.setting).items()}
    found = {axis: dataset.sizes.get(axis, 0) for axis in sizes}
    if found != sizes:
        raise ValueError(f"{name} must return every axis as a dimension: it returned {found} for the axes {sizes}")
    bare = [str(key) for key, da in dataset.data_vars.items() if not {"long_name", "units"} <= da.attrs.keys()]
    if bare:
        raise ValueError(f"{name} must give every variable the attributes long_name and units; {bare[0]!r} lacks one")
    for axis, values in settings.axes(chunk.setting).items():
        attrs = dataset[axis].attrs if axis in dataset.coords else {}
        dataset = dataset.assign_coords({axis: (axis, np.asarray(values), attrs)})
    return dataset
