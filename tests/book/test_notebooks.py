"""The stored lectures, without running them: complete, in order, without a machine's traces, true to their numbers."""

import ast
import copy
import json
import math
import re

import pytest
import scratch
from limits import within

from flbook.book import kinds
from flbook.book.cost import seconds
from flbook.book.ledger import shares
from flbook.claims import row, statements
from flbook.plots import explore

SETUP = re.compile(
    r"\Atry:\n    import flbook\nexcept ImportError:.*\n"
    r'    %pip install -q --no-deps "flbook @ git\+https://[^\s@"]+" jaxtyping wadler-lindig(?:\n|\Z)'
)
PLACES = re.compile(r"(?<![\w.:/-])/(home|root|tmp|work|mnt|opt|usr|var|Users|private)/|[A-Z]:\\\\|site-packages")
SIDES = r"\b(?:left|middle|right|upper|lower) panel"
LONGEST, SCRATCH = 15, 40  # lines of a visible cell, and of one that trains a model without the library
ENCODED = re.compile(r"[A-Za-z0-9+/=\\]{200,}")  # pictures inside text, where a path could occur by chance


def joined(text) -> str:
    return text if isinstance(text, str) else "".join(text)


def calls(cell: dict) -> list[ast.Call]:
    """The claims that a cell checks."""
    source = re.sub(r"^(\s*)[%!].*$", r"\1pass", cell["source"], flags=re.M)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [node for node in nodes if ast.unparse(node.func) in ("claims.check", "claims.identity")]


def test_pages_and_files_are_the_same(pages):
    made = {f"book/{name}" for name in ("ledger", "differences", "theorems", "reference", "atlas")}  # by the build
    assert [page.name for page in pages if not page.source.exists() and page.name not in made] == []
    book = pages[0].source.parent
    files = {str(p.relative_to(book.parent).with_suffix("")) for p in (*book.glob("*.ipynb"), *book.glob("*/*.ipynb"))}
    assert files == {page.name for page in pages if page.source.suffix == ".ipynb"}


def test_it_is_a_notebook(notebook):
    cells = json.loads(notebook.source.read_text())["cells"]
    assert len(cells) == len(notebook.cells) > 0
    assert [cell["id"] for cell in cells if cell["cell_type"] == "code" and "outputs" not in cell] == []


def test_it_ran_in_order_and_without_errors(notebook):
    assert [cell["execution_count"] for cell in notebook.code] == list(range(1, len(notebook.code) + 1))
    assert not [output["ename"] for output in notebook.outputs if output["output_type"] == "error"]
    assert not [output for output in notebook.outputs if output.get("name") == "stderr"], "a warning on a page"


def test_it_carries_no_trace_of_a_machine_or_a_day(notebook):
    stored = json.loads(notebook.source.read_text())
    assert "widgets" not in stored["metadata"], "a stored widget view asks a CDN for its manager"
    assert not [cell for cell in notebook.cells if "execution" in cell["metadata"]], "timestamps"
    texts = [cell["source"] for cell in notebook.cells]
    for output in notebook.outputs:
        texts += [joined(output.get("text", ""))]
        texts += [joined(data) for kind, data in output.get("data", {}).items() if kind.startswith("text/")]
    found = [match.group() for text in texts if (match := PLACES.search(ENCODED.sub("", text)))]
    assert not found
    assert notebook.source.stat().st_size <= 1_000_000


def test_set_up_installs_on_colab_what_colab_lacks(notebook):
    assert SETUP.match(kinds.untitled(notebook.code[0]["source"]))


def test_every_cell_is_marked_by_its_kind(notebook):
    marked = copy.deepcopy(notebook.cells)
    kinds.mark_all(marked)
    stale = [cell["source"][:60] for cell, now in zip(notebook.cells, marked, strict=True) if cell != now]
    assert not stale, "`make run` marks them"


