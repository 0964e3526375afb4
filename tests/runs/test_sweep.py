"""Sweeps: chunks, cache, kills and resumption, in this process, in a pool and on Dask."""

import importlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from flbook.runs import chunks, files
from flbook.runs.sweep import cut, sweep

HERE = Path(__file__).parents[1] / "support"
sys.path.insert(0, str(HERE))  # workers are started with this path, so they can import the experiment too
tiny = importlib.import_module("tiny_experiment")
FINE = {"chunk": {"d": 1, "mu": 1}, "progress": False}  # one chunk for each d and mu: twelve of them


@pytest.fixture
def setting(tmp_path):
    (tmp_path / "calls").mkdir()
    return tiny.Setting(log=str(tmp_path / "calls"))


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def calls(setting) -> Counter:
    """What measure was called with, and how often, over all processes."""
    return Counter(file.read_text() for file in Path(setting.log).iterdir())


def assert_same(one: xr.Dataset, other: xr.Dataset) -> None:
    xr.testing.assert_identical(one.assign_attrs(seconds=0), other.assign_attrs(seconds=0))


def pool(workers: int = 2) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    how = {"threads_per_worker": 1, "processes": True, "dashboard_address": None, "silence_logs": 50}
    with distributed.LocalCluster(n_workers=2, **how) as local, distributed.Client(local) as client:
        yield client


def test_what_is_not_finite_is_said(setting, cache):
    with pytest.warns(UserWarning, match="tiny_experiment: no value of curve is finite; has training diverged?"):
        dataset = sweep(tiny.diverging, setting, cache=cache, **FINE)
    assert dataset.attrs["not_finite"] == "curve: 6 of 6, error: 12 of 24"
    assert sweep(tiny.measure, setting, cache=cache, **FINE).attrs["not_finite"] == ""


@pytest.mark.parametrize(
    "chunk, expected",
    [
        ({}, {"d": 1, "mu": 1, "seed": 1}),
        ({"mu": 4}, {"d": 1, "mu": 1, "seed": 1}),
        ({"mu": 3, "d": 1}, {"d": 3, "mu": 2, "seed": 1}),
        ({"seed": 8}, {"d": 1, "mu": 1, "seed": 1}),
    ],
)
def test_chunks_are_as_few_as_their_width_allows_and_about_equal(chunk, expected):
    sizes = {"d": 3, "mu": 4, "seed": 2}
    pieces = cut(sizes, chunk)
    assert {name: len(ends) for name, ends in pieces.items()} == expected
    for name, ends in pieces.items():
        assert [k for start, stop in ends for k in range(start, stop)] == list(range(sizes[name]))
        widths = [stop - start for start, stop in ends]
        assert max(widths) - min(widths) <= 1 and max(widths) <= chunk.get(name, sizes[name])


def test_the_result_is_labelled_and_says_where_it_comes_from(setting, cache):
    found = sweep(tiny.measure, setting, cache=cache)
    assert dict(found.sizes) == {"d": 3, "mu": 4, "seed": 2, "step": 3}
    for axis in ("d", "mu", "seed"):
        assert found[axis].to_numpy().tolist() == list(getattr(setting, axis))
    assert found.mu.attrs == {"long_name": "signal strength", "units": "m"}
    assert found.error.attrs == {"long_name": "test error", "units": "1"}
    assert found.attrs["experiment"] == "tiny_experiment"
    assert found.attrs["version"] == 3
    assert found.attrs["scale"] == "custom"
    assert found.attrs["source"] == chunks.source_of(tiny.measure)
    assert found.attrs["device"] == "cpu" and found.attrs["fresh_seed"] == "" and found.attrs["seconds"] >= 0
    np.testing.assert_array_equal(found.error, tiny.measure(setting, "cpu").error)


@pytest.mark.parametrize("chunk", [{"mu": 2}, {"seed": 1, "d": 2}, {"d": 1, "mu": 1, "seed": 1}])
def test_however_it_is_cut_the_result_is_the_same(setting, cache, chunk):
    whole = sweep(tiny.measure, setting, cache=cache / "whole")
    parts = sweep(tiny.measure, setting, cache=cache / "parts", chunk=chunk)
    assert_same(whole, parts)
    assert [parts[name].dims for name in parts] == [whole[name].dims for name in parts]


def test_what_exists_is_not_measured_again(setting, cache):
    first = sweep(tiny.measure, setting, cache=cache, **FINE)
    assert calls(setting).total() == 12
    again = sweep(tiny.measure, setting, cache=cache, **FINE)
    assert calls(setting).total() == 12
    xr.testing.assert_identical(first, again)  # the seconds too: they are those of the measurement


