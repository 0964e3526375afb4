"""Files: one atomic writer for everything that a run keeps, and one format for Datasets that notices damage.

A file has its final name only when it is complete, also after a power cut; an interruption leaves the old one, or none.
What a killed process had begun to write goes when the file is written again.
"""

import glob
import hashlib
import io
import os
import platform
import uuid
from pathlib import Path

import xarray as xr


def write(path: str | os.PathLike, content: bytes) -> None:
    """Write a file that appears under its name only when it is complete.

    Parameters
    ----------
    path
        The file, which is replaced.
    content
        All of its bytes.

    Raises
    ------
    OSError
        With the path, if the disk is full or the file cannot be written; what was there before stays.
    """
    path = Path(path)
    _clear(path)
    partial = path.with_name(f"{_partial(path)}{os.getpid()}-{uuid.uuid4().hex[:8]}.tmp")
    try:
        with open(partial, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:  # a full disk does not say which file it had no room for
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
    finally:
        partial.unlink(missing_ok=True)


def _partial(path: Path) -> str:
    """How the name of a file begins that this machine is writing: it ends with the process and a number of its own."""
    return f".{path.name}.{platform.node()}-"


def _clear(path: Path) -> None:
    """Take away what a process of this machine left that was killed while it wrote."""
    if os.name != "posix":  # elsewhere one cannot ask whether a process lives
        return
    for left in path.parent.glob(f"{glob.escape(_partial(path))}*.tmp"):
        process = left.name.removeprefix(_partial(path)).partition("-")[0]
        if process.isdigit() and not _lives(int(process)):
            left.unlink(missing_ok=True)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)  # sends nothing
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True


def save(dataset: xr.Dataset, path: str | os.PathLike) -> None:
    """Write a Dataset as netCDF, with a digest of its contents among its attributes.

    Parameters
    ----------
    dataset
        The Dataset.
    path
        The file, which is replaced.
    """
    dataset = _decoded(bytes(dataset.to_netcdf(engine="scipy")))  # as it will be read: packed numbers are rounded
    write(path, bytes(dataset.assign_attrs(sha256=digest(dataset)).to_netcdf(engine="scipy")))


def load(path: str | os.PathLike) -> xr.Dataset:
    """The Dataset of a file, in memory. Raises ValueError if it is truncated or altered, OSError if there is none.

    Parameters
    ----------
    path
        A file that `save` wrote.

    Returns
    -------
    xarray.Dataset
        Without the digest among its attributes.
    """
    content = Path(path).read_bytes()
    try:
        dataset = _decoded(content)
        whole = dataset.attrs.pop("sha256", None) == digest(dataset)
    except Exception:  # netCDF has no checksum: what a truncated file raises depends on where it was cut
        whole = False
    if not whole:
        raise ValueError(f"{Path(path).name} is truncated or altered")
    return dataset


def digest(dataset: xr.Dataset) -> str:
    """SHA-256 of every variable: name, dimensions, attributes and values.

    Parameters
    ----------
    dataset
        The Dataset; its own attributes do not count.

    Returns
    -------
    str
        Sixty-four hexadecimal digits.
    """
    found = hashlib.sha256()
    for name, variable in sorted(dataset.variables.items()):
        attrs = sorted((key, str(value)) for key, value in variable.attrs.items())
        values = variable.values
        plain = values.dtype.kind in "iufb"
        content = values.astype(values.dtype.newbyteorder("<")).tobytes() if plain else repr(values.tolist()).encode()
        found.update(repr((name, variable.dims, values.shape, attrs)).encode() + content)
    return found.hexdigest()


def _decoded(content: bytes) -> xr.Dataset:
    with xr.open_dataset(io.BytesIO(content), engine="scipy") as dataset:
        return dataset.load()
