"""The stored lectures, without running them: complete, in order, without a machine's traces, true to their numbers."""

import ast
import json
import re

import pytest

SETUP = re.compile(
    r"\Atry:\n    import flbook\nexcept ImportError:.*\n"
    r'    %pip install -q --no-deps "flbook @ git\+https://\S+@v[\d.]+" jaxtyping wadler-lindig einops(?:\n|\Z)'
)
PLACES = re.compile(r"(?<![\w.:/-])/(home|root|tmp|work|mnt|opt|usr|var|Users|private)/|[A-Z]:\\\\|site-packages")
ENCODED = re.compile(r"[A-Za-z0-9+/=\\]{200,}")  # pictures inside text, where a path could occur by chance


def joined(text) -> str:
    return text if isinstance(text, str) else "".join(text)


def calls(cell: dict) -> list[ast.Call]:
    """The calls of key_number and identity that a cell makes."""
    source = re.sub(r"^(\s*)[%!].*$", r"\1pass", cell["source"], flags=re.M)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    names = [getattr(node.func, "attr", getattr(node.func, "id", "")) for node in nodes]
    return [node for node, name in zip(nodes, names, strict=True) if name in ("key_number", "identity")]


def literal(call: ast.Call, name: str):
    """The value of an argument that is written out, else None."""
    value = next((keyword.value for keyword in call.keywords if keyword.arg == name), None)
    try:
        return None if value is None else ast.literal_eval(value)
    except ValueError:
        return None


def test_pages_and_files_are_the_same(pages, lectures):
    assert [page.name for page in pages if not page.source.exists() and page.name != "book/ledger"] == []
    files = {str(p.relative_to(p.parents[2]).with_suffix("")) for p in (pages[0].source.parent).glob("*/*.ipynb")}
    assert files == {page.name for page in lectures}


def test_it_ran_in_order_and_without_errors(lecture):
    assert [cell["execution_count"] for cell in lecture.code] == list(range(1, len(lecture.code) + 1))
    assert not [output["ename"] for output in lecture.outputs if output["output_type"] == "error"]
    assert not [output for output in lecture.outputs if output.get("name") == "stderr"], "a warning on a page"


def test_it_carries_no_trace_of_a_machine_or_a_day(lecture):
    notebook = json.loads(lecture.source.read_text())
    assert "widgets" not in notebook["metadata"], "a stored widget view asks a CDN for its manager"
    assert not [cell for cell in lecture.cells if "execution" in cell["metadata"]], "timestamps"
    texts = [cell["source"] for cell in lecture.cells]
    for output in lecture.outputs:
        texts += [joined(output.get("text", ""))]
        texts += [joined(data) for kind, data in output.get("data", {}).items() if kind.startswith("text/")]
    found = [match.group() for text in texts if (match := PLACES.search(ENCODED.sub("", text)))]
    assert not found
    assert lecture.source.stat().st_size <= 1_000_000


def test_set_up_installs_on_colab_what_colab_lacks(lecture):
    assert SETUP.match(lecture.code[0]["source"])


def test_every_figure_has_alt_text(lecture):
    for cell in lecture.code:
        pictures = [output for output in cell["outputs"] if "image/png" in output.get("data", {})]
        still = [output for output in pictures if "text/html" not in output["data"]]
        assert len(still) <= 1, "alt text belongs to a cell, so a cell shows one figure"
        alts = [output["metadata"].get("flbook", {}).get("alt", "") for output in pictures if output not in still]
        alts += [cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", "") for _ in still]
        assert all(len(alt) >= 20 for alt in alts), f"cell {cell['execution_count']}: {alts}"
    assert not re.findall(r"!\[\s*\]\(", lecture.text), "a picture in Markdown without alt text"


def test_it_has_a_figure_to_play_with(lecture):
    assert [o for o in lecture.outputs if "frames" in o.get("metadata", {}).get("flbook", {})]


def test_every_key_number_was_stored_and_holds(lecture):
    records = lecture.key_numbers
    assert len(records) >= 3
    for record in records:
        assert record["holds"] is True, record["name"]
        assert abs(record["value"] - record["book"]) <= record["tol"] * (1 + 1e-9), record["name"]


def test_what_a_cell_states_is_what_it_stored(lecture):
    for cell in lecture.code:
        metadata = [output.get("metadata", {}).get("flbook", {}) for output in cell["outputs"]]
        stored = {record["name"]: record for record in metadata if "kind" in record}
        stated = [call for call in calls(cell) if call.args and isinstance(call.args[0], ast.Constant)]
        assert {call.args[0].value for call in stated} <= stored.keys()
        for call in stated:
            record = stored[call.args[0].value]
            for argument in ("book", "claim", "source"):
                value = literal(call, argument)
                value = list(value) if isinstance(value, tuple) else value
                assert value in (None, record[argument]), f"{record['name']}: {argument}"


def test_names_of_key_numbers_are_unique(lectures):
    names = [record["name"] for page in lectures for record in page.key_numbers]
    assert sorted(names) == sorted(set(names))


def test_sources_and_citations_are_in_the_bibliography(lecture, bibliography):
    cited = {key.strip() for keys in re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", lecture.text) for key in keys.split(",")}
    assert cited
    named = {record["source"].split(",")[0] for record in lecture.key_numbers}
    assert cited | {source for source in named if re.fullmatch(r"[a-z]+\d{4}\w*", source)} <= bibliography


def test_links_resolve(page):
    if not page.source.exists():
        pytest.skip("written when the book is built")
    for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.text):
        path = page.source.parent / target
        assert path.exists() or target.endswith("ledger.md"), target


def test_glue_resolves(lecture, glue):
    for reference in re.findall(r"\{glue:\w+\}`([^`]+)`", lecture.text):
        where, _, name = reference.rpartition("::")
        page = (lecture.source.parent / where).resolve() if where else lecture.source
        known = next((names for key, names in glue.items() if page.as_posix().endswith(f"/{key}.ipynb")), set())
        assert re.sub(r":[.\d]*[a-z]?$", "", name) in known, reference


def test_cost_is_within_budget(lecture, lectures):
    def seconds(page):
        time, memory = re.search(r"^\*\*Cost\.\*\* (\d+) s and ([\d.]+) GB on one core\.", page.text, re.M).groups()
        assert float(memory) <= 1.5
        return int(time)

    assert seconds(lecture) <= 60
    assert sum(map(seconds, lectures)) <= 25 * len(lectures) + 5, "25 s a lecture on average"


def test_symbols_are_on_the_notation_page(lecture, pages):
    notation = next(page for page in pages if page.name == "book/notation").text
    symbol = re.compile(r"\\(?:mathcal|mathbb|mathbf)\{?\s*\w\}?|\\[A-Za-z]+")
    letters = "alpha beta gamma delta epsilon varepsilon zeta eta theta kappa lambda mu nu xi rho sigma tau phi varphi "
    letters += "chi psi omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega"
    greek = {f"\\{letter}" for letter in letters.split()}

    def used(text: str) -> set[str]:
        formulas = re.findall(r"\$\$.+?\$\$|\$[^$\n]+\$", text, re.S)
        found = {match.replace(" ", "") for formula in formulas for match in symbol.findall(formula)}
        return {name for name in found if name in greek or name.startswith(("\\mathcal", "\\mathbb", "\\mathbf"))}

    assert used(lecture.text) <= used(notation)


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
