"""Stored results: Datasets that took longer than a page may take, kept beside the library as package data.

A file is refused when it answers another question than the page asks (another setting, another version of its
experiment) or when it is not whole. Commit, source digest, device, command and seconds are provenance and refuse
nothing.
"""

import hashlib
import io
import os
from pathlib import Path

import xarray as xr

from flbook import settings

FOLDER = Path(__file__).parent


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
    stem = experiment.__name__.rpartition(".")[2]
    path = FOLDER / f"{stem}.nc"
    again = f"`python -m flbook run {stem} --scale paper` makes it"
    if not path.is_file():
        raise ValueError(f"there is no stored result of {stem!r}; {again}.")
    try:
        raw = _load(path.read_bytes())
        whole = raw.attrs.pop("sha256", None) == _digest(raw)
    except Exception:  # netCDF has no checksum: what a truncated file raises depends on where it was cut
        whole = False
    if not whole:
        raise ValueError(f"the stored result {path.name} is truncated or altered; {again} anew.")
    if raw.attrs.get("version") != experiment.VERSION:
        found = raw.attrs.get("version")
        raise ValueError(
            f"the stored result {path.name} is of version {found}, not {experiment.VERSION}; {again} anew."
        )
    if raw.attrs.get("setting") != settings.to_json(experiment.Setting.paper()):
        raise ValueError(f"the stored result {path.name} is of another setting than Setting.paper(); {again} anew.")
    return xr.decode_cf(raw)


def save(dataset: xr.Dataset, path: str | os.PathLike) -> None:
    """Write a Dataset to a netCDF file with a digest of its contents; an interruption leaves no half-written file."""
    path = Path(path)
    raw = _load(dataset.to_netcdf(engine="scipy"))
    raw.attrs["sha256"] = _digest(raw)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_bytes(raw.to_netcdf(engine="scipy"))
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _load(content: bytes) -> xr.Dataset:
    """The variables as they lie in the file: packed, so that reading and writing them again changes no bit."""
    with xr.open_dataset(io.BytesIO(content), engine="scipy", decode_cf=False) as raw:
        return raw.load()


def _digest(raw: xr.Dataset) -> str:
    """SHA-256 of every variable's name, dimensions, attributes and numbers."""
    digest = hashlib.sha256()
    for name, variable in sorted(raw.variables.items()):
        values = variable.values.astype(variable.dtype.newbyteorder("<"))
        attrs = sorted((key, str(value)) for key, value in variable.attrs.items())
        digest.update(repr((name, variable.dims, values.shape, values.dtype.str, attrs)).encode() + values.tobytes())
    return digest.hexdigest()
