"""The executor: an unchanged lecture gives an unchanged file, and one whose number misses is not stored."""

import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from flbook.__main__ import main
from flbook.book import executor, lectures, tidy
from flbook.book.cost import cost

KILLS = int(os.environ.get("FLBOOK_KILLS", "2"))  # `make faults`: fifty
CLAIMS = """
# a comment that stays
[value]
says = "The value is a quarter"
claim = [0.0, 2.0]
why = "w"
excludes = { "rival" = 3.0 }
source = "derived here"
book = 0.25
tol = 0.01
"""
NUMBER = """
import os
from flbook import Claims
claims = Claims("../../lib/flbook/lectures/NAME/claims.toml")
value = float(os.environ.get("FLBOOK_SEED", "0.25"))
claims.check("value", value)
"""
PLOT = """
from IPython.display import display
import base64, matplotlib.pyplot as plt, io
figure, axes = plt.subplots(figsize=(1, 1))
figure.savefig(file := io.BytesIO(), format="png")
plt.close(figure)
png = base64.b64encode(file.getvalue()).decode()
display({"image/png": png, "text/plain": "x"}, raw=True, metadata={"image/png": {"alt": "An empty\\n frame"}})
"""
NOISE = """
import sys, time, warnings
print("a"); print("b"); print("42 %", file=sys.stderr); warnings.warn("careful"); time.sleep(0.01); print("c")
object()
"""
WIDGET = "import ipywidgets\nipywidgets.interact(lambda x: print(x), x=(0, 3));"
CHANCE = """
import uuid
class Page:
    def _repr_html_(self): return f"<a id='{uuid.uuid4()}'></a>"
Page()
"""
STATE = """
import os
cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "FLBOOK_STRICT", "FLBOOK_SEED", "MPLBACKEND")
print(cores, *(os.environ.get(n) for n in names), os.listdir(os.environ["FLBOOK_CACHE"]), os.path.basename(os.getcwd()))
"""

# A kernel that is bad at its first starts: `asleep` never answers, `dies` ends at once, `deaf` takes up no cell, and
# `slow` works for seconds before it answers.
BAD = """
import pathlib, sys, time
import ipykernel.kernelbase
from ipykernel import kernelapp

how, times, log = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
with log.open("a") as file:
    file.write("start ")
takes_up = ipykernel.kernelbase.Kernel.dispatch_shell

async def deaf(self, message, *more, **and_more):
    if b"execute_request" not in b"".join(map(bytes, message)):
        await takes_up(self, message, *more, **and_more)

if log.read_text().count("start") <= times:
    if how == "asleep":
        time.sleep(600)
    if how == "dies":
        sys.exit(1)
    while how == "slow" and time.process_time() < 4:
        pass
    if how != "slow":
        ipykernel.kernelbase.Kernel.dispatch_shell = deaf
kernelapp.launch_new_instance(sys.argv[4:])
"""


@pytest.fixture
def bad_kernel(tmp_path, monkeypatch):
    """Make the kernel python3 a bad one at its first starts; returns a function that counts the starts."""
    folder, log = tmp_path / "jupyter" / "kernels" / "python3", tmp_path / "starts"
    folder.mkdir(parents=True)
    (folder / "bad.py").write_text(BAD)

    def install(how, times):
        argv = [sys.executable, str(folder / "bad.py"), how, str(times), str(log), "-f", "{connection_file}"]
        (folder / "kernel.json").write_text(json.dumps(dict(argv=argv, display_name="bad", language="python")))
        monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
        return lambda: log.read_text().count("start")

    return install


