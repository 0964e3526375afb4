"""Good and hostile submissions, graded in the sandbox: each gets what is missing as 0, a remark, and harms no other."""

import contextlib
import csv
import json
import os
import random
import signal
import subprocess
import threading
import time
from pathlib import Path

import psutil
import pytest
import toy_course
from answers import answered, handout, right
from toy_course import hand_in, rows, submission

from flbook.course import entries, gradebook, grading, sandbox, submissions, walls

KILLS = int(os.environ.get("FLBOOK_KILLS", "1"))  # `make faults`: fifty


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """The small assignment's folder of masters."""
    return toy_course.write_master(tmp_path_factory.mktemp("masters")).parent


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The small assignment."""
    return toy_course.make(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="module")
def around():
    """The walls, or none where this system gives none: what asks for them says so."""
    try:
        return walls.build([toy_course.ROOT])
    except ValueError:
        return None


@pytest.fixture
def grade(toy, around, capsys):
    """The command in this process, which spares its start: its exit status, what it printed, and its complaint."""

    def command(folder, *more):
        more = more if around else (*more, "--without-sandbox")
        return grading.main(["toy", str(folder), "--masters", str(toy), *more]), *capsys.readouterr()

    return command


def points(row: dict[str, str]) -> list[str]:
    return [row["q1"], row["q2"], row["total"]]


# What hostile submissions do in their second cell or as an answer; the points of q1 and q2; words of the remark.
FORK = """import os, time
for _ in range(400):
    if not os.fork():
        time.sleep(60)
        os._exit(0)
time.sleep(60)"""
FLOOD = """import contextlib, os
for number in range(3, 20):
    with contextlib.suppress(OSError):
        while os.write(number, b'5' * 2**20):
            pass"""
FORGE = """import contextlib, os, json
for number in range(3, 20):
    with contextlib.suppress(OSError):
        for event in ({'begin': 'q1'}, {'question': 'q1', 'results': [[True, '']] * 2}, {'begin': ''}):
            os.write(number, json.dumps(event | {'token': 'a' * 32}).encode() + b'\\n')
os._exit(0)"""
STUBBORN = "import time\nwhile True:\n    try:\n        time.sleep(1)\n    except BaseException:\n        pass"
ODD = "class Odd(Exception):\n    def __str__(self):\n        raise ValueError\nraise Odd"
HARMLESS = ["import os; os.fork()", "os.kill(-1, 9)", "os.kill(os.getppid(), 9)", "print('x' * 10**8)",
            "os.write(1, b'x' * 10**8)", "x = bytearray(20 * 2**30)", "raise SystemExit", ODD]  # fmt: skip
HOSTILE = {
    "exits": (submission("import os; os._exit(0)"), (3, 4), "cell 2 ended the process"),
    "exits in the test": (submission(q1="import os\ndef double(x):\n    os._exit(0)"), (0, 4), "q1 ended the process"),
    "forks": (submission(FORK), (3, 4), "cell 2 "),
    "floods": (submission(FLOOD), (3, 4), "cell 2 wrote what it should not"),
    "forges": (submission(FORGE, q1=""), (0, 4), "cell 2 wrote what it should not"),
    "does not end": (submission(STUBBORN), (3, 4), "cell 2 did not end within 8 s"),
    "asks to exit": (submission(q1="def double(x):\n    raise SystemExit"), (0, 4), ""),
    "has little effect": (submission(*HARMLESS), (3, 4), "cell 7 raised MemoryError"),
    "tells little": (submission(*HARMLESS[-2:], q1="def double(:"), (0, 4), "cell 3 raised Odd: ?"),
}
SNOOPS = """import os, shutil, socket
shutil.rmtree({folder!r}, ignore_errors=True)
assert not os.path.exists({toy!r}) and not os.path.exists({folder!r}) and not os.path.exists({root!r} + '/book')
try:
    socket.create_connection(('127.0.0.1', 9), timeout=5)
except OSError as error:
    assert error.errno in (101, 111), error
