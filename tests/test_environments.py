"""The environments: locks without addresses that satisfy the floors, conda's file equal to pyproject.toml."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONDA_NAMES = {"torch": "pytorch-cpu", "matplotlib": "matplotlib-base"}
NOT_ON_CONDA_FORGE = {"axe-playwright-python", "otter-grader", "playwright", "sphinx-mathjax-offline"}
LOCKS = {"requirements.lock": ("dev", "lint", "cluster"), "requirements-book.lock": ("book",)}


def locked(name: str) -> dict[str, str]:
    lines = [line for line in (ROOT / name).read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines), "names and versions only"
    return {canonicalize_name(line.split("==")[0]): line.split("==")[1] for line in lines}


@pytest.mark.parametrize("name", LOCKS)
def test_lock_satisfies_the_floors(name):
    versions = locked(name)
    core = PROJECT["dependencies"] if "dev" in LOCKS[name] else []
    wanted = core + [text for extra in LOCKS[name] for text in PROJECT["optional-dependencies"][extra]]
    for requirement in map(Requirement, wanted):
        version = versions[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f"{requirement} but {version} is locked"
    assert "setuptools" in versions, "the editable install builds without isolation"


def test_rendering_needs_no_torch():
    assert not {"torch", "numpy", "scipy"} & locked("requirements-book.lock").keys()


def test_readme_names_the_locked_torch():
    assert f"torch=={locked('requirements.lock')['torch']}" in (ROOT / "README.md").read_text()


def test_conda_environment_equals_the_project():
    """What reads, runs and tests the book: all extras but `lint`; what conda-forge lacks stands under pip."""
    listed = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    conda, pip = listed[:-1], listed[-1]["pip"]
    assert conda[:2] == [f"python{PROJECT['requires-python']}", "pip"] and pip[0] == "-e ."
    extras = PROJECT["optional-dependencies"]
    wanted = [PROJECT["dependencies"], *(extras[name] for name in extras if name != "lint")]
    floors = {}
    for requirement in (Requirement(text) for texts in wanted for text in texts):
        floors.setdefault(CONDA_NAMES.get(requirement.name, requirement.name), set()).add(str(requirement.specifier))
    highest = {f"{name}{max(specs, key=floor)}" for name, specs in floors.items()}
    assert sorted(str(Requirement(text)) for text in conda[2:] + pip[1:]) == sorted(highest)
    assert {re.split("[<>=]", item)[0] for item in pip[1:]} == NOT_ON_CONDA_FORGE


def floor(specifiers: str) -> Version:
    """The lowest version that is allowed."""
    return Version(re.search(r">=([\d.]+)", specifiers)[1])


def test_bare_make_lists_every_command():
    answer = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True)
    assert answer.returncode == 0
    for command in (
        "book pdf epub sphinx conf site epubcheck links programs test units run lab seeds paper bench floor colab lint"
        " workflows clean address dist"
    ).split():
        assert re.search(rf"^  make {command} +\w", answer.stdout, re.M), command