def test_a_larger_grid_only_measures_what_is_new(setting, cache):
    small = sweep(tiny.measure, replace(setting, d=(10, 40)), cache=cache, **FINE)
    large = sweep(tiny.measure, setting, cache=cache, **FINE)
    assert calls(setting).total() == 12
    xr.testing.assert_equal(large.sel(d=[10, 40]), small)


def test_whatever_may_change_the_numbers_changes_the_name(setting, cache, monkeypatch):
    def count():
        sweep(tiny.measure, setting, cache=cache)
        return len(list(cache.iterdir()))

    assert count() == 1
    monkeypatch.setenv("FLBOOK_SEED", "7")
    assert count() == 2
    monkeypatch.setenv("FLBOOK_SEED", "8")
    assert count() == 3
    monkeypatch.setattr(tiny, "VERSION", 4)
    assert count() == 4
    monkeypatch.setattr(chunks.closure, "digest", lambda files: "changed")
    assert count() == 5
    setting = replace(setting, n=5)
    assert count() == 6
    assert count() == 6


def test_fresh_seeds_give_other_numbers(setting, cache, monkeypatch):
    usual = sweep(tiny.measure, setting, cache=cache)
    monkeypatch.setenv("FLBOOK_SEED", "7")
    fresh = sweep(tiny.measure, setting, cache=cache)
    assert fresh.attrs["fresh_seed"] == "7"
    assert (fresh.curve != usual.curve).all()
    monkeypatch.delenv("FLBOOK_SEED")
    xr.testing.assert_identical(sweep(tiny.measure, setting, cache=cache), usual)


def test_a_worker_with_another_seed_is_refused(setting, cache, monkeypatch):
    class Elsewhere:
        def submit(self, function, chunk):
            with monkeypatch.context() as patch:
                patch.setenv("FLBOOK_SEED", "9")
                function(chunk)

    with pytest.raises(RuntimeError, match="^the worker has another FLBOOK_SEED or another source of flbook"):
        sweep(tiny.measure, setting, cache=cache, executor=Elsewhere())
    assert not calls(setting)


