"""A run that is killed at any moment: the same command again gives the same result, and nothing half-written is left.

``FLBOOK_KILLS`` says how many moments are tried (`make faults`: fifty); a few are in every run of the tests.
"""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from flbook.runs import files

KILLS = int(os.environ.get("FLBOOK_KILLS", "2"))
EXPERIMENT = '''
"""Numbers that take their time."""

import time
from dataclasses import dataclass

import numpy as np

from flbook.rng import numpy_generator
from flbook.runs import Experiment, Grid, axis


@dataclass(frozen=True)
class Setting(Grid):
    """Twenty cells, a fiftieth of a second each, and thirty kilobytes."""

    seed: tuple[int, ...] = axis(range(20), "seed")


experiment = Experiment(Setting, version=1, chunk={"seed": 1}, left=("seed",),
                        gives={"number": ("a number", "1", ("seed", "place"))},
                        beside={"place": (range(4_000), "place", "1")})


@experiment.cell
def cell(s, device):
    time.sleep(0.02)
    return {"number": np.array([numpy_generator(seed, "number").standard_normal(4_000) for seed in s.seed])}
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "own.py").write_text(EXPERIMENT)
    return tmp_path


def started(folder, *arguments: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "flbook", "run", "own.py", *arguments]
    return subprocess.Popen(command, cwd=folder, env=os.environ | {"FLBOOK_CACHE": str(folder / "cache")},
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def numbers(path):
    return files.load(path).number.values


@pytest.mark.parametrize("where", [["--out", "out.nc"], ["--store"]], ids=["out", "store"])
def test_killed_at_random_moments_the_same_command_gives_the_same(folder, where):
    out = folder / ("out.nc" if where[0] == "--out" else "own-book.nc")
    begin = time.perf_counter()
    whole = started(folder, *where)
    assert whole.wait() == 0, whole.stderr.read()
    takes, expected, moments = time.perf_counter() - begin, numbers(out), random.Random(1)
    for _ in range(KILLS):
        kept = sorted((folder / "cache").glob("*.nc"))
        for file in [out, *kept[:10]]:  # it starts with half of its chunks
            file.unlink()
        killed = started(folder, *where)
        time.sleep(moments.uniform(0, takes))
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert not out.exists() or (numbers(out) == expected).all()
        for file in (folder / "cache").glob("*.nc"):
            files.load(file)  # complete, or it has another name
        again = started(folder, *where)
        assert again.wait() == 0, again.stderr.read()
        assert (numbers(out) == expected).all()
        left = [file.name for file in folder.rglob("*.tmp")]
        assert not left, left


def test_two_processes_on_one_cache_do_not_disturb_each_other(folder):
    both = [started(folder, "--out", name) for name in ("one.nc", "two.nc")]
    for one in both:
        assert one.wait() == 0, one.stderr.read()
    assert (numbers(folder / "one.nc") == numbers(folder / "two.nc")).all()
    assert len(list((folder / "cache").iterdir())) == 20


def test_a_damaged_file_of_the_cache_is_measured_again(folder):
    """One cut short, one emptied, one that is something else, one of another experiment under its name."""
    assert started(folder, "--out", "one.nc").wait() == 0
    expected, kept = numbers(folder / "one.nc"), sorted((folder / "cache").iterdir())
    kept[0].write_bytes(kept[0].read_bytes()[:-9])
    kept[1].write_bytes(b"")
    kept[2].write_text("another version")
    files.save(files.load(kept[4]).drop_vars("seed").rename(seed="n"), kept[3])
    assert started(folder, "--out", "two.nc").wait() == 0
    assert (numbers(folder / "two.nc") == expected).all()
    for file in kept:
        assert "seed" in files.load(file).dims
