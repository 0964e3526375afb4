"""A new lecture: its template, the order in which CONTRIBUTING says it is written, and that its faults are its own."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flbook.book import lectures, template

ROOT = Path(__file__).parents[2]
NAME = "benign_overfitting/noisy_copies"
TITLE = "The \"mean\" of $n$ copies' error"
LEFT_OUT = {".git", ".venv", ".venv-book", ".venv-floor", "_build", "build", "__pycache__", ".pytest_cache"}


def test_nothing_is_left_to_write(lecture):
    name = lecture.name.removeprefix("book/")
    assert [f"{path}: {sentence}" for path, sentence in template.missing(ROOT, name)] == []


@pytest.mark.parametrize("chapter", sorted({name.partition("/")[0] for name in lectures.listed(ROOT)}))
def test_every_chapter_has_a_place_for_a_new_lecture(chapter):
    """In four files, behind the chapter's last lecture, once."""
    last = [name for name in lectures.listed(ROOT) if name.startswith(f"{chapter}/")][-1]
    texts = template._changed(ROOT, f"{chapter}/noisy_copies")
    assert len(texts) == 4
    for path, text in texts.items():
        assert text.count("noisy_copies") == 1 and len(text) > len(path.read_text()), path.name
        assert last.partition("/")[2] in text.partition("noisy_copies")[0], path.name