assert 'A_SECRET' not in os.environ and os.environ['HOME'] == os.getcwd()"""


@pytest.mark.parametrize("way", walls.WAYS)
def test_hostile_submissions_cost_their_own_part(way, toy, tmp_path, capsys, monkeypatch):
    """All in one folder, graded by one command, with good ones among them: nobody else loses a point."""
    build = walls.build
    try:
        build([toy], [way])
    except ValueError as error:
        pytest.skip(str(error))
    monkeypatch.setattr(walls, "build", lambda hidden: build(hidden, [way]))
    monkeypatch.setenv("A_SECRET", "of the lecturer")
    folder = hand_in(tmp_path / "in", {f"{name}.ipynb": content for name, (content, *_) in HOSTILE.items()})
    snoops = SNOOPS.format(toy=str(toy), folder=str(folder), root=str(toy_course.ROOT))
    hand_in(folder, {"good.ipynb": submission(), "snoops.ipynb": submission(snoops)})
    status = grading.main(["toy", str(folder), "--masters", str(toy), "--seconds", "8", "--jobs", "2"])
    found = rows(folder)
    assert (status, len(found), capsys.readouterr().err) == (0, len(HOSTILE) + 2, "")
    got = {name: (float(found[f"{name}.ipynb"]["q1"]), float(found[f"{name}.ipynb"]["q2"])) for name in HOSTILE}
    said = {name: found[f"{name}.ipynb"]["remark"] for name in HOSTILE}
    assert got == {name: due for name, (_, due, _) in HOSTILE.items()}, said
    assert [name for name, (*_, remark) in HOSTILE.items() if remark not in said[name]] == [], said
    for name in ("good.ipynb", "snoops.ipynb"):
        assert (points(found[name]), found[name]["remark"]) == (["3", "4", "7"], "")
    assert sorted(path.name for path in folder.glob("*.ipynb")) == sorted(found)


HOLDS = """import os, time
for _ in range(6):
    if not os.fork():
        held = bytearray(b'1') * 2**28
        time.sleep(60)
time.sleep(60)"""


def test_memory_is_counted_over_all_processes(made, around):
    terms = grading.Terms(made, sandbox.Limits(memory=2**30), around)
    found = grading.grade(submission(HOLDS), terms)
    assert (found.total, found.remarks) == (7, ("cell 2 held more than 1 GiB of memory",))


def test_what_does_not_end_costs_its_own_time_once(made, around, monkeypatch):
    """A cell and a function that loop are left where they are: one start for all, and what was right counts."""
    starts, lines = [], sandbox.lines
    monkeypatch.setattr(sandbox, "lines", lambda *given: starts.append(given) or lines(*given))
    looping = {"q1": "def double(x):\n    while x != 3: pass\n    return 6"}
    terms = grading.Terms(made, sandbox.Limits(seconds=4), around)
    found = grading.grade(submission("x = 0\nwhile True: x += 1", **looping), terms)
    assert len(starts) == 1
    assert {name: outcome.points for name, outcome in found.outcomes.items()} == {"q1": 1, "q2": 4}
    late = "did not end within 4 s (cell 3, line 2: while x != 3: pass)"
    assert found.remarks == ("cell 2 did not end within 4 s (cell 2, line 2: while True: x += 1)", f"q1 {late}")
    assert found.outcomes["q1"].said == (f"Any other? Your code {late}.",)


def test_all_cells_together_have_a_limit(made, around):
    """Many loops, each within a cell's limit: a submission ends after five times that, and is told so."""
    cells = ["import time; time.sleep(1.5)"] * 8
    found = grading.grade(submission(*cells), grading.Terms(made, sandbox.Limits(seconds=2), around))
    assert found.total == 0 and found.seconds < 60
    assert "took the last of the 10 s for all cells and tests" in " ".join(found.remarks)
    assert found.outcomes["q1"].said == ("the tests of this question did not run to their end",)