def test_what_is_visible_is_for_reading(notebook):
    names = scratch.imported(notebook.cells)
    for source in kinds.visible(notebook.cells):
        limit = SCRATCH if scratch.from_scratch(source, names) else LONGEST
        assert kinds.lines(source) <= limit, f"lines of a visible cell:\n{source}"


def test_code_fits_the_page(notebook):
    """Ninety-six characters; the set-up cell, which is folded and the same everywhere, has a longer one."""
    code = [cell["source"] for cell in notebook.code if kinds.kind(kinds.untitled(cell["source"])) != "set-up"]
    assert [line for source in code for line in source.splitlines() if len(line) > 96] == []


def test_what_is_visible_is_model_training_or_measurement(lectures):
    assert kinds.share([page.cells for page in lectures]) >= 0.65


def test_every_figure_has_alt_text(notebook):
    for cell in notebook.code:
        pictures = [output for output in cell["outputs"] if "image/png" in output.get("data", {})]
        still = [output for output in pictures if "text/html" not in output["data"]]
        assert len(still) <= 1, "alt text belongs to a cell, so a cell shows one figure"
        alts = [output["metadata"].get("flbook", {}).get("alt", "") for output in pictures if output not in still]
        alts += [cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", "") for _ in still]
        assert all(len(alt) >= 20 for alt in alts), f"cell {cell['execution_count']}: {alts}"
    assert not re.findall(r"!\[\s*\]\(", notebook.text), "a picture in Markdown without alt text"


def test_it_has_a_figure_to_play_with(lecture):
    assert [o for o in lecture.outputs if {"frames", "live"} & set(o.get("metadata", {}).get("flbook", {}))]


def test_every_claim_of_the_file_was_checked_once_and_holds(lecture, bibliography):
    found = statements.read(statements.path(lecture.name.removeprefix("book/")))
    statements.check_cited(lecture.name, found, bibliography)
    assert [record["name"] for record in lecture.claims] == [f"{lecture.source.stem}.{name}" for name in found]
    assert len(found) >= 3
    for record, statement in zip(lecture.claims, found.values(), strict=True):
        assert record["holds"] is True, f"{record['name']}: {row.verdict(record)}"
        for field in ("says", "source", "headline", "because", "differs"):
            assert record[field] == getattr(statement, field), record["name"]
        assert record["mark"] == row.mark(record)
        assert bool(statement.because) == (record["mark"] == "close"), f"{record['name']} {record['mark']}"
        assert bool(statement.differs) == (record["mark"] == "differs"), f"{record['name']} {record['mark']}"
        if statement.kind == "claim":
            assert record["book"] == statement.book, f"{record['name']}: `make run` stores what the file says now"
            assert abs(record["value"] - record["book"]) <= record["tol"] * (1 + 1e-9), record["name"]
        if statement.claim is not None:
            assert [-math.inf if record["claim"][0] is None else record["claim"][0]] == [statement.claim[0]]
            assert [math.inf if record["claim"][1] is None else record["claim"][1]] == [statement.claim[1]]


def test_a_check_is_at_most_three_lines(lecture):
    long = [call for cell in lecture.code for call in calls(cell) if call.end_lineno - call.lineno > 2]
    assert [ast.unparse(call.args[0]) for call in long] == []


def test_most_claims_are_sharp(lectures):
    """Theory lies well away from what someone else might believe; the ledger prints the same shares."""
    assert shares([record for page in lectures for record in page.claims]) >= (0.85, 0.60)


def test_sources_and_citations_are_in_the_bibliography(lecture, bibliography):
    cited = {key.strip() for keys in re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", lecture.text) for key in keys.split(",")}
    assert cited
    assert cited <= bibliography


def test_links_resolve(page):
    if not page.source.exists():
        pytest.skip("written when the book is built")
    for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.text):
        path = page.source.parent / target
        assert path.exists() or target.endswith("ledger.md"), target


def test_glue_resolves(page, glue):
    for reference in re.findall(r"\{glue:\w+\}`([^`]+)`", page.text if page.source.exists() else ""):
        where, _, name = reference.rpartition("::")
        source = (page.source.parent / where).resolve() if where else page.source
        known = next((names for key, names in glue.items() if source.as_posix().endswith(f"/{key}.ipynb")), set())
        assert re.sub(r":[.\d]*[a-z]?$", "", name) in known, reference
        assert not where or re.search(r":[.\d]*[a-z]$", name), f"{reference} of another page needs a format, as in :s"


def test_the_chapter_s_opening_page_links_it(lecture):
    assert f"{{doc}}`{lecture.source.stem}`" in (lecture.source.parent / "index.md").read_text()


def test_panels_are_called_by_their_letters(lecture):
    """Two panels stand side by side or above each other, as there is room, and those of a live figure are swiped."""
    for cell in lecture.code:
        about = [output.get("metadata", {}).get("flbook", {}) for output in cell["outputs"]]
        if any("wide" in of or "live" in of for of in about):
            captions = [of["caption"] for of in about if "caption" in of]
            assert not [text for text in captions if re.search(rf"{SIDES}|\b(Left|Middle|Right|Above|Below)\*?:", text)]
    assert not re.search(SIDES, lecture.text)


def test_a_live_figure_is_the_library_s(lecture):
    """What the page computes with is what the tests of live figures test."""
    for output in lecture.outputs:
        name = output.get("metadata", {}).get("flbook", {}).get("live")
        if name:
            html = "".join(output["data"]["text/html"])
            assert explore.script("core") in html and explore.script(name) in html, "run `make run` for this lecture"


def test_cost_is_within_budget(lecture):
    stated = re.search(r"^\*\*Cost\.\*\* (\d+) s and ([\d.]+) GB on one core\.", lecture.text, re.M)
    assert stated, "a line that begins with **Cost.**, which `make run` fills in"
    assert int(stated[1]) <= 60 and float(stated[2]) <= 1.5


def test_the_lectures_cost_25_seconds_on_average(lectures):
    stated = [seconds(page.text) for page in lectures]
    within("all lectures", "seconds", sum(stated), 25 * len(stated) + 5)


def test_symbols_are_on_the_notation_page_or_in_a_table_of_their_own(notebook, pages):
    notation = next(page for page in pages if page.name == "book/notation").text
    symbol = re.compile(r"\\(?:mathcal|mathbb|mathbf)\{?\s*\w\}?|\\[A-Za-z]+")
    letters = "alpha beta gamma delta epsilon varepsilon zeta eta theta kappa lambda mu nu xi rho sigma tau phi varphi "
    letters += "chi psi omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega"
    greek = {f"\\{letter}" for letter in letters.split()}

    def used(text: str) -> set[str]:
        formulas = re.findall(r"\$\$.+?\$\$|\$[^$\n]+\$", text, re.S)
        found = {re.sub(r"[ {}]", "", match) for formula in formulas for match in symbol.findall(formula)}
        return {name for name in found if name in greek or name.startswith(("\\mathcal", "\\mathbb", "\\mathbf"))}

    own = notebook.symbols
    assert used(notebook.text.replace(own, "")) <= used(notation) | used(own)


def test_the_anatomy_is_complete(lecture):
    text = lecture.text
    assert re.match(r"# \S", lecture.cells[0]["source"]), "a title first"
    assert re.search(r"^:{3,}\{prf:\w+\}", text, re.M), "a theorem, in a colon fence"
    if "{prf:theorem}" in text:
        assert re.search(r"departs? from", text), "where the page departs from the theorem's assumptions"
    assert 3 <= len(re.findall(r"\{exercise(?:-start)?\}", text)) <= 5
    assert len(re.findall(r"\{exercise(?:-start)?\}", text)) == len(re.findall(r"\{solution(?:-start)?\}", text))
    assert text.count("{solution-start}") == text.count("{solution-end}")
    assert re.search(r"^#+ Further reading", text, re.M)
    assert not re.search(r"\\(?:re)?newcommand|\\def\\", text), "Colab and GitHub read no macros"