@pytest.fixture
def nbval_kernel():
    """The module that changes nbval's kernels."""
    where = Path(__file__).parents[2] / "book" / "conftest.py"
    spec = importlib.util.spec_from_file_location("book_conftest", where)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A book in the working directory; returns a function that writes a lecture from its cells."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: book/index\nchapters:\n")

    def write(name, *cells, tags=(), claims=CLAIMS):
        path, beside = tmp_path / "book" / f"{name}.ipynb", tmp_path / "lib/flbook/lectures" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        cells = [cell.replace("NAME", name) for cell in cells]
        if any("Claims" in cell for cell in cells):
            beside.mkdir(parents=True)
            (beside / "claims.toml").write_text(claims)
        first = nbformat.v4.new_markdown_cell("# Title\n\n**Cost.** unknown\n\nText.")
        code = [nbformat.v4.new_code_cell(cell.strip(), metadata={"tags": list(tags)}) for cell in cells]
        notebook = nbformat.v4.new_notebook(cells=[first, *code])
        notebook.metadata.update(kernelspec={"name": "mine", "display_name": "Mine"}, widgets={"x": 1}, title="kept")
        for cell in notebook.cells:
            cell.metadata["execution"] = {"iopub.execute_input": "2026-01-01"}
        path.write_text(nbformat.writes(notebook))
        with (tmp_path / "_toc.yml").open("a") as contents:
            contents.write(f"  - file: book/{name}\n")
        return path

    return write