FORGED = [
    '{"begin": "cell 2"}',  # without the token
    '{"token": "TOKEn", "begin": "cell 2"}',
    '{"token": "TOKEN", "begin": "q1"}',  # a question before a cell
    '{"token": "TOKEN", "begin": "cell 1"}',
    '{"token": "TOKEN", "begin": ""}',
    '{"token": "TOKEN", "question": "q1", "results": [[true, ""], [true, ""]]}',
    '{"token": "TOKEN", "raised": "cell 7", "error": "?"}',
    '{"token": "TOKEN"}',
    '["token"]',
    "5",
    "[" * 100_000,
]


def test_only_what_was_asked_for_is_believed(made):
    """Each line is refused after the first cell has begun, and so are the same results twice or too many of them."""
    for line in FORGED:
        one = grading.Trial({"cell 1": "", "cell 2": ""}, made, [])
        one._hear(json.dumps({"token": one._token, "begin": "cell 1"}))
        with pytest.raises(sandbox.Stopped, match="wrote what it should not"):
            one._hear(line.replace("TOKEN", one._token))
    for results in ([[True, ""]] * 3, [[True, ""]], [], [5007], 5007, [[True, ""]] * 2):
        one = grading.Trial({}, made, [])
        one._hear(json.dumps({"token": one._token, "begin": "q1"}))
        said = json.dumps({"token": one._token, "question": "q1", "results": results})
        if results == [[True, ""]] * 2:
            one._hear(said)
        with pytest.raises(sandbox.Stopped, match="wrote what it should not"):
            one._hear(said)
    assert one.results == {"q1": [submissions.Result(True)] * 2}
    assert grading.outcome(made.questions[0], one.results["q1"]).points == 3, "points are the master's"


def test_right_answers_in_the_sandbox(around, capsys, tmp_path):
    """The book's own assignment; and one with a wrong answer, a question that is gone, from another assignment."""
    name, notebook = "decomposition", right("decomposition")
    wrong = answered(right(name), "q1", 'def coefficients(move, sign, mu, xi):\n    raise ValueError("not yet")')
    wrong["cells"] = [cell for cell in wrong["cells"] if "def one_step" not in "".join(cell["source"])]
    wrong["metadata"]["otter"]["assignment_name"] = "search"
    files = {"right.ipynb": json.dumps(notebook).encode(), "wrong.ipynb": json.dumps(wrong).encode(), "a.pdf": b"%PDF"}
    more = () if around else ("--without-sandbox",)
    assert grading.main([name, str(hand_in(tmp_path, files)), *more]) == 0
    assert "3 graded" in capsys.readouterr().out
    found, most = rows(tmp_path), handout(name).points
    assert [float(found["right.ipynb"][question]) for question in most] == list(most.values())
    assert [float(found["wrong.ipynb"][question]) for question in most] == [0, 0, 3]
    assert found["wrong.ipynb"]["remark"] == "this is the assignment search; q2: there is no one_step"
    assert found["right.ipynb"]["remark"] == "" and found["a.pdf"]["remark"] == "this is no notebook"