@pytest.mark.parametrize(
    "damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b[:-9], lambda b: b"\0" * len(b),
               lambda b: b[: len(b) // 2] + bytes([b[len(b) // 2] ^ 1]) + b[len(b) // 2 + 1 :]],
    ids=["half", "empty", "short", "zeros", "a flipped bit"],
)
def test_a_damaged_file_is_measured_again(setting, cache, damage):
    first = sweep(tiny.measure, setting, cache=cache, **FINE)
    victim = sorted(cache.iterdir())[5]
    whole = victim.read_bytes()
    victim.write_bytes(damage(whole))
    assert_same(sweep(tiny.measure, setting, cache=cache, **FINE), first)
    assert calls(setting).total() == 13
    assert len(victim.read_bytes()) == len(whole)


def test_killed_in_the_middle_it_resumes(setting, cache):
    setting = replace(setting, slow=0.15)
    code = (
        f"import sys; sys.path.insert(0, {str(HERE)!r}); import tiny_experiment as tiny\n"
        f"from flbook.runs.sweep import sweep; sweep(tiny.measure, tiny.{setting!r}, cache={str(cache)!r}, **{FINE!r})"
    )
    victim = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 30
    while len(list(cache.glob("*.nc"))) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(victim.pid, signal.SIGKILL)
    assert victim.wait() == -signal.SIGKILL
    kept = {file.name: file.read_bytes() for file in cache.iterdir()}
    assert 4 <= len(kept) < 12 and all(name.endswith(".nc") for name in kept)
    started = calls(setting).total()
    assert started - len(kept) in (0, 1)  # the one in flight is lost, and no other

    resumed = sweep(tiny.measure, setting, cache=cache, **FINE)
    assert calls(setting).total() == started + 12 - len(kept)
    assert {name: (cache / name).read_bytes() for name in kept} == kept
    assert_same(resumed, sweep(tiny.measure, setting, cache=cache / "afresh"))


def test_a_failing_chunk_leaves_no_file_and_keeps_the_others(setting, cache, monkeypatch):
    def replace_fails(source, target):
        raise OSError("disk full")

    sweep(tiny.measure, replace(setting, d=(10,)), cache=cache, **FINE)
    before = sorted(cache.iterdir())
    with monkeypatch.context() as patch, pytest.raises(OSError, match="disk full"):
        patch.setattr(files.os, "replace", replace_fails)
        sweep(tiny.measure, setting, cache=cache, **FINE)
    assert sorted(cache.iterdir()) == before


def test_a_killed_pool_worker_ends_with_one_sentence_and_calling_again_resumes(setting, cache):
    trigger = Path(setting.log).with_name("trigger")
    trigger.touch()
    setting = replace(setting, deadly=str(trigger))
    with pool(1) as executor, pytest.raises(RuntimeError, match=r"^a worker process was killed .*: 3 of the 12 chunks"):
        sweep(tiny.measure, setting, cache=cache, executor=executor, **FINE)
    assert len(list(cache.iterdir())) == 3
    with pool() as executor:
        resumed = sweep(tiny.measure, setting, cache=cache, executor=executor, **FINE)
    counts = calls(setting)
    assert len(counts) == 12 and sorted(counts.values()) == [1] * 11 + [2]  # only the one that died came twice
    assert_same(resumed, sweep(tiny.measure, setting, cache=cache / "afresh"))


def test_dask_carries_on_after_a_worker_was_killed(setting, cache, cluster):
    trigger = Path(setting.log).with_name("trigger")
    trigger.touch()
    setting = replace(setting, deadly=str(trigger))
    found = sweep(tiny.measure, setting, cache=cache, executor=cluster.get_executor(), **FINE)
    assert not trigger.exists()
    assert len(calls(setting)) == 12 and calls(setting).total() >= 13
    assert_same(found, sweep(tiny.measure, setting, cache=cache / "afresh"))


def test_an_error_in_a_worker_reaches_the_caller(setting, cache):
    with pool(1) as executor, pytest.raises(ValueError, match="attributes long_name and units; 'error' lacks one"):
        sweep(tiny.unlabelled, setting, cache=cache, executor=executor, **FINE)


@pytest.mark.parametrize(
    "how, sentence",
    [
        ({"setting": tiny.Single}, "^setting must be an instance of a frozen dataclass"),
        ({"chunk": {"snr": 2}}, "^chunk names 'snr', which is no axis of the setting; these are: d, mu, seed$"),
        ({"chunk": {"d": 0}}, "^chunk must give 'd' a whole number of values, at least 1; got 0$"),
        ({"chunk": {"d": 1.5}}, "^chunk must give 'd' a whole number of values, at least 1; got 1.5$"),
        ({"executor": 4}, "^executor must have submit"),
        ({"measure": lambda setting, device: None}, "^measure must be a function at the top level of a module"),
        ({"device": "abacus"}, "^device must be 'cpu' or 'cuda', not 'abacus'"),
        ({"cache": Path(__file__)}, "^cache folder .* cannot be made"),
    ],
)
def test_a_mistake_gets_one_sentence_before_any_work(setting, cache, how, sentence):
    how = {"measure": tiny.measure, "setting": setting, "cache": cache, **how}
    with pytest.raises(ValueError, match=sentence):
        sweep(**how)
    assert not calls(setting) and not list(cache.glob("*"))


@pytest.mark.parametrize(
    "measure, sentence",
    [
        (tiny.unlabelled, "must give every variable the attributes long_name and units; 'error' lacks one"),
        (tiny.averaged, "must return every axis as a dimension: it returned .*'seed': 0"),
        (tiny.nothing, "must return an xarray.Dataset, not NoneType"),
        (tiny.grid_dependent, "^the chunks along 'd' do not fit together"),
    ],
)
def test_a_measure_that_breaks_the_rules_is_told_so(setting, cache, measure, sentence):
    with pytest.raises(ValueError, match=sentence):
        sweep(measure, setting, cache=cache, chunk={"d": 2})


def test_a_setting_without_axes_is_one_chunk(cache):
    found = sweep(tiny.single, tiny.Single(), cache=cache)
    assert float(found.total) == 5 and found.attrs["setting"] == '{"n": 4}'


def test_a_measure_of_a_notebook_leaves_no_file(cache):
    code = (
        "import sys, xarray as xr, pathlib; from dataclasses import dataclass; from flbook.runs.sweep import sweep\n"
        "@dataclass(frozen=True)\nclass Setting:\n    mu: tuple = (1.0, 2.0)\n"
        "def measure(s, device):\n"
        "    return xr.Dataset({'error': ('mu', list(s.mu), {'long_name': 'e', 'units': '1'})})\n"
        f"found = sweep(measure, Setting(), cache={str(cache)!r}, chunk={{'mu': 1}})\n"
        f"assert found.error.values.tolist() == [1, 2] and not list(pathlib.Path({str(cache)!r}).iterdir())\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
