"""Mutants: small faults put into a file one at a time, each in a copy of the project, and whether its tests notice.

``make mutants FILE=lib/flbook/claims/statements.py`` tries forty of them, drawn at random, and prints those that
survive: a line that can be changed without a test turning red is not held by any.
"""

import argparse
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONFIG = """
[cosmic-ray]
module-path = {file!r}
timeout = 120.0
excluded-modules = []
test-command = {command!r}

[cosmic-ray.distributor]
name = "local"
"""


def tests_of(file: Path) -> list[str]:
    """The tests that mirror a file of the library; those of its folder where it has none of its own."""
    place = file.relative_to("lib/flbook")
    own = Path("tests", place.parent, f"test_{place.stem}.py")
    return [str(own if (ROOT / own).is_file() else own.parent)]


def copy(folder: Path) -> None:
    """What git knows of the project, as it is now."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def thinned(session: Path, number: int, seed: int) -> int:
    """Leave so many mutants of a session, drawn at random; returns how many there were."""
    with closing(sqlite3.connect(session)) as base, base:
        by_place = "SELECT job_id FROM mutation_specs ORDER BY start_pos_row, start_pos_col, operator_name, occurrence"
        order = [job for (job,) in base.execute(by_place)]
        kept = set(random.Random(seed).sample(order, min(number, len(order))))
        for table in ("mutation_specs", "work_items"):
            base.executemany(f"DELETE FROM {table} WHERE job_id = ?", [(job,) for job in order if job not in kept])
    return len(order)


def main(argv: list[str] | None = None) -> int:
    """Try mutants of one file; returns 1 if more than a twentieth survive."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="a file of the library, such as lib/flbook/claims/statements.py")
    parser.add_argument("--tests", nargs="*", help="what has to notice (default: the tests that mirror the file)")
    parser.add_argument("--number", type=int, default=40, help="how many mutants to draw (default: 40)")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    asked = parser.parse_args(argv)
    tests = asked.tests or tests_of(asked.file)
    python = ROOT / ".venv/bin/python"
    command = f"{python} -m pytest -x -q -p no:nbval {' '.join(tests)}"
    with tempfile.TemporaryDirectory(prefix="flbook-") as name:
        folder = Path(name)
        copy(folder)
        env = os.environ | {"PYTHONPATH": str(folder / "lib"), "OMP_NUM_THREADS": "1"}

        def run(*words):
            return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True)

        if run(*command.split()).returncode:
            print(f"The tests of {asked.file} are not green without a mutant.", file=sys.stderr)
            return 2
        (folder / "mutants.toml").write_text(CONFIG.format(file=str(asked.file), command=command))
        tool = str(Path(sys.executable).with_name("cosmic-ray"))
        run(tool, "init", "mutants.toml", "mutants.sqlite")
        there = thinned(folder / "mutants.sqlite", asked.number, asked.seed)
        run(tool, "exec", "mutants.toml", "mutants.sqlite")
        results = [json.loads(line) for line in run(tool, "dump", "mutants.sqlite").stdout.splitlines()]
    survivors = [(item, found) for item, found in results if found and found["test_outcome"] == "survived"]
    for item, found in survivors:
        print(f"-- survived: {item['mutations'][0]['operator_name']}\n{found['diff']}")
    noticed = f"{len(results) - len(survivors)} of {len(results)} mutants noticed by {' '.join(tests)}"
    print(f"{asked.file}: {noticed}, of {there} there are")
    return int(len(survivors) > len(results) / 20)


if __name__ == "__main__":
    sys.exit(main())
