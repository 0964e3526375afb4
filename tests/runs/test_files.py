"""Files of results: the same numbers come back, and a damaged file is refused in one sentence."""

import os
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

from flbook.runs import files


@pytest.fixture
def folder(tmp_path):
    """An empty folder of results."""
    return tmp_path


def dataset(**attrs):
    rng = np.random.default_rng(0)
    whole = xr.Dataset(
        {
            "test_error": (("d", "seed"), rng.random((40, 50)), {"long_name": "test error", "units": "fraction"}),
            "packed": (("d",), rng.integers(0, 5000, 40) * 1e-4),
            "single": (("seed",), rng.random(50).astype("float32")),
        },
        coords={"d": np.arange(100, 500, 10), "seed": np.arange(50), "model": "network"},
        attrs=dict(setting="{}", version=3, scale="paper") | attrs,
    )
    whole["packed"].encoding = {"dtype": "int16", "scale_factor": 1e-4, "_FillValue": -1}
    return whole


def test_what_is_saved_is_opened(folder):
    files.save(dataset(), folder / "tiny.nc")
    again = files.load(folder / "tiny.nc")
    xr.testing.assert_allclose(again, dataset(), rtol=0, atol=1e-12)
    assert again.attrs == dataset().attrs
    assert again.test_error.attrs["long_name"] == "test error"
    os.remove(folder / "tiny.nc")  # in memory, and the file is closed
    assert float(again.test_error.sum()) == float(dataset().test_error.sum())
    assert not list(folder.iterdir())


def test_saving_twice_gives_the_same_file(folder):
    files.save(dataset(), folder / "a.nc")
    files.save(dataset(), folder / "b.nc")
    assert (folder / "a.nc").read_bytes() == (folder / "b.nc").read_bytes()


def test_saving_that_fails_leaves_the_old_file(folder, monkeypatch):
    files.save(dataset(), folder / "a.nc")
    before = (folder / "a.nc").read_bytes()

    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(files.os, "replace", fail)
    with pytest.raises(OSError, match="full"):
        files.save(dataset(scale="book"), folder / "a.nc")
    assert [path.name for path in folder.iterdir()] == ["a.nc"] and (folder / "a.nc").read_bytes() == before


def refused(path):
    with pytest.raises(ValueError, match="^tiny.nc is truncated or altered$") as error:
        files.load(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kept", [0.0, 0.01, 0.1, 0.3, 0.5, 0.9, 0.99, "all but four bytes"])
def test_a_truncated_file(folder, kept):
    path = folder / "tiny.nc"
    files.save(dataset(), path)
    content = path.read_bytes()
    path.write_bytes(content[:-4] if isinstance(kept, str) else content[: int(kept * len(content))])  # 3 may be padding
    refused(folder / "tiny.nc")


def test_an_altered_number(folder):
    path = folder / "tiny.nc"
    files.save(dataset(), path)
    content = bytearray(path.read_bytes())
    at = content.index(dataset().test_error.values[20, 20:22].astype(">f8").tobytes())
    content[at + 3] ^= 1
    path.write_bytes(content)
    refused(folder / "tiny.nc")


def test_a_file_without_a_digest(folder):
    dataset().to_netcdf(folder / "tiny.nc", engine="scipy")
    refused(folder / "tiny.nc")


def test_a_full_disk_is_named_with_the_path_and_leaves_what_was_there(folder):
    """A limit on the size of files stands for the disk's: the system refuses the same write."""
    files.write(folder / "kept.nc", b"old")
    code = f"""
import resource
from flbook.runs import files
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
files.write({str(folder / "kept.nc")!r}, bytes(100_000))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == f"OSError: [Errno 27] File too large: {str(folder / 'kept.nc')!r}"
    assert (folder / "kept.nc").read_bytes() == b"old" and len(list(folder.iterdir())) == 1