def test_feedback_names_what_is_wrong(grade, tmp_path):
    """The student's own exception with its line, a missing function or set-up, points and maximum of each part."""
    own = "def helper(x):\n    return 1 / (x - x)\n\ndef double(x):\n    return helper(x)"
    files = {
        "own.ipynb": submission("def broken(:", "1 + 'a'", q1=own),
        "team/absent.ipynb": submission(set_up="", q2=""),
        "team/nothing.ipynb": submission(q1="def double(x):\n    ..."),
    }
    assert grade(hand_in(tmp_path, files))[0] == 0
    found = rows(tmp_path)
    assert list(found["own.ipynb"])[:7] == ["file", "q1", "q1 max", "q2", "q2 max", "total", "total max"]
    assert [found["own.ipynb"][name] for name in ("q1", "q1 max", "q2", "q2 max", "total", "total max")] == [*"034447"]
    assert all(0 < float(row["seconds"]) < 60 for row in found.values())
    remark = found["own.ipynb"]["remark"]
    assert "cell 2 raised SyntaxError" in remark and "(cell 2, line 1: def broken(:)" in remark
    assert "cell 3 raised TypeError: unsupported operand" in remark and "(cell 3, line 1: 1 + 'a')" in remark
    absent = found["team/absent.ipynb"]["remark"]
    assert "the set-up cell is missing, changed or failed: it gives np" in absent
    assert "q2: there is no square" in absent and "double" not in absent
    assert found["team/nothing.ipynb"]["remark"] == ""
    text = tmp_path.joinpath("feedback/own.ipynb.md").read_text()
    assert "# own.ipynb: 4 of 7 points" in text and "## q1: 0 of 3 points" in text and "Time used: " in text
    cause = "Your code raised ZeroDivisionError: division by zero (cell 4, line 2: return 1 / (x - x))."
    assert f"- Three gives six. {cause}" in text
    assert "Any other?" in tmp_path.joinpath("feedback/team/nothing.ipynb.md").read_text()
    assert "raised" not in tmp_path.joinpath("feedback/team/nothing.ipynb.md").read_text(), "nothing of theirs raised"


def test_files_are_the_lecturers_and_their_groups(grade, tmp_path, monkeypatch):
    """Whatever the mask of who grades: the group of the folder reads, others do not."""
    folder = hand_in(tmp_path / "in", {"a/b.txt": b"no notebook"})
    if os.geteuid() == 0:
        os.chown(folder, -1, 65534)
    old = os.umask(0o077)
    try:
        assert grade(folder)[0] == 0
    finally:
        os.umask(old)
    written = [folder / "grades.csv", folder / "feedback/a/b.txt.md", folder / "feedback/a", folder / "feedback"]
    assert [oct(path.stat().st_mode & 0o777) for path in written] == ["0o640", "0o640", "0o750", "0o750"]
    assert {path.stat().st_gid for path in written} == {folder.stat().st_gid}


def test_every_file_has_its_row_and_none_stops_the_others(grade, tmp_path):
    """Names and encodings as they come from all over the world, and what is no file."""
    text = submission().decode()
    marks = {
        "utf-8-sig": text.encode("utf-8-sig"),
        "utf-16": text.encode("utf-16"),
        "=cmd|calc'!A1": text.encode("utf-16-le"),
    }
    folder = hand_in(tmp_path / "in", {f"{name}.ipynb": content for name, content in marks.items()})
    odd = os.fsdecode(b"Andr\xe9.ipynb")
    hand_in(folder, {odd: text.encode(), "two\nlines.ipynb": b"[]", "x" * 249 + ".ipynb": b"3", "sub/grades.csv": b"1"})
    hand_in(folder, {"feedback/idea.ipynb": b"[" * 100_000, ".hidden/a.ipynb": b"{}"})
    folder.joinpath("gone.ipynb").symlink_to(folder / "nowhere")
    folder.joinpath("copy.ipynb").symlink_to(folder / "utf-16.ipynb")
    folder.joinpath("others").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe.ipynb")
    with open(folder / "large.ipynb", "wb") as file:
        file.truncate(60 * 2**20)
    for _ in range(2):  # the second time our own files lie there, too
        status, out, err = grade(folder, "--jobs", "2")
        assert (status, err) == (0, "")
        found = rows(folder)
        right_ones = ["utf-8-sig.ipynb", "utf-16.ipynb", "'=cmd|calc'!A1.ipynb", "Andr\\xe9.ipynb"]
        assert {name: points(found.pop(name)) for name in right_ones} == dict.fromkeys(right_ones, ["3", "4", "7"])
        remarks = {name: row["remark"] for name, row in found.items()}
        assert remarks == {
            "two\\nlines.ipynb": "this is no notebook",
            "x" * 249 + ".ipynb": "this is no notebook",
            "sub/grades.csv": "this is no notebook",
            "feedback/idea.ipynb": "this is no notebook",
            "gone.ipynb": "this is a link and no file: put the file itself here",
            "copy.ipynb": "this is a link and no file: put the file itself here",
            "others": "this is a link and no file: put the file itself here",
            "pipe.ipynb": "this is no file",
            "large.ipynb": "this is larger than 50 MiB",
        }
    assert len(out.splitlines()) == 14 and "Andr\\xe9.ipynb: 7 (graded before)" in out
    kept = [path for path in folder.rglob("*") if path.is_file() and path.parts[len(folder.parts)] == "feedback"]
    assert len(kept) == 14 and folder.joinpath("feedback", f"{odd}.md") in kept
    assert not list(folder.rglob("*.tmp"))


