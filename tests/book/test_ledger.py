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
    kind="claim",
    says="The signal that is needed falls with $n",
    headline=True,
    value=-0.263,
    theory=-0.25,
    sharpness=15.0,
    z=-8.2,
    book=-0.26,
    tol=0.01,
    rtol=None,
    claim=[-0.3, None],
    excludes={"no dependence, cao2022benign": -1.0},
    why="finite n",
    because="the next order counts",
    differs="",
    mark="close",
    seeds=[-0.26, -0.25] * 5,
    interval=None,
    source="kou2023benign, Theorem 4.2, |mu| = $1",
    scale="book",
    device="cpu",
    command="",
    holds=True,
    note="",
)
FIELDS = "name notebook says theory sharpness z headline value book tol claim excludes seeds source".split()
FIELDS += "scale device holds kind why".split()


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
        name="x.w", kind="identity", says="Both agree", headline=False, value=0.0, tol=1e-10, rtol=1e-10,
        claim=[None, 1e-10], seeds=None, theory=None, sharpness=None, z=None, excludes={"twice": 1.0},
        mark="agrees", because="",
    )  # fmt: skip
    stored = RECORD | dict(
        name="heatmap.paper", scale="paper", device="cuda", command="python -m flbook run x", holds=False, value=None,
        mark="missed", theory=None, sharpness=2.5,
    )
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
    lines = [line.rstrip() for line in text.splitlines()]
    assert "A lecture  (book/one/first.ipynb)" in lines
    first = lines.index("A lecture  (book/one/first.ipynb)")
    assert lines[first + 1].startswith("* ! missed, stored   The signal"), "the weakest first"
    measured = "measured -0.263 ± 0.002, theory -0.25 (8.2 s.e. off: the next order counts)"
    measured += "; not -1 (no dependence, Cao et al. 2022)"
    assert lines[first + 3] == f"* ≈ close            The signal that is needed falls with $n: {measured}"
    scores = "15 half-widths to the nearest rival, -8.2 standard errors from theory; claim at least -0.3; kou2023benign"
    assert lines[first + 4].strip().startswith(f"slope_in_n; {scores}")
    assert "  ✓ agrees           Both agree: relative error below 1e-11, not 1 (twice)" in lines
    assert lines[-2] == "3 claims: 1 agree with theory, 1 are close to it, 1 missed; 1 of stored runs"
    shares = "100% have a sharpness of 2 or more, 50% have a sharpness of 3 or more."
    assert lines[-1] == f"Of 2 claims that meet a theory or a published rival, {shares}"
    assert ledger.as_text([]).strip().startswith("0 claims: none")


def test_a_draft_is_called_so(checkout):
    draft = {**ledger.collect(checkout)[1], "book": None, "holds": None}
    text = ledger.as_text([draft])
    assert "* – draft            The signal" in text and "1 claim: 1 draft" in text
    assert "| – draft |" in ledger.as_page([draft])


def test_a_rival_counts_as_published_if_it_names_its_paper(checkout):
    found = ledger.collect(checkout)
    dull = {**found[2], "sharpness": 1.0}
    assert ledger.shares([dull]) == (0.0, 0.0) and ledger.shares([found[1], dull]) == (0.5, 0.5)
    assert ledger.shares([found[1], {**dull, "excludes": {"chance": 0.5}}]) == (1.0, 1.0), "no published rival"


def test_page_links_cites_and_escapes(checkout):
    page = ledger.as_page(ledger.collect(checkout), keys={"kou2023benign"})
    assert page.startswith("# Ledger\n\n**3 claims: 1 agree with theory, 1 are close to it, 1 missed;")
    assert page.index("## [Two](two/second.ipynb)") < page.index("## [A lecture](one/first.ipynb)")
    assert "2 claims, 2 of them headlines; the weakest has a sharpness of 2.5\n:class: dropdown" in page
    _, line = [line for line in page.splitlines() if "The signal" in line]
    assert line.startswith(
        r"| **The signal that is needed falls with \$n**"
        '<a class="headerlink" id="heatmap.slope_in_n" href="#heatmap.slope_in_n" title="Link to this claim">#</a>'
        r"<br>{cite:t}`kou2023benign`, Theorem 4.2, \|mu\|"
    )
    assert "measured -0.263 ± 0.002, theory -0.25 (8.2 s.e. off: the next order counts); not -1" in line
    assert "claim at least -0.3<br>15 half-widths" in line
    assert len(line.replace(r"\|", "").split("|")) == 5
    assert "kou2023benign, Theorem" in ledger.as_page(ledger.collect(checkout)), "unknown keys stay as they are"


def test_a_page_links_each_claim_to_its_row():
    page = notebook(RECORD)
    line = "<summary>It falls</summary><div><i>name:</i> heatmap.slope_in_n</div>"
    page["cells"][1]["outputs"][0]["data"] = {"text/html": [line], "text/plain": "It falls"}
    ledger.with_links(page, "../../")
    link = '<a href="../../book/ledger.html#heatmap.slope_in_n">heatmap.slope_in_n</a>'
    assert page["cells"][1]["outputs"][0]["data"]["text/html"] == line.replace(" heatmap.slope_in_n", f" {link}")


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


def test_a_notebook_beside_the_chapters_is_a_page_and_no_lecture(checkout):
    (checkout / "_toc.yml").write_text(
        "root: book/index\nparts:\n  - caption: One  # the first\n    chapters:\n      - file: book/one/first\n"
        '  - caption: "Beside"\n    chapters:\n      - file: book/map\n      - file: book/words.md\n'
    )
    for name in ("index.md", "words.md"):
        (checkout / "book" / name).write_text("# Words\n")
    (checkout / "book/map.ipynb").write_text(json.dumps(notebook()))
    assert list(lectures.listed(checkout)) == ["one/first"]
    assert list(lectures.notebooks(checkout)) == list(lectures.chosen(checkout, [])) == ["one/first", "map"]
    assert lectures.chosen(checkout, ["map"]) == {"map": checkout / "book/map.ipynb"}
    assert [(caption, list(below)) for caption, below in lectures.parts(checkout)] == [
        ("", ["index"]),
        ("One", ["one/first"]),
        ("Beside", ["map", "words"]),
    ]
    assert {record["notebook"] for record in ledger.collect(checkout)} == {"book/one/first.ipynb"}
