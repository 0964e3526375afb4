"""Stored results: Datasets that took longer than a page may take, kept in their lecture's folder as package data.

A file is refused when it answers another question than the page asks (another setting, another version of its
experiment) or when it is not whole. Commit, source digest, device, command and seconds are provenance and refuse
nothing.
"""

import hashlib
import io
import os
from pathlib import Path

import xarray as xr

from flbook.runs import settings


def path(name: str, suffix: str = ".nc") -> Path:
    """Where the result of an experiment is stored: in its lecture's folder, under its name."""
    experiment = settings.find(name)
    return Path(experiment.__file__).with_name(experiment.__name__.rpartition(".")[2] + suffix)


def open(name: str) -> xr.Dataset:
    """The stored result of an experiment at the paper's scale, in memory.

    Parameters
    ----------
    name
        The experiment, as ``"relu_heatmap"`` or ``"benign_overfitting/relu_heatmap"``.

    Raises
    ------
    ValueError
        If there is no such experiment, no file of it, or the file is of another setting or version, or not whole.
    """
    experiment = settings.find(name)
    file = path(name)
    again = f"`python -m flbook run {file.stem} --scale paper` makes it"
    if not file.is_file():
        raise ValueError(f"there is no stored result of {file.stem!r}; {again}.")
    try:
        dataset = _load(file.read_bytes())
        whole = dataset.attrs.pop("sha256", None) == _digest(dataset)
    except Exception:  # netCDF has no checksum: what a truncated file raises depends on where it was cut
        whole = False
    if not whole:
        raise ValueError(f"the stored result {file.name} is truncated or altered; {again} anew.")
    if dataset.attrs.get("version") != experiment.VERSION:
        found = dataset.attrs.get("version")
        raise ValueError(
            f"the stored result {file.name} is of version {found}, not {experiment.VERSION}; {again} anew."
        )
    if dataset.attrs.get("setting") != settings.to_json(experiment.Setting.paper()):
        raise ValueError(f"the stored result {file.name} is of another setting than Setting.paper(); {again} anew.")
    return dataset


def save(dataset: xr.Dataset, path: str | os.PathLike) -> None:
    """Write a Dataset to a netCDF file with a digest of its contents; an interruption leaves no half-written file."""
    path = Path(path)
    dataset = _load(bytes(dataset.to_netcdf(engine="scipy")))  # as it will be read: packed numbers are rounded
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_bytes(dataset.assign_attrs(sha256=_digest(dataset)).to_netcdf(engine="scipy"))
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _load(content: bytes) -> xr.Dataset:
    with xr.open_dataset(io.BytesIO(content), engine="scipy") as dataset:
        return dataset.load()


def _digest(dataset: xr.Dataset) -> str:
    """SHA-256 of every variable: name, dimensions, attributes and values."""
    digest = hashlib.sha256()
    for name, variable in sorted(dataset.variables.items()):
        attrs = sorted((key, str(value)) for key, value in variable.attrs.items())
        values = variable.values
        plain = values.dtype.kind in "iufb"
        content = values.astype(values.dtype.newbyteorder("<")).tobytes() if plain else repr(values.tolist()).encode()
        digest.update(repr((name, variable.dims, values.shape, attrs)).encode() + content)
    return digest.hexdigest()