@pytest.mark.parametrize(
    "content",
    ["dear teacher", "", "[]", '{"cells": [{"cell_type": "code"}]}', '{"cells": [{"cell_type": "code", "source": 3}]}',
     '{"cells": [3]}', '{"cells": 3}', '{"cells": [], "metadata": 3}', b"\xff\xfe", b"\xff\xfe\x00\xd8", "[" * 100_000],
)  # fmt: skip
def test_what_is_no_notebook_is_refused(content):
    with pytest.raises(ValueError, match="this is no notebook"):
        entries.notebook(content if isinstance(content, bytes) else content.encode())


def test_a_spreadsheet_executes_nothing(made):
    """Neither a name nor what a student's code says, and Markdown takes none of it for its own."""
    zero = grading.nothing(made, "=1+1")
    texts = ["=HYPERLINK(1)", "+1", "-1", "@SUM(1)", "\tx", "a,b\"c"]
    text = gradebook.table({entries.Entry(Path(name), name): zero for name in texts}, made.points)
    cells = [cell for row in csv.reader(text.splitlines()[1:]) for cell in (row[0], row[-1])]
    assert not [cell for cell in cells if cell.startswith(tuple("=+-@\t"))] and "a,b\"c" in cells
    said = gradebook.feedback("a_b.ipynb", grading.nothing(made, "cell 1 raised <b>*x*</b> [a](b)"), made.points)
    assert "a\\_b.ipynb" in said and "\\<b\\>\\*x\\*" in said


def asleep(family: list[psutil.Process]) -> bool:
    """Whether the slow submission has come to where it waits."""
    with contextlib.suppress(psutil.Error):
        return "sleep" in [one.name() for one in family]
    return False


def killed(command: list[str], after: float) -> list[psutil.Process]:
    """Start grading and kill it after so many seconds, or where the slow submission waits; returns what it started."""
    process, begin, family = subprocess.Popen(command, cwd=toy_course.ROOT, stdout=subprocess.DEVNULL), time.time(), []
    while process.poll() is None and not asleep(family) and time.time() < begin + after:
        time.sleep(0.02)
        family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return family


def test_grading_that_was_killed_goes_on(toy, around, grade, tmp_path):
    """Nothing of it runs any longer, and the next call grades only what is missing; so does one after a new upload."""
    files = {f"{name}.ipynb": submission(f"name = {name!r}") for name in "ab"}
    files["slow.ipynb"] = submission("import subprocess; subprocess.run(['sleep', '200'])")
    folder, moments = hand_in(tmp_path, files), random.Random(1)
    more = ["--jobs", "1"] if around else ["--jobs", "1", "--without-sandbox"]
    for after in [*(moments.uniform(0, 6) for _ in range(KILLS - 1)), 600]:  # at last where the slow one waits
        for kept in folder.glob(".grades/*.json"):
            json.loads(kept.read_bytes())  # complete, or it has another name
            kept.unlink()
        family = killed(toy_course.command(toy, folder, *more), after)
        if around:
            assert psutil.wait_procs(family, timeout=40)[1] == [], "a minute later its time would be over"
        if folder.joinpath("grades.csv").exists():
            assert {points(row)[-1] for row in rows(folder).values()} <= {"7"}
    assert family, "it was at work"
    hand_in(folder, {"slow.ipynb": submission()})
    status, out, _ = grade(folder)
    assert status == 0 and out.count("(graded before)") == 2 and "slow.ipynb: 7\n" in out
    assert {name: points(row) for name, row in rows(folder).items()} == dict.fromkeys(files, ["3", "4", "7"])
    assert not list(folder.rglob("*.tmp"))
    folder.joinpath("slow.ipynb").unlink()
    hand_in(folder, {"a.ipynb": submission(q1="")})
    assert grade(folder)[1].count("(graded before)") == 1
    assert points(rows(folder)["a.ipynb"]) == ["0", "4", "4"]
    folder.joinpath("b.ipynb").unlink()
    for kept in folder.joinpath(".grades").iterdir():
        kept.write_bytes(kept.read_bytes()[:-3])
    assert "(graded before)" not in grade(folder)[1], "what is damaged is graded again"
    assert "(graded before)" not in grade(folder, "--fresh")[1]


