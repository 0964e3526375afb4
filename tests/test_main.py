"""The command line: what it prints, what it writes, and one sentence where it cannot."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from flbook import __main__, lectures
from flbook.runs import Experiment, Grid, axis, costs
from flbook.runs.shelf import Shelf


@dataclass(frozen=True)
class Setting(Grid):
    """Two numbers."""

    n: tuple[int, ...] = axis((1, 2), "n")


calls = []
tiny = Experiment(Setting, version=1, chunk={"n": 2}, stored="longer", devices=("cpu", "cuda"),
                  presets={"longer": ("Three numbers", {"n": (1, 2, 3)})},
                  gives={"error": ("error", "1"), "lost": ("what is not kept", "1")})


@tiny.cell
def cell(s, device):
    return {"error": np.array(s.n) - 0.5, "lost": np.array(s.n) - 0.5}


@pytest.fixture(autouse=True)
def found(monkeypatch, tmp_path):
    """The experiment stands on the shelf under the name "tiny", in a folder of its own, and notes how it was run."""
    calls.clear()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("MKL_NUM_THREADS", "1")
    monkeypatch.setenv("FLBOOK_CACHE", str(tmp_path / "cache"))
    known, sweep = Shelf.find, tiny.run

    def run(setting, device="cpu", executor=None, **how):
        threads = executor and executor.submit(os.getenv, "OMP_NUM_THREADS").result()
        calls.append(dict(setting=setting, device=device, threads=threads, **how))
        return sweep(setting, **how).assign_attrs(device=device)

    monkeypatch.setattr(Shelf, "find", lambda self, name: tiny if name == "tiny" else known(self, name))
    monkeypatch.setattr(Experiment, "name", property(lambda self: "chapter/tiny"))
    monkeypatch.setattr(tiny, "file", tmp_path / "lecture" / "__init__.py")
    monkeypatch.setattr(tiny, "keep", lambda dataset: xr.Dataset({"error": dataset.error.mean("n")}))  # no attributes
    monkeypatch.setattr(tiny, "run", run)


def sentence(capsys):
    """The one line on standard error."""
    out, err = capsys.readouterr()
    assert not out and len(err.splitlines()) == 1 and err.startswith("flbook: ")
    return err


def test_run_writes_what_it_measured(capsys, tmp_path):
    assert __main__.main(["run", "tiny"]) == 0
    assert calls == [dict(setting=Setting(), device="cpu", threads=None, chunk={"n": 2})]
    with xr.open_dataset(tmp_path / "tiny-book.nc", engine="scipy") as dataset:
        assert dataset.error.values.tolist() == [0.5, 1.5] and list(dataset) == ["error", "lost"]
        assert dataset.attrs["command"] == "python -m flbook run tiny --scale book --device cpu"
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("tiny at the book scale on cpu: ") and out[1].split() == ["error", "0.5", "to", "1.5"]
    assert out[-1].startswith("written to tiny-book.nc (")


def test_run_keeps_what_the_experiment_stores(tmp_path):
    assert __main__.main("run tiny --scale longer --device cuda --out sub.nc".split()) == 0
    assert calls[0]["setting"] == Setting((1, 2, 3)) and calls[0]["device"] == "cuda"
    with xr.open_dataset(tmp_path / "sub.nc", engine="scipy") as dataset:
        assert list(dataset) == ["error"] and float(dataset.error) == 1.5
        assert dataset.attrs["device"] == "cuda" and dataset.attrs["version"] == 1


def test_workers_share_threads(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(6), raising=False)
    assert __main__.main("run tiny --workers 2 --chunk n=4".split()) == 0
    assert calls == [dict(setting=Setting(), device="cpu", threads="3", chunk={"n": 4})]


@pytest.mark.parametrize("preset, file", [("longer", "tiny.nc"), ("book", "tiny-book.nc")])
def test_any_preset_is_stored_beside_its_lecture(tmp_path, preset, file):
    (tmp_path / "lecture").mkdir()
    assert __main__.main(f"run tiny --scale {preset} --store".split()) == 0
    assert (tmp_path / "lecture" / file).is_file() and not list(tmp_path.glob("*.nc"))
    assert float(tiny.stored(preset).error.mean()) == (1.5 if preset == "longer" else 1.0)


def test_a_dry_run_says_what_would_be_done_and_does_nothing(tmp_path, capsys):
    assert __main__.main("run tiny --scale longer --chunk n=1 --dry-run".split()) == 0
    out = capsys.readouterr().out
    assert "chapter/tiny, version 1, digest" in out and "3 n = 3 cells in 3 chunks, 0 of them in the cache" in out
    assert "would be computed on cpu and written to tiny-longer.nc" in out
    assert not calls and not list(tmp_path.glob("*.nc"))


def test_mistakes_are_one_sentence_before_any_work(tmp_path, capsys):
    assert __main__.main(["run", "momentun"]) == 2
    assert "training_strategies/momentum" in sentence(capsys)
    assert __main__.main("run tiny --scale paper".split()) == 2
    assert "chapter/tiny has no preset 'paper'; it has book, longer" in sentence(capsys)
    assert __main__.main("run tiny --out nowhere/x.nc".split()) == 1
    assert "there is no folder 'nowhere'" in sentence(capsys)
    assert __main__.main("run tiny --out .".split()) == 1
    assert "--out must name a file, but '.' is a folder" in sentence(capsys)
    assert __main__.main("run tiny --store --out x.nc".split()) == 1
    assert "--store keeps the result beside its experiment; it takes no --out" in sentence(capsys)
    assert __main__.main("run tiny --device gpu --dry-run".split()) == 1
    assert "device must be cpu or cuda for chapter/tiny; got 'gpu'" in sentence(capsys)
    assert __main__.main(["ledger"]) == 1
    assert "no _toc.yml" in sentence(capsys)
    assert not calls and not list(tmp_path.glob("*.nc"))


def test_an_interruption_is_one_sentence(monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(tiny, "run", stop)
    assert __main__.main(["run", "tiny"]) == 130
    assert "the same command resumes" in sentence(capsys)


@pytest.mark.parametrize(
    "arguments", ["", "fly", "run", "run tiny --workers 0", "run tiny --chunk n"]
)
def test_usage_errors(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        __main__.main(arguments.split())
    assert stop.value.code == 2 and "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("command", ["", "ledger", "list", "cost", "run", "observe"])
def test_help_reads(command, capsys):
    with pytest.raises(SystemExit) as stop:
        __main__.main([*command.split(), "--help"])
    out = capsys.readouterr().out
    assert stop.value.code == 0 and "python -m flbook" in out
    for word in {"": ["ledger", "list", "run"], "run": ["--scale", "--device", "--workers", "--out"]}.get(command, []):
        assert word in out
    assert max(map(len, out.splitlines())) <= 120


def test_list_needs_no_torch_and_names_every_preset_with_what_it_costs():
    code = "import sys; from flbook.__main__ import main; main(['list']); sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines if line[0] != " "] == list(Shelf(lectures).modules())
    known = costs.read(Path(lectures.__path__[0], "costs.json"))
    assert [line.split()[0] for line in lines if line[0] == " "] == [
        preset for name in Shelf(lectures).modules() for preset in known.get(name, {})]
    assert all(" GB  cpu" in line or " GB  cuda" in line for line in lines if line[0] == " ")


def test_list_of_a_lecture_or_of_a_preset(capsys):
    assert __main__.main(["list", "training_strategies/momentum"]) == 0
    assert capsys.readouterr().out.startswith("training_strategies/momentum ")
    assert __main__.main(["list", "--scale", "longer", "momentum"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "training_strategies/momentum", "longer"]
    assert __main__.main(["list", "--scale", "huge"]) == 0 and not capsys.readouterr().out


def test_what_presets_cost_is_written_where_list_reads_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(__main__, "_costs", lambda shelf: tmp_path / "costs.json")
    monkeypatch.setattr(Shelf, "chosen", lambda self, names: ["tiny"])
    assert __main__.main(["cost", "tiny"]) == 0
    kept = json.loads((tmp_path / "costs.json").read_text())["tiny"]
    assert kept["longer"]["size"] == "3 n = 3" and kept["longer"]["says"] == "Three numbers"
    assert 0 < kept["book"]["gigabytes"] < 8 and 0 <= kept["book"]["seconds"] < 5
    assert "    longer       3 n = 3" in capsys.readouterr().out


def test_the_module_runs():
    done = subprocess.run([sys.executable, "-m", "flbook", "run", "momentun"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("flbook: no experiment is called 'momentun'")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["list", "ledger"])
def test_a_reader_that_has_gone_away_is_no_error_to_speak_of(command):
    read, write = os.pipe()
    os.close(read)  # as `head` does once it has its lines
    module, root = [sys.executable, "-m", "flbook", command], Path(__file__).parents[1]
    done = subprocess.run(module, cwd=root, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert done.stderr == "" and done.returncode == 1
