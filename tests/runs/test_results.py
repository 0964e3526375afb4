"""Stored results: the same numbers come back, and a file that answers another question is refused in one sentence."""

import os
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from flbook.runs import files, results, settings


@dataclass(frozen=True)
class Setting:
    d: tuple = (100, 110)
    seed: tuple = (0, 1, 2)

    @classmethod
    def paper(cls):
        return cls(d=tuple(range(100, 500, 10)))


tiny = SimpleNamespace(__name__="flbook.lectures.chapter.tiny", VERSION=3, Setting=Setting)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder of results, and an experiment that needs no torch."""
    known = settings.find
    experiment = SimpleNamespace(**vars(tiny), __file__=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(settings, "find", lambda name: experiment if name == "tiny" else known(name))
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
        attrs=dict(setting=settings.to_json(Setting.paper()), version=3, scale="paper") | attrs,
    )
    whole["packed"].encoding = {"dtype": "int16", "scale_factor": 1e-4, "_FillValue": -1}
    return whole


def test_what_is_saved_is_opened(folder):
    files.save(dataset(), folder / "tiny.nc")
    again = results.open("tiny")
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


def refused(said):
    with pytest.raises(ValueError, match=said) as error:
        results.open("tiny")
    assert "\n" not in str(error.value) and str(error.value).count(". ") == 0


def test_a_missing_file(folder):
    refused("there is no stored result of 'tiny'; `python -m flbook run tiny --scale paper`")


def test_another_setting(folder):
    other = settings.to_json(Setting())
    files.save(dataset(setting=other), folder / "tiny.nc")
    refused("is of another setting than Setting.paper")


def test_another_version(folder):
    files.save(dataset(version=2), folder / "tiny.nc")
    refused("is of version 2, not 3")


def test_an_unknown_experiment_names_the_nearest():
    with pytest.raises(ValueError, match="relu_heatmap"):
        results.open("relu_hetmap")


@pytest.mark.parametrize("kept", [0.0, 0.01, 0.1, 0.3, 0.5, 0.9, 0.99, "all but four bytes"])
def test_a_truncated_file(folder, kept):
    path = folder / "tiny.nc"
    files.save(dataset(), path)
    content = path.read_bytes()
    path.write_bytes(content[:-4] if isinstance(kept, str) else content[: int(kept * len(content))])  # 3 may be padding
    refused("is truncated or altered")


def test_an_altered_number(folder):
    path = folder / "tiny.nc"
    files.save(dataset(), path)
    content = bytearray(path.read_bytes())
    at = content.index(dataset().test_error.values[20, 20:22].astype(">f8").tobytes())
    content[at + 3] ^= 1
    path.write_bytes(content)
    refused("is truncated or altered")


def test_a_file_without_a_digest(folder):
    dataset().to_netcdf(folder / "tiny.nc", engine="scipy")
    refused("is truncated or altered")


def test_stored_results_open_and_fit_the_package():
    stored = sorted(settings.LECTURES.glob("*/*/*.nc"))
    for file in stored:
        assert results.path(file.stem) == file and results.open(file.stem).attrs["scale"] == "paper"
        assert file.stat().st_size <= 500_000
    assert len(stored) > 30 and sum(file.stat().st_size for file in stored) <= 15_000_000
