"""The files for a package index: a tag must be the version, and the wheel must hold the whole library."""

import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest

import flbook
from flbook.book import dist

ROOT = Path(__file__).parents[2]


def committed() -> list[str]:
    """The library's files that git knows."""
    listed = subprocess.run(["git", "ls-files", "lib/flbook"], cwd=ROOT, capture_output=True, text=True)
    return [name for name in listed.stdout.split() if (ROOT / name).is_file()]


def test_a_tag_that_is_not_the_version_is_refused_before_any_work(tmp_path, capsys):
    with pytest.raises(ValueError, match=rf"the tag is 'v9', but the version is '{flbook.__version__}'"):
        dist.write(ROOT, tmp_path / "dist", "v9")
    assert not (tmp_path / "dist").exists()
    assert dist.main([]) == 2 and "usage" in capsys.readouterr().err


def test_a_file_that_the_wheel_lacks_is_named(tmp_path):
    files = [name.removeprefix("lib/") for name in committed()]
    with zipfile.ZipFile(tmp_path / "some.whl", "w") as wheel:
        for name in files[1:]:
            wheel.writestr(name, "")
    assert dist.missing(ROOT, tmp_path / "some.whl") == files[:1]


def test_every_kind_of_data_file_is_packed():
    """What `make dist` finds out in a quarter of a minute: a committed file that no pattern of pyproject.toml takes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["flbook"]
    packed = {path for pattern in project for path in (ROOT / "lib/flbook").glob(pattern)}
    data = {ROOT / name for name in committed() if not name.endswith(".py")}
    assert data and not data - packed
