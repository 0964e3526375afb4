"""The repository's address: one source in pyproject.toml, the same everywhere, changed by one command."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

import flbook
from flbook.book import EDITION

ROOT = Path(__file__).parents[1]
ADDRESS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
REPEATED = ["pyproject.toml", "_config.yml", "conf.py", "CITATION.cff", "README.md", "CONTRIBUTING.md"]
NOTEBOOKS = sorted([*ROOT.glob("book/*.ipynb"), *ROOT.glob("book/*/*.ipynb"), *ROOT.glob("book/*/masters/*.ipynb")])


def test_config_and_citation_agree():
    assert yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]["url"] == ADDRESS
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["repository-code"] == ADDRESS
    assert citation["version"] == flbook.__version__
    page = (ROOT / "book/cite.md").read_text()
    assert [page.count(citation[key]) for key in ("title", "version", "repository-code")] >= [2, 2, 2]
    changes, readme = (ROOT / "CHANGELOG.md").read_text(), (ROOT / "README.md").read_text()
    assert all(EDITION in text for text in (page, changes, readme)), "the book has an edition of its own"
    assert f"semantic versions, {flbook.__version__}" in changes


@pytest.mark.parametrize("path", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *NOTEBOOKS], ids=lambda path: path.name)
def test_installation_names_this_address_and_no_tag(path):
    """The default branch is there whether or not a release is."""
    if path.suffix == ".ipynb":
        text = "\n".join("".join(cell["source"]) for cell in json.loads(path.read_text())["cells"])
    else:
        text = path.read_text()
    named = re.findall(r"flbook @ git\+(https?://[^\"\s]+)", text)
    assert named and set(named) == {ADDRESS}


def repository(folder: Path) -> Path:
    """A small repository with every file that repeats the address."""
    for name in ["Makefile", "requirements.lock", *REPEATED]:
        shutil.copy(ROOT / name, folder)
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


def make_address(folder: Path, url: str) -> subprocess.CompletedProcess:
    return subprocess.run(["make", "address", f"URL={url}"], cwd=folder, capture_output=True, text=True)


def test_make_address_changes_it_everywhere(tmp_path):
    folder = repository(tmp_path)
    assert make_address(folder, "https://example.org/someone/a.book").returncode == 0
    for name in REPEATED:
        text = (folder / name).read_text()
        assert "https://example.org/someone/a.book" in text, name
        assert ADDRESS not in text, name


@pytest.mark.parametrize("url", ["", "github.com/a/b", "https://github.com/a", "https://github.com/a/b/", "https://h/a/b.git"])
def test_make_address_refuses_what_is_none(tmp_path, url):
    folder = repository(tmp_path)
    answer = make_address(folder, url)
    assert answer.returncode != 0
    assert "URL must look like" in answer.stdout
    assert (folder / "_config.yml").read_text() == (ROOT / "_config.yml").read_text()