@pytest.fixture
def checkout(tmp_path):
    """A book of one chapter with one lecture, written down as the template expects it."""
    texts = {
        "_toc.yml": "root: book/index\n  - file: book/one/index\n  - file: book/one/first\n    title: First\n",
        "book/one/index.md": "# One\n\n- {doc}`first`: it is\n  so.\n- Last page.\n",
        "book/one/first.ipynb": json.dumps({"metadata": {"lecture": {"paper": ["kou2023benign"]}}, "cells": []}),
        "book/references.bib": "@article{kou2023benign,\n  author = {Kou, A},\n  year = {2023}\n}\n",
        "book/course/syllabus.md": 2 * "{doc}`First <../one/first>` (5 minutes).\n",
        "lib/flbook/lectures/one/__init__.py": 'EXPERIMENTS = (\n    "first",\n)\n',
        "lib/flbook/lectures/one/first/__init__.py": "",
        "lib/flbook/rng.py": "",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def files(folder):
    return {path: path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_it_is_written_and_named_where_lectures_are_named(checkout, monkeypatch, capsys):
    monkeypatch.chdir(checkout / "book")
    assert template.main(["one/second", TITLE]) == 0
    assert "`make run LECTURES=one/second` executes it" in capsys.readouterr().out
    written = files(checkout)
    assert not [path for path, text in written.items() if re.search(r"@\w+@", text)], "every name is put in"
    notebook = json.loads(written[checkout / "book/one/second.ipynb"])
    begin = f"# {TITLE}\n\n*Second · Kou 2023 · Level 2 of 3 · 5 minutes · "
    begin += "Tools: [Gaussian concentration](../primer.ipynb#gaussian-concentration)*\n"
    assert "".join(notebook["cells"][0]["source"]).startswith(begin)
    assert list(lectures.listed(checkout)) == ["one/first", "one/second"]
    syllabus = written[checkout / "book/course/syllabus.md"]
    assert syllabus.count("First") == 2 and syllabus.endswith(
        "First <../one/first>` (5 minutes),\n  {doc}`Second <../one/second>` (5 minutes).\n"
    )
    assert "  so.\n- {doc}`second`: To write:" in written[checkout / "book/one/index.md"]
    assert written[checkout / "lib/flbook/lectures/one/__init__.py"].endswith('    "first",\n    "second",\n)\n')

    assert template.main(["one/second"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 28 and {line.partition(": ")[0] for line in said} == {
        "book/one/second.ipynb", "book/one/index.md", "tests/lectures/one/second/test_second.py",
        *(f"lib/flbook/lectures/one/second/{file}" for file in ("__init__.py", "second_pictures.py", "claims.toml")),
    }  # fmt: skip
    (reminder,) = template.reminder(checkout / "book/one/second.ipynb")
    assert reminder == "still to write: 28 parts, which `make lecture NAME=one/second` lists"
    assert template.main(["one/second", "Again"]) == 1 and files(checkout) == written
    assert "'second' is taken by" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["second", "A title"], "NAME is 'second'; it must be chapter/name, where the chapter is one."),
        (["two/second", "A title"], "NAME is 'two/second'; it must be chapter/name"),
        (["one/Second", "A title"], "after the chapter it must be lower-case words joined by underscores"),
        (["one/lambda", "A title"], "after the chapter it must be lower-case words"),
        (["one/../second", "A title"], "after the chapter it must be lower-case words"),
        (["one/index", "A title"], "'index' is taken by book/one/index.md"),
        (["one/first", "A title"], "'first' is taken by"),
        (["one/rng", "A title"], "'rng' is taken by lib/flbook/rng.py"),
        (["one/shared", "A title"], "'shared' is taken"),
        (["one/second"], "TITLE is ''; it must be one line"),
        (["one/second", " \n"], "it must be one line, a claim in plain words"),
        ([], "usage: make lecture NAME="),
    ],
)
def test_what_cannot_be_a_lecture_is_refused_and_nothing_is_written(checkout, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(checkout)
    before = files(checkout)
    assert template.main(arguments) > 0
    out, err = capsys.readouterr()
    assert said in err and len(err.splitlines()) == 1 and not out and files(checkout) == before


def test_a_chapter_that_does_not_name_its_lectures_is_refused(checkout, monkeypatch, capsys):
    monkeypatch.chdir(checkout)
    (checkout / "book/one/index.md").write_text("# One\n")
    before = files(checkout)
    assert template.main(["one/second", "A title"]) == 1
    assert "book/one/index.md does not name one/first as it should" in capsys.readouterr().err
    assert files(checkout) == before


@pytest.mark.parametrize("at", range(9))
def test_what_is_interrupted_leaves_everything_as_it_was(checkout, monkeypatch, at):
    before, folders = files(checkout), sorted(path for path in checkout.rglob("*") if path.is_dir())
    write, calls = template.files.write, []

    def failing(path, content):
        calls.append(path)
        if len(calls) == at + 1:
            raise OSError("No space left on device")
        write(path, content)

    monkeypatch.setattr(template.files, "write", failing)
    with pytest.raises(OSError, match="No space"):
        template.write(checkout, "one/second", "A title")
    monkeypatch.undo()
    assert files(checkout) == before and sorted(path for path in checkout.rglob("*") if path.is_dir()) == folders


@pytest.fixture
def copy(tmp_path):
    """A copy of this checkout whose environment is the interpreter that runs; nothing is asked of another host."""
    folder = tmp_path / "copy"
    shutil.copytree(ROOT, folder, ignore=lambda _, names: LEFT_OUT & set(names))
    (folder / ".venv/bin").mkdir(parents=True)
    python = folder / ".venv/bin/python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (folder / ".venv/.up-to-date").touch()
    return folder


def call(copy, command, **environment):
    """What a command prints in the copy, and its exit status."""
    dropped = ("MAKE", "MFLAGS", "PYTEST", "FLBOOK_", "COV_", "PIP_")
    kept = {key: text for key, text in os.environ.items() if not key.startswith(dropped)}
    kept |= {"PYTHONPATH": str(copy / "lib"), "PIP_NO_INDEX": "1", "OMP_NUM_THREADS": "1"} | environment
    kept |= {key: "http://127.0.0.1:9" for key in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")}
    done = subprocess.run(["bash", "-c", command], cwd=copy, env=kept, capture_output=True, text=True)
    return done.stdout + done.stderr, done.returncode


def steps():
    """The commands of CONTRIBUTING, "Add a lecture", with a name and a title."""
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("\n## Add a lecture\n")[2]
    block = re.search(r"^```bash\n(.*?)^```", section, flags=re.DOTALL | re.MULTILINE)[1]
    lines = [line.partition("#")[0].strip() for line in block.splitlines()]
    title = r"The mean of \$n\$ \"copies\" improves"
    return [line.replace("A claim in plain words", title).replace("chapter/name", NAME) for line in lines]


def written_by_its_author(copy):
    """Replace every sentence that says what is to write, as if it were written."""
    for place in {path for path, _ in template.missing(copy, NAME)}:
        text = (copy / place).read_text()
        (copy / place).write_text(re.sub(r"(?:\*\*)?To write:(?:\*\*)? .+?[.](?=\s|$|\\n|\")", "It is written.", text))


@pytest.mark.timeout(900)
def test_the_order_of_contributing_leads_from_the_template_to_green(copy):
    make, left, cost, run, accept, again, green = steps()
    out, status = call(copy, make)
    assert status == 0, out
    out, status = call(copy, left)
    assert status == 0 and len(out.splitlines()) == 28 and f"book/{NAME}.ipynb: the question" in out, out
    written_by_its_author(copy)
    assert template.missing(copy, NAME) == []
    out, status = call(copy, cost)
    assert status == 0 and "What the page runs" in out, out

    out, status = call(copy, run)
    assert status == 0 and "1 claims hold, stored" in out and "still to write" not in out, out
    assert re.search(r"noisy_copies\.exponent measured -[01]\.\d+, and has no book value yet", out)
    assert "`python -m flbook accept noisy_copies` writes" in out
    for page in ("ledger", "theorems", "dependencies"):  # what `make book` makes of all pages, before `accept`
        out, status = call(copy, f".venv/bin/python -m flbook.book.{page} {page}.md")
        assert status == 0, out
    assert 'The mean of $n$ "copies" improves' in (copy / "ledger.md").read_text()

    out, status = call(copy, accept)
    assert status == 0 and len(re.findall(r"noisy_copies\.\w+: none -> ", out)) == 3, out
    out, status = call(copy, again)
    assert status == 0 and "4 claims hold, stored" in out, out
    out, status = call(copy, green, JOBS="1")  # the other core has tests of its own
    assert status == 0 and re.search(r"\d\d passed", out) and "failed" not in out, out[-3000:]
    out, status = call(copy, whole_book())
    assert status == 0, out[-3000:]


def whole_book():
    """The command that tests what is asked of all lectures at once: each is listed, needed, taught in some week."""
    tests = "tests/book/test_metadata.py tests/book/test_dependencies.py tests/course/test_syllabus.py"
    return f".venv/bin/python -m pytest -p no:nbval -q {tests}"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("fault", ["no line of its cost", "nothing can be read"])
def test_a_fault_of_one_lecture_fails_no_test_of_another(copy, fault):
    """The tests of two lectures: those of the broken one fail, those of the other do not."""
    template.write(copy, NAME, TITLE)
    page, library = copy / f"book/{NAME}.ipynb", copy / "lib/flbook/lectures" / NAME
    broken = {page: "{", library / "__init__.py": "x = (", library / "claims.toml": "["}
    if fault == "no line of its cost":
        broken = {page: page.read_text().replace("**Cost.**", "Cost:")}
    for path, text in broken.items():
        path.write_text(text)
    tests = "tests/book/test_notebooks.py tests/book/test_pages.py tests/book/test_notation.py tests/test_layers.py"
    command = f".venv/bin/python -m pytest -p no:nbval -q -rfE --tb=no {tests}"
    out, status = call(copy, command, FLBOOK_LECTURES=f"{NAME} benign_overfitting/xor")
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", out, flags=re.MULTILINE)
    assert status == 1 and failed and all("noisy_copies" in name for name in failed), out[-3000:]
