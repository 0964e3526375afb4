"""Mutants: small faults put into a file one at a time, each in a copy of the project, and whether its tests notice.

``make mutants FILE=lib/flbook/claims/statements.py`` tries forty of them, drawn at random, on the tests of the file,
then on those of its folder, then on all others but the lectures' that import from that folder of the library. It prints
those that survive: a line that can be changed without a test turning red is not held by any. Not drawn is what any test
would notice, since it is no Python any more, and what none is asked to: annotations, the bare star in a signature.
"""

import argparse
import ast
import json
import os
import random
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

ROOT = Path(__file__).parents[2]
CONFIG = """
[cosmic-ray]
module-path = {file!r}
timeout = 300.0
excluded-modules = []
test-command = {command!r}

[cosmic-ray.distributor]
name = "local"
"""


def tests_of(file: Path) -> list[str]:
    """The tests of a file of the library, one command each: its own, its folder's, what else imports its folder."""
    place = file.relative_to("lib/flbook")
    own = Path("tests", place.parent, f"test_{place.stem}.py")
    found = [str(own)] if (ROOT / own).is_file() else []
    if found and not place.parent.name:
        return found
    package, folder = ".".join(["flbook", *place.parent.parts]), own.parent
    every = [one.relative_to(ROOT) for deep in ("", "*/") for one in sorted(ROOT.glob(f"tests/{deep}test_*.py"))]
    every = [one for one in every if folder not in one.parents and package in (ROOT / one).read_text("utf-8")]
    return [*found, str(folder), *([" ".join(map(str, every))] if every else [])]


def copy(folder: Path) -> None:
    """What git knows of the project or does not ignore, as it is now."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def behaviour(source: str) -> str | None:
    """What a file does, as far as its syntax says: without annotations, and however arguments are passed.

    None where it is no Python.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        for name in {"annotation", "returns"} & set(node._fields):
            setattr(node, name, None)
        if isinstance(node, ast.arguments):
            node.args = [*node.posonlyargs, *node.args, *node.kwonlyargs]
            node.defaults = [*node.defaults, *node.kw_defaults]
            node.posonlyargs, node.kwonlyargs, node.kw_defaults = [], [], []
    return ast.dump(tree)


def drawn(session: Path, number: int, seed: int, source: str) -> int:
    """Leave so many mutants of a session, drawn at random, that behave differently; returns how many there were."""
    with closing(sqlite3.connect(session)) as base, base:
        columns = "start_pos_row, start_pos_col, operator_name, occurrence, operator_args, job_id"
        every = sorted(base.execute(f"SELECT {columns} FROM mutation_specs"))
        kept, before = set(), behaviour(source)
        for *_, operator, occurrence, args, job in random.Random(seed).sample(every, len(every)):
            if len(kept) == number:
                break
            after = behaviour(mutate_code(source, get_operator(operator)(**json.loads(json.loads(args))), occurrence))
            kept |= {job} if after not in (before, None) else set()
        for table in ("mutation_specs", "work_items"):
            base.executemany(f"DELETE FROM {table} WHERE job_id = ?", [(job,) for *_, job in every if job not in kept])
    return len(every)


def main(argv: list[str] | None = None) -> int:
    """Try mutants of one file; returns 1 if more than a twentieth survive."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="a file of the library, such as lib/flbook/claims/statements.py")
    parser.add_argument("--tests", nargs="*", help="what has to notice, a run of pytest each (default: see above)")
    parser.add_argument("--number", type=int, default=40, help="how many mutants to draw (default: 40)")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    asked = parser.parse_args(argv)
    tests = asked.tests or tests_of(asked.file)
    each = [f"{ROOT}/.venv/bin/python -m pytest -x -q -p no:nbval {one}" for one in tests]
    command = f"sh -c '{' && '.join(each)}'"
    with tempfile.TemporaryDirectory(prefix="flbook-") as name:
        folder = Path(name)
        copy(folder)
        env = os.environ | {"PYTHONPATH": str(folder / "lib"), "OMP_NUM_THREADS": "1"}

        def run(*words):
            return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True)

        if run(*shlex.split(command)).returncode:
            print(f"The tests of {asked.file} are not green without a mutant.", file=sys.stderr)
            return 2
        (folder / "mutants.toml").write_text(CONFIG.format(file=str(asked.file), command=command))
        tool = str(Path(sys.executable).with_name("cosmic-ray"))
        run(tool, "init", "mutants.toml", "mutants.sqlite")
        there = drawn(folder / "mutants.sqlite", asked.number, asked.seed, (folder / asked.file).read_text("utf-8"))
        run(tool, "exec", "mutants.toml", "mutants.sqlite")
        results = [json.loads(line) for line in run(tool, "dump", "mutants.sqlite").stdout.splitlines()]
    survivors = [(item, found) for item, found in results if found and found["test_outcome"] == "survived"]
    for item, found in survivors:
        print(f"-- survived: {item['mutations'][0]['operator_name']}\n{found['diff']}")
    noticed = f"{len(results) - len(survivors)} of {len(results)} mutants noticed by {' '.join(tests)}"
    hung = sum(bool(found) and found["output"] == "timeout" for _, found in results)  # or the machine was busy
    print(f"{asked.file}: {noticed} ({hung} because they did not end), of {there} there are")
    return int(len(survivors) > len(results) / 20)


if __name__ == "__main__":
    sys.exit(main())
