"""The ledger: what the stored notebooks say, read with the standard library alone."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from flbook.book import lectures, ledger

LIB = Path(ledger.__file__).parents[2]
RECORD = dict(
    name="heatmap.slope_in_n",
    kind="key_number",
    value=-0.263,
    book=-0.26,
    tol=0.01,
    rtol=None,
    claim=[-0.3, None],
    excludes={"no dependence": -1.0},
    why="finite n",
    seeds=[-0.26, -0.25] * 5,
    interval=None,
    source="kou2023benign, Theorem 4.2, |mu| = $1",
    scale="book",
    device="cpu",
    command="",
    holds=True,
    note="",
)
FIELDS = "name notebook value book tol claim excludes seeds source scale device holds kind why".split()


def notebook(*records, title="A lecture"):
    outputs = [{"output_type": "display_data", "data": {}, "metadata": {"flbook": record}} for record in records]
    outputs += [{"output_type": "stream", "name": "stdout", "text": "x"}]
    outputs += [{"output_type": "display_data", "data": {}, "metadata": {"flbook": {"alt": "a picture"}}}]
    return {
        "cells": [
            {"cell_type": "markdown", "source": ["---\n", f"# {title}\n", "text"], "metadata": {}},
            {"cell_type": "code", "source": "", "metadata": {}, "outputs": outputs},
        ]
    }


@pytest.fixture
def checkout(tmp_path):
    """A book of two lectures, and a notebook that is no page of it."""
    (tmp_path / "_toc.yml").write_text(
        "format: jb-book\nroot: book/index\nparts:\n  - caption: One\n    chapters:\n"
        "      - file: book/two/second  # comment\n      - file: 'book/one/first'\n      - file: book/notation\n"
    )
    identity = RECORD | dict(
        name="x.w", kind="identity", value=0.0, tol=1e-10, rtol=1e-10, claim=[None, 1e-10], seeds=None
    )
    stored = RECORD | dict(name="heatmap.paper", scale="paper", device="cuda", holds=False, value=None)
    pages = {
        "one/first": notebook(RECORD, stored),
        "two/second": notebook(identity, title="Two"),
        "one/x": notebook(RECORD),
    }
    for name, page in pages.items():
        path = tmp_path / "book" / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(page))
    return tmp_path


def test_records_come_in_the_order_of_the_book(checkout):
    found = ledger.collect(checkout)
    assert [(record["name"], record["notebook"], record["title"]) for record in found] == [
        ("x.w", "book/two/second.ipynb", "Two"),
        ("heatmap.slope_in_n", "book/one/first.ipynb", "A lecture"),
        ("heatmap.paper", "book/one/first.ipynb", "A lecture"),
    ]


def test_json_is_one_object_a_line(checkout):
    rows = [json.loads(line) for line in ledger.as_json(ledger.collect(checkout)).splitlines()]
    assert len(rows) == 3 and all(set(FIELDS) <= set(row) for row in rows)
    assert rows[1]["claim"] == [-0.3, None] and rows[1]["seeds"] == RECORD["seeds"] and rows[0]["seeds"] is None
    assert [row["holds"] for row in rows] == [True, True, False]


def test_text_reads(checkout):
    text = ledger.as_text(ledger.collect(checkout))
    assert "A lecture  (book/one/first.ipynb)" in text
    assert "holds           heatmap.slope_in_n  -0.263  (book -0.26 ± 0.01; claim at least -0.3)" in text
    assert "differs, stored" in text and "relative error below 1e-11" in text
    assert text.endswith("3 key numbers, 2 holding, 1 not; 1 stored at the papers' scale")
    assert ledger.as_text([]).strip() == "0 key numbers, 0 holding"


def test_page_links_cites_and_escapes(checkout):
    page = ledger.as_page(ledger.collect(checkout), keys={"kou2023benign"})
    assert page.startswith("# Ledger\n\n**3 key numbers, 2 holding, 1 not;")
    assert page.index("## [Two](two/second.ipynb)") < page.index("## [A lecture](one/first.ipynb)")
    (line,) = [line for line in page.splitlines() if "slope" in line]
    assert r"{cite:t}`kou2023benign`, Theorem 4.2, \|mu\| = \$1" in line
    assert r"<code>heatmap.<wbr>slope\_<wbr>in\_<wbr>n</code>" in line
    assert "**-0.263**<br>book -0.26 ± 0.01<br>claim: at least -0.3<br>10 seeds: mean" in line
    assert len(line.replace(r"\|", "").split("|")) == 5
    assert "kou2023benign, Theorem" in ledger.as_page(ledger.collect(checkout)), "unknown keys stay as they are"


def test_it_runs_without_any_package(checkout):
    """As in the environment that renders the pages: no numpy, no torch, no nbformat."""
    (checkout / "book" / "references.bib").write_text(
        "@article{kou2023benign,\n title={x}}\n@inproceedings{ other , }\n"
    )

    def call(*arguments):
        code = f"import sys; sys.path.insert(0, {str(LIB)!r}); import runpy; sys.argv = {['x', *arguments[1:]]!r}; "
        code += f"runpy.run_module({arguments[0]!r}, run_name='__main__')"
        command = [sys.executable, "-I", "-S", "-c", code]
        return subprocess.run(command, cwd=checkout / "book", capture_output=True, text=True)

    done = call("flbook.book.ledger", "ledger.md")
    assert (done.returncode, done.stderr) == (0, "")
    assert "{cite:t}`kou2023benign`" in (checkout / "book" / "ledger.md").read_text()
    done = call("flbook", "ledger", "--json")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 3
    assert call("flbook.book.ledger").returncode == 2


def test_outside_a_checkout(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="no _toc.yml in .* or above it"):
        ledger.collect()
    assert ledger.main([str(tmp_path / "ledger.md")]) == 1
    assert capsys.readouterr().err.startswith("flbook: no _toc.yml") and not list(tmp_path.iterdir())


def test_a_file_that_is_no_notebook(checkout):
    (checkout / "book/one/first.ipynb").write_text("not json")
    with pytest.raises(ValueError, match="book/one/first.ipynb is not a notebook"):
        ledger.collect(checkout)


def test_lectures_by_name(checkout):
    assert list(lectures.chosen(checkout, [])) == ["two/second", "one/first"]
    for name in ("first", "one/first", "book/one/first.ipynb"):
        assert list(lectures.chosen(checkout, [name])) == ["one/first"]
    with pytest.raises(ValueError, match="there is no lecture 'frist'; near it: one/first"):
        lectures.chosen(checkout, ["frist"])
    assert lectures.root(checkout / "book" / "one") == checkout
