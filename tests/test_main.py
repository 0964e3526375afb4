"""The command line: what it prints, what it writes, and one sentence where it cannot."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from flbook import __main__
from flbook.runs import settings


@dataclass(frozen=True)
class Setting:
    n: tuple = (1, 2)

    @classmethod
    def book(cls):
        return cls()


@dataclass(frozen=True)
class Both(Setting):
    @classmethod
    def paper(cls):
        return cls((1, 2, 3))


calls = []


def run(setting, device="cpu", executor=None, chunk=None):
    """An experiment that notes how it was called."""
    if device == "gpu":
        raise ValueError("device must be 'cpu' or 'cuda', not 'gpu'")
    threads = executor and executor.submit(os.getenv, "OMP_NUM_THREADS").result()
    calls.append(dict(setting=setting, device=device, threads=threads, chunk=chunk))
    ones = np.arange(len(setting.n)) + 0.5
    return xr.Dataset({"error": ("n", ones), "lost": ("n", ones)}, attrs=dict(scale="x", device=device, version=1))


@pytest.fixture(autouse=True)
def tiny(monkeypatch, tmp_path):
    calls.clear()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("MKL_NUM_THREADS", "1")
    module = SimpleNamespace(__name__="flbook.lectures.chapter.tiny", Setting=Setting, run=run)
    known = settings.find
    monkeypatch.setattr(settings, "find", lambda name: module if name == "tiny" else known(name))
    return module


def sentence(capsys):
    """The one line on standard error."""
    out, err = capsys.readouterr()
    assert not out and len(err.splitlines()) == 1 and err.startswith("flbook: ")
    return err


def test_run_writes_what_it_measured(capsys, tmp_path):
    assert __main__.main(["run", "tiny"]) == 0
    assert calls == [dict(setting=Setting(), device="cpu", threads=None, chunk=None)]
    with xr.open_dataset(tmp_path / "tiny-book.nc", engine="scipy") as dataset:
        assert dataset.error.values.tolist() == [0.5, 1.5]
        assert dataset.attrs["command"] == "python -m flbook run tiny --scale book --device cpu"
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("tiny at the book scale on cpu: ") and out[1].split() == ["error", "0.5", "to", "1.5"]
    assert out[-1].startswith("written to tiny-book.nc (")


def test_run_keeps_what_the_experiment_stores(tiny, tmp_path):
    tiny.Setting = Both
    tiny.stored = lambda dataset: xr.Dataset({"error": dataset.error.mean("n")})  # without attributes
    assert __main__.main("run tiny --scale paper --device cuda --out sub.nc".split()) == 0
    assert calls[0]["setting"] == Both((1, 2, 3)) and calls[0]["device"] == "cuda"
    with xr.open_dataset(tmp_path / "sub.nc", engine="scipy") as dataset:
        assert list(dataset) == ["error"] and float(dataset.error) == 1.5
        assert dataset.attrs["device"] == "cuda" and dataset.attrs["version"] == 1
    assert __main__.main("run tiny --out whole.nc".split()) == 0
    with xr.open_dataset(tmp_path / "whole.nc", engine="scipy") as dataset:
        assert list(dataset) == ["error", "lost"], "at the book's scale nothing is left out"


def test_workers_share_threads(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(6), raising=False)
    assert __main__.main("run tiny --workers 2 --chunk n=4 --chunk seed=1".split()) == 0
    assert calls == [dict(setting=Setting(), device="cpu", threads="3", chunk={"n": 4, "seed": 1})]


def test_the_paper_scale_is_stored_beside_its_lecture(tiny, tmp_path, capsys):
    tiny.Setting, tiny.__file__ = Both, str(tmp_path / "lecture" / "__init__.py")
    (tmp_path / "lecture").mkdir()
    assert __main__.main("run tiny --scale paper --store".split()) == 0
    assert (tmp_path / "lecture" / "tiny.nc").is_file() and not list(tmp_path.glob("*.nc"))
    capsys.readouterr()
    assert __main__.main("run tiny --store".split()) == 1
    assert "--store keeps the paper scale" in sentence(capsys)


def test_mistakes_are_one_sentence_before_any_work(tmp_path, capsys):
    assert __main__.main(["run", "relu_hetmap"]) == 2
    assert "benign_overfitting/relu_heatmap" in sentence(capsys)
    assert __main__.main("run tiny --scale paper".split()) == 1
    assert "the experiment 'tiny' has no paper scale" in sentence(capsys)
    assert __main__.main("run tiny --out nowhere/x.nc".split()) == 1
    assert "there is no folder 'nowhere'" in sentence(capsys)
    assert __main__.main("run tiny --device gpu".split()) == 1
    assert "device must be 'cpu' or 'cuda'" in sentence(capsys)
    assert __main__.main(["ledger"]) == 1
    assert "no _toc.yml" in sentence(capsys)
    assert not calls and not list(tmp_path.iterdir())


def test_an_interruption_is_one_sentence(tiny, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    tiny.run = stop
    assert __main__.main(["run", "tiny"]) == 130
    assert "the same command resumes" in sentence(capsys)


@pytest.mark.parametrize(
    "arguments", ["", "fly", "run", "run tiny --workers 0", "run tiny --scale huge", "run tiny --chunk n"]
)
def test_usage_errors(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        __main__.main(arguments.split())
    assert stop.value.code == 2 and "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("command", ["", "ledger", "list", "run"])
def test_help_reads(command, capsys):
    with pytest.raises(SystemExit) as stop:
        __main__.main([*command.split(), "--help"])
    out = capsys.readouterr().out
    assert stop.value.code == 0 and "python -m flbook" in out
    for word in {"": ["ledger", "list", "run"], "run": ["--scale", "--device", "--workers", "--out"]}.get(command, []):
        assert word in out
    assert max(map(len, out.splitlines())) <= 120


def test_list_has_no_need_of_torch():
    code = "import sys; from flbook.__main__ import main; main(['list']); sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(settings.homes())
    assert all(len(line.split()) > 3 for line in done.stdout.splitlines()), "each says what it is"


def test_list_of_a_scale_names_those_that_have_it(capsys):
    assert __main__.main(["list", "--scale", "paper"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == [name for name in settings.homes() if hasattr(settings.find(name).Setting, "paper")]


def test_the_module_runs():
    done = subprocess.run([sys.executable, "-m", "flbook", "run", "relu_hetmap"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("flbook: no experiment is called 'relu_hetmap'")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["list", "ledger"])
def test_a_reader_that_has_gone_away_is_no_error_to_speak_of(command):
    read, write = os.pipe()
    os.close(read)  # as `head` does once it has its lines
    module, root = [sys.executable, "-m", "flbook", command], Path(__file__).parents[1]
    done = subprocess.run(module, cwd=root, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert done.stderr == "" and done.returncode == 1