def read(path):
    notebook = json.loads(path.read_text())
    return notebook, [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def joined(output):
    return "".join(output["text"] if "text" in output else output["data"]["text/plain"])


def test_run_stores_what_is_the_same_every_time(book, capsys, monkeypatch):
    monkeypatch.setenv("FLBOOK_SEED", "7")  # what happens to be set outside does not matter
    path = book("one/first", NUMBER, PLOT, NOISE, WIDGET, CHANCE, STATE)
    assert executor.main(["run"]) == 0
    out = capsys.readouterr().out
    assert "one/first: " in out and "1 claims hold, stored" in out and "UserWarning: careful" in out

    notebook, (number, plot, noise, widget, chance, state) = read(path)
    assert [cell["execution_count"] for cell in notebook["cells"][1:]] == [1, 2, 3, 4, 5, 6]
    assert not [cell for cell in notebook["cells"] if "execution" in cell["metadata"]]
    metadata = notebook["metadata"]
    assert metadata["kernelspec"] == tidy.KERNEL["kernelspec"] and "widgets" not in metadata
    assert metadata["language_info"] == tidy.KERNEL["language_info"] and metadata["title"] == "kept"
    assert set(metadata["flbook"]["versions"]) >= {"python", "numpy", "matplotlib"}
    assert metadata["flbook"]["device"] == "cpu"

    assert number["outputs"][0]["metadata"]["flbook"]["value"] == 0.25
    words = "Code of this figure"
    folded = {"code_prompt_show": words, "code_prompt_hide": words}
    assert plot["metadata"]["mystnb"] == {"image": {"alt": "An empty frame"}} | folded
    assert plot["source"][0] == f"# @title {words}\n" and number["metadata"]["tags"] == ["kind-check", "hide-input"]
    assert [joined(output) for output in noise["outputs"]] == ["a\nb\nc\n", "<object at 0x0>"]
    assert widget["outputs"] == []
    assert chance["outputs"][0]["data"]["text/html"] == ["<a id='00000000-0000-4000-8000-000000000001'></a>"]
    assert joined(state["outputs"][0]) == "1 1 1 1 None module://matplotlib_inline.backend_inline [] one\n"
    assert notebook["cells"][0]["source"][2].startswith("**Cost.** 5 s and 0.")

    before = path.read_bytes()  # marked, the cells run as before
    os.utime(path, (1, 1))
    assert executor.main(["run", "first"]) == 0
    assert "unchanged" in capsys.readouterr().out
    assert path.read_bytes() == before and path.stat().st_mtime == 1
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


MEET = """
import os, pathlib, time
pathlib.Path("NAME".replace("/", "-")).touch()
for _ in range(200):
    if all(pathlib.Path(f"one-{name}").exists() for name in ("first", "second")):
        break
    time.sleep(0.05)
else:
    raise RuntimeError("alone")
print(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)
"""


@pytest.mark.parametrize("jobs, status", [("2", 0), ("1", 1)])
def test_lectures_run_beside_each_other_and_are_told_of_in_order(book, capsys, jobs, status):
    paths = [book(f"one/{name}", MEET) for name in ("first", "second")]
    assert executor.main(["run", "--jobs", jobs]) == status
    out = capsys.readouterr().out
    assert out.index("one/first: ") < out.index("one/second: ") and ("alone" in out) == bool(status)
    if not status:
        assert [joined(read(path)[1][0]["outputs"][0]) for path in paths] == ["1\n", "1\n"]  # a core each


def test_no_jobs_are_no_number_of_jobs(book, capsys):
    with pytest.raises(SystemExit):
        executor.main(["run", "--jobs", "0"])
    assert "how many lectures at a time, at least 1; got 0" in capsys.readouterr().err


def test_a_miss_is_named_and_not_stored(book, capsys):
    missing = book("one/first", "x = 1", NUMBER.replace('0.25"', '0.35"'), "y = 2")
    broken = book("one/second", "1 / 0")
    fine = book("two/third", NUMBER)
    before = missing.read_bytes(), broken.read_bytes(), fine.read_bytes()
    assert executor.main(["run"]) == 1
    out = capsys.readouterr().out
    assert "one/first: not stored" in out and "first.ipynb, cell 3 (import os): ClaimMiss: first.value = 0.350" in out
    assert "second.ipynb, cell 2 (1 / 0): ZeroDivisionError" in out
    assert "two/third: " in out and "stored" in out.splitlines()[-1]
    assert (missing.read_bytes(), broken.read_bytes()) == before[:2] and fine.read_bytes() != before[2]
    assert executor.main(["run", "frist"]) == 2
    assert "near it: one/first" in capsys.readouterr().err


def test_a_dead_kernel_is_named(book, capsys):
    path = book("one/first", "x = 1", "import os; os._exit(1)")
    before = path.read_bytes()
    assert executor.main(["run"]) == 1
    assert "cell 3 (import os; os._exit(1)): the kernel died" in capsys.readouterr().out
    assert path.read_bytes() == before


def test_killed_at_random_moments_the_same_command_gives_the_same(book, tmp_path):
    """Every other one as it begins to write; the notebook is the old one or the new one all the time, and whole."""
    path, moments = book("one/first", "print(6 * 7)", NUMBER), random.Random(1)
    cleaned = os.environ | {"TMPDIR": str(tmp_path), "JUPYTER_RUNTIME_DIR": str(tmp_path / "kernels")}

    def started():
        command = [sys.executable, "-m", "flbook.book.executor", "run", "--jobs", "1"]
        return subprocess.Popen(command, cwd=tmp_path, env=cleaned, stdout=subprocess.PIPE, text=True)

    def stored():
        run = started()
        said, _ = run.communicate()
        assert run.returncode == 0 and [file.name for file in path.parent.iterdir()] == [path.name], said
        return path.read_bytes()

    begin, new = time.monotonic(), stored()
    takes, old = time.monotonic() - begin, new.replace(b'"42\\n"', b'"41\\n"')
    assert old != new and json.loads(old)
    for number in range(KILLS):
        path.write_bytes(old)
        killed, writes = started(), number % 2
        until = time.monotonic() + (600 if writes else moments.uniform(0, takes))
        while time.monotonic() < until and not (writes and len(os.listdir(path.parent)) > 1) and killed.poll() is None:
            assert path.read_bytes() in (old, new)
        killed.kill()
        killed.communicate()
        assert path.read_bytes() in (old, new)
        assert stored() == new


@pytest.mark.parametrize("how, said", [("asleep", "in 2 s"), ("deaf", "in 2 s"), ("dies", "died before")])
def test_a_silent_kernel_is_started_twice_and_named(how, said, book, bad_kernel, capsys, monkeypatch):
    monkeypatch.setattr(executor, "ANSWER_SECONDS", 2)
    path, starts = book("one/first", "x = 1"), bad_kernel(how, times=9)
    before = path.read_bytes()
    assert executor.main(["run"]) == 1
    out, err = capsys.readouterr()
    assert "one/first.ipynb: the kernel, started twice, does not answer: " in out and said in out
    assert len(out.splitlines()) == 2 and not err and starts() == 2 and path.read_bytes() == before


@pytest.mark.parametrize("how", ["deaf", "dies"])
def test_a_kernel_that_answers_at_the_second_start_goes_through(how, book, bad_kernel, monkeypatch):
    monkeypatch.setattr(executor, "ANSWER_SECONDS", 15)  # a busy machine needs some of it for a start
    path, starts = book("one/first", "print(6 * 7)"), bad_kernel(how, times=1)
    assert executor.main(["run"]) == 0
    assert joined(read(path)[1][0]["outputs"][0]) == "42\n" and starts() == 2


def test_a_kernel_that_is_slow_to_start_but_works_is_waited_for(book, bad_kernel, monkeypatch):
    """As on a crowded machine: it answers after four times the time, and it computes all the while."""
    monkeypatch.setattr(executor, "ANSWER_SECONDS", 1)
    path, starts = book("one/first", "print(6 * 7)"), bad_kernel("slow", times=1)
    assert executor.main(["run"]) == 0
    assert joined(read(path)[1][0]["outputs"][0]) == "42\n" and starts() == 1


def test_a_cell_may_compute_for_longer_than_a_kernel_may_be_silent(book, monkeypatch):
    monkeypatch.setattr(executor, "ANSWER_SECONDS", 8)
    book("one/first", "import time; time.sleep(9)")
    assert executor.main(["run"]) == 0


@pytest.mark.parametrize("how", ["asleep", "deaf", "dies"])
def test_nbval_starts_a_silent_kernel_twice_and_names_it(how, bad_kernel, nbval_kernel, monkeypatch):
    monkeypatch.setattr(nbval_kernel, "ANSWER_SECONDS", 2)
    starts = bad_kernel(how, times=9)
    with pytest.raises(pytest.fail.Exception, match="^The kernel, started twice, does not answer: .*[.]$"):
        nbval_kernel.Kernel("python3").execute_cell_input("x = 1")
    assert starts() == 2


def test_nbval_goes_on_where_the_first_kernel_was(tmp_path, nbval_kernel, monkeypatch):
    monkeypatch.setattr(nbval_kernel, "ANSWER_SECONDS", 20)  # a busy machine needs some of it for a start
    kernel = nbval_kernel.Kernel("python3", cwd=str(tmp_path))
    kernel.await_reply(kernel.execute_cell_input("x = 42"), timeout=60)
    os.kill(first := kernel.km.provisioner.pid, signal.SIGSTOP)  # lives, but takes up no cell
    kernel.await_reply(kernel.execute_cell_input("assert x == 42; open('done', 'w').close()"), timeout=60)
    assert kernel.km.provisioner.pid != first and (tmp_path / "done").exists()
    # It dies only after it has said that it takes up the cell: what is said last may be lost with a process.
    dying = "import os, time\nwhile not os.path.exists('die'): time.sleep(.1)\nos._exit(1)"
    sent = kernel.execute_cell_input(dying)
    (tmp_path / "die").touch()
    with pytest.raises(pytest.fail.Exception, match="^The kernel died.$"):
        kernel.await_reply(sent, timeout=60)


def test_nbval_begins_with_the_longest_page(nbval_kernel, tmp_path):
    lines = {"a": "**Cost.** 5 s and 0.4 GB on one core.", "b": "**Cost.** 25 s and 0.4 GB on one core.", "c": ""}
    for name, line in lines.items():
        (tmp_path / name).write_text(json.dumps({"source": [line]}))
    items = [SimpleNamespace(path=tmp_path / name, cell=cell) for name in "cab" for cell in (1, 2)]
    nbval_kernel.pytest_collection_modifyitems(items)
    assert [(item.path.name, item.cell) for item in items] == [(name, cell) for name in "bac" for cell in (1, 2)]


def test_a_file_that_is_no_notebook_is_named(book, capsys):
    book("one/first", "x = 1").write_text("not json")
    assert executor.main(["run"]) == 1
    assert "one/first.ipynb is not a notebook" in capsys.readouterr().out


def test_two_pictures_in_a_cell_are_refused(book, capsys):
    book("one/first", PLOT + PLOT.replace("An empty", "Another"))
    assert executor.main(["run"]) == 1
    assert "cell 2 shows 2 pictures" in capsys.readouterr().out


def test_a_cell_that_is_meant_to_raise_keeps_one_line(book):
    path = book("one/first", "1 / 0", tags=["raises-exception"])
    assert executor.main(["run"]) == 0
    (output,) = read(path)[1][0]["outputs"]
    assert output["traceback"] == ["ZeroDivisionError: division by zero"]


@pytest.mark.parametrize(
    "cells, claims, said",
    [
        (["x = 1 # Claims"], CLAIMS, "first.ipynb: the claim [value] is checked never; it must be once."),
        ([NUMBER, "claims.check('value', value)"], CLAIMS, "the claim [value] is checked 2 times; it must be once."),
        ([NUMBER.replace('"value",', '"values",')], CLAIMS, "there is no table [values]; write the claim down first."),
        (
            [NUMBER],
            CLAIMS.replace("2.0]", "3.0]"),
            "claims of first, [value]: the claim, 0 to 3, admits the rival 'rival'",
        ),
        (
            [NUMBER],
            CLAIMS.replace("derived here", "nobody2020x, 1"),
            "[value]: 'nobody2020x' is not in the bibliography.",
        ),
    ],
)
def test_what_is_stated_is_checked_once(book, capsys, cells, claims, said):
    path = book("one/first", *cells, claims=claims)
    before = path.read_bytes()
    assert executor.main(["run"]) == 1
    out = capsys.readouterr().out
    assert said in out and len(out.splitlines()) == 2 and path.read_bytes() == before


def test_accept_writes_the_book_value_where_the_claim_holds(book, capsys, tmp_path):
    book("one/first", NUMBER.replace("0.25", "0.5"))
    file = tmp_path / "lib/flbook/lectures/one/first/claims.toml"
    assert main(["accept", "first"]) == 0
    assert capsys.readouterr().out == "first.value: 0.25 -> 0.500\n"
    assert file.read_text() == CLAIMS.replace("book = 0.25", "book = 0.500")
    assert executor.main(["run"]) == 0
    assert main(["accept", "first"]) == 0 and "no book value moved" in capsys.readouterr().out
    assert main(["accept", "frist"]) == 2 and "near it: one/first" in capsys.readouterr().err


@pytest.mark.parametrize("header", ["[value]", "[value]  # the first"])
@pytest.mark.parametrize("old", ["book = 0.25\n", ""], ids=["a new value", "the first value"])
def test_a_book_value_is_written_into_its_own_table(header, old):
    other = CLAIMS.replace("[value]", "[other]")
    text = CLAIMS.replace("book = 0.25\n", old).replace("[value]", header)
    written = executor._with_book(other + text + other, "value", "0.500")
    expected = CLAIMS.replace("book = 0.25", "book = 0.500").replace("[value]", header)
    assert written == other + expected + other


def test_a_table_that_is_not_written_line_by_line_is_refused(tmp_path):
    text = 'value = { says = "It is", tol = 0.01 }\n'
    record = {"name": "first.value", "kind": "claim", "tol": 0.01, "value": 0.5}
    assert executor._with_book(text, "value", "0.500") == text
    with pytest.raises(executor.LectureError, match="claims of first, .value.: .* book = 0.500 was not put in"):
        executor._check_accepted(tmp_path / "first.ipynb", text, [record])


@pytest.mark.parametrize(
    "value, said", [("2.5", "[value] does not hold: 2.5 lies outside the claim"), ("1 / 0", "Zero")]
)
def test_accept_takes_nothing_that_does_not_hold(book, capsys, tmp_path, value, said):
    book("one/first", NUMBER.replace("value = float", f"value = {value} or float"))
    assert main(["accept", "first"]) == 1
    err = capsys.readouterr().err
    assert said in err and len(err.splitlines()) == 1
    assert (tmp_path / "lib/flbook/lectures/one/first/claims.toml").read_text() == CLAIMS


def test_seeds_print_what_fell_and_store_nothing(book, capsys):
    other = CLAIMS.replace("[value]", "[other]").replace("[0.0, 2.0]", "[-inf, 2.9]").replace("0.25", "2.75")
    path = book("one/first", NUMBER, "claims.check('other', 3 - value)", claims=CLAIMS + other)
    before = path.read_bytes()
    assert executor.main(["seeds", "1 0.5"]) == 0  # the book's value is another, which does not count
    out = capsys.readouterr().out.splitlines()
    assert out[-2:] == ["4 claims compared in 1 lectures under seeds 1, 0.5", "no claim fell"]
    assert executor.main(["seeds", "0.05 1 2.5", "first"]) == 1
    out = capsys.readouterr().out.splitlines()
    assert [line.split() for line in out[1:3]] == [
        ["0.05", "one/first", "first.other", "2.950", "at", "most", "2.9"],
        ["2.5", "one/first", "first.value", "2.500", "0", "to", "2"],
    ]
    assert out[3:] == ["6 claims compared in 1 lectures under seeds 0.05, 1, 2.5", "2 claims fell"]
    assert path.read_bytes() == before


def test_seeds_count_an_error_and_skip_what_is_stored(book, capsys):
    book("one/first", NUMBER.replace("value)\n", 'value, excludes={"more": 1 + value})\n'), "1 / 0")
    stored = "import xarray\nresult = xarray.Dataset(attrs=dict(scale='longer', device='cuda', command='run x'))"
    book("one/second", stored + NUMBER.replace("value)\n", "value, result=result)\n"))
    assert executor.main(["seeds", "0.5"]) == 1
    out = capsys.readouterr().out
    assert "cell 2" in out and "admits the rival 'more' = 1.5" in out and "ZeroDivisionError" not in out
    assert out.splitlines()[-2:] == ["0 claims compared in 2 lectures under seeds 0.5", "1 claim fell"]
    assert executor.main(["seeds", "2.5", "second"]) == 0


@pytest.mark.parametrize(
    "line, seconds, peak, new",
    [
        ("**Cost.** 20 s and 0.6 GB on one core.", 16.0, 0.55e9, None),
        ("**Cost.** 20 s and 0.6 GB on one core.", 24.9, 0.74e9, None),  # within a quarter
        ("**Cost.** 20 s and 0.6 GB on one core.", 25.1, 0.55e9, "**Cost.** 30 s and 0.6 GB on one core."),
        ("**Cost.** 20 s and 0.6 GB on one core.", 16.0, 0.76e9, "**Cost.** 20 s and 0.8 GB on one core."),
        (
            "**Cost.** 20 s and 0.6 GB on one core. Less on two.",
            9.0,
            0.6e9,
            "**Cost.** 10 s and 0.6 GB on one core. Less on two.",
        ),
        ("**Cost.** 10 s and 0.6 GB on one core.", 5.5, 0.5e9, None),  # would be 10 s again
        ("**Cost.** soon", 1.0, 0.21e9, "**Cost.** 5 s and 0.3 GB on one core."),
        ("The **Cost.** of it", 1.0, 0.2e9, None),
    ],
)
def test_the_cost_line_moves_by_more_than_a_quarter(line, seconds, peak, new):
    text = "# Title\n\n{}\n\nMore."
    assert cost(text.format(line), seconds, peak) == text.format(new or line)
    beside = new if "GB" not in line else None  # where others ran too, a line that says something stays
    assert cost(text.format(line), seconds, peak, alone=False) == text.format(beside or line)


def test_the_table_of_contents_is_read(book, tmp_path):
    book("one/first", "x = 1")
    assert list(lectures.listed(tmp_path)) == ["one/first"]
    (tmp_path / "_toc.yml").unlink()
    with pytest.raises(ValueError, match="no _toc.yml"):
        lectures.root(tmp_path)