def test_no_submission_costs_another_its_grade(grade, tmp_path, monkeypatch):
    """Whatever happens while one is graded; and as many run at a time as JOBS says."""
    both = threading.Barrier(2, timeout=60)

    def fails(content, terms):
        both.wait()
        if content == b"bad":
            raise RuntimeError("the machine is on fire")
        return grading.nothing(terms.handout, "fine")

    monkeypatch.setattr(grading, "grade", fails)
    folder = hand_in(tmp_path, {"bad.ipynb": b"bad", "good.ipynb": b"good"})
    status, out, err = grade(folder, "--jobs", "2")
    assert (status, err) == (0, "")
    assert {name: row["remark"] for name, row in rows(folder).items()} == {
        "bad.ipynb": "could not be graded: the machine is on fire",
        "good.ipynb": "fine",
    }


def test_what_jupyter_understands_is_understood():
    code = {
        "cell 1": "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nx = 1",
        "cell 2": "%time y = x + 1",
        "cell 3": "!true",
        "cell 4": "display(y)\nz = y",
    }
    namespace, raised = submissions.execute(code)
    assert (namespace["z"], raised) == (2, {})


REFUSED = [
    (["--seconds", "soon"], "SECONDS must be a number above 0; it was 'soon'."),
    (["--seconds", "nan"], "SECONDS must be a number above 0; it was 'nan'."),
    (["--jobs", "0"], "JOBS must be a whole number above 0; it was '0'."),
    (["--jobs", "2.5"], "JOBS must be a whole number above 0; it was '2.5'."),
    (["--seed", "-1"], "SEED must be a whole number from 0 on; it was -1."),
]


@pytest.mark.parametrize(("more", "said"), REFUSED)
def test_what_cannot_be_is_refused_before_any_work(grade, tmp_path, more, said):
    status, out, err = grade(hand_in(tmp_path, {"a.txt": b""}), *more)
    assert (status, out, err) == (2, "", f"flbook: {said}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_without_a_sandbox_one_has_to_say_so(toy, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(walls, "_try", lambda built: "not permitted")
    folder = hand_in(tmp_path, {"a.ipynb": submission()})
    command = ["toy", str(folder), "--masters", str(toy)]
    assert grading.main(command) == 2
    out, err = capsys.readouterr()
    assert err.startswith("flbook: no sandbox can be made here (bubblewrap: not permitted; by hand: not permitted): ")
    assert (out, err.count("\n"), list(folder.iterdir())) == ("", 1, [folder / "a.ipynb"])
    assert grading.main([*command, "--without-sandbox"]) == 0
    assert points(rows(folder)["a.ipynb"]) == ["3", "4", "7"]


def test_a_table_of_somebody_else_is_not_overwritten(grade, tmp_path):
    folder = hand_in(tmp_path, {"a.txt": b"", "grades.csv": b"student;mark\n"})
    status, _, err = grade(folder)
    assert status == 2 and "SUBMISSIONS holds a grades.csv that this command has not written" in err
    assert folder.joinpath("grades.csv").read_bytes() == b"student;mark\n"


def test_an_empty_folder_is_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ValueError, match="SUBMISSIONS must"):
            entries.listed(folder)
