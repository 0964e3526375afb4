"""The kind of every code cell, told from what the cell does, and the marks by which pages and notebooks fold it.

*Teach* is what one reads: model, training, measurement. *Figure*, *check* and *set-up* are folded to one line: on the
page, in JupyterLab and on Colab. *Live* needs a kernel and is left out of the page. `flbook.book.executor` marks what
it stores; nobody writes a mark by hand.
"""

import ast
import re
from collections.abc import Iterator

WORDS = {"figure": "Code of this figure", "check": "How this is checked", "set-up": "Set-up"}
SOLUTION = "Code of this solution"
CHECKS = "Checks"  # the section that is closed: what validates the method, identities, further numbers
TITLE = "# @title "  # what Colab shows in place of a folded cell; the page leaves the line out

_CHECKS = {"claims.check", "claims.identity"}
# What a drawing begins with: the two libraries, and the names that figures and axes have from one cell to the next.
_DRAWING = {"plots", "plt", "matplotlib", "fig", "figure", "ax", "axes"}
_STYLE = {"plots.style", "plt.style.use", "matplotlib.use"}
_BOUND_IN_SET_UP = {"device", "claims", "grader"}
_MARKS = re.compile(r"kind-.*|hide-input|remove-cell|live|solution")
_FENCE = re.compile(r"\{solution-(start|end)\}")


def kind(source: str) -> str:
    """Kind of a code cell, from its source.

    A cell that both draws and checks is a check: the figure is seen either way, but who doubts a number opens "How this
    is checked" and has to find the call there.

    Examples
    --------
    >>> kind("import numpy as np"), kind("params = fit(problem, rule)"), kind("fig = plots.collapse(error)")
    ('set-up', 'teach', 'figure')
    """
    tree = parsed(source)
    if tree is None or not tree.body:
        return "teach"  # what cannot be read is not hidden
    if _live(tree):
        return "live"
    if _checks(tree):
        return "check"
    if all(map(_sets_up, tree.body)):
        return "set-up"
    return "figure" if _draws(tree) else "teach"


def mark(cell: dict, solution: bool = False) -> None:
    """Mark one code cell, in place; whatever an earlier run marked and is no longer so goes.

    A cell inside a solution is folded with it on the page, so there it gets no fold of its own.
    """
    source = untitled(cell["source"])
    found, metadata = kind(source), cell["metadata"]
    words = SOLUTION if solution else WORDS.get(found)
    if found == "live":
        words = None
    folded = bool(words) and not solution

    own = [tag for tag in metadata.get("tags", []) if not _MARKS.fullmatch(tag)]
    on_page = {"hide-input": folded, "remove-cell": found == "live", "solution": solution}
    metadata["tags"] = [*own, f"kind-{found}", *(tag for tag, given in on_page.items() if given)]
    _put(metadata, "mystnb", code_prompt_show=folded and words, code_prompt_hide=folded and words)
    _put(metadata, "jupyter", source_hidden=bool(words))
    metadata.pop("cellView", None)
    if words:
        metadata["cellView"] = "form"
    magic = source.startswith("%%")  # which has to stay the cell's first line
    cell["source"] = f"{TITLE}{words}\n{source}" if words and not magic else source


def mark_all(cells: list[dict]) -> None:
    """Mark every code cell of a notebook, in place; what lies between two fences of a solution belongs to it.

    The heading of the section "Checks" is marked as collapsed for JupyterLab; the page closes the section by itself.
    """
    for cell, solution in _code(cells):
        mark(cell, solution)
    for cell in cells:
        if cell["cell_type"] == "markdown":
            closed = re.match(rf"## {CHECKS}\s*$", cell["source"].split("\n")[0])
            cell["metadata"].pop("jp-MarkdownHeadingCollapsed", None)
            if closed:
                cell["metadata"]["jp-MarkdownHeadingCollapsed"] = True


def untitled(source: str) -> str:
    """The source without the title that `mark` wrote above it."""
    return source.partition("\n")[2] if source.startswith(TITLE) else source


def visible(cells: list[dict]) -> list[str]:
    """Sources of the code that a reader of the page sees without opening anything."""
    return [cell["source"] for cell, solution in _code(cells) if not solution and kind(cell["source"]) == "teach"]


def solved(text: str) -> str:
    """The prose of a page without its solutions, which are folded."""
    text = re.sub(r"^:{3,}\{solution-start\}.*?\{solution-end\}\n:{3,}", "", text, flags=re.S | re.M)
    return re.sub(r"^(:{3,})\{solution\}.*?^\1\s*$", "", text, flags=re.S | re.M)


def lines(source: str) -> int:
    """How many lines a cell takes, comments included, blank ones not.

    Examples
    --------
    >>> lines("x = 1\\n\\n# twice\\nx = 2 * x")
    3
    """
    return sum(bool(line.strip()) for line in source.splitlines())


def content(source: str) -> tuple[int, int]:
    """Lines of code, and how many of them are model, training or measurement.

    The others import, draw, word an alt text, check or print. Comments and docstrings are no code; the head of a loop
    or function counts as what is in it.

    Examples
    --------
    >>> content("for x in xs:\\n    y = model(x)\\n    print(y)")
    (3, 2)
    """
    tree, labels = parsed(source), {}
    for statement in tree.body if tree else []:
        _label(statement, labels)
    code = [number for number, line in enumerate(source.splitlines(), start=1) if re.match(r"\s*[^\s#]", line)]
    found = [labels[number] for number in code if labels.get(number, "docstring") != "docstring"]
    return len(found), found.count("content")


def share(notebooks: list[list[dict]]) -> float:
    """The part of the visible lines, over notebooks given by their cells, that is model, training or measurement."""
    counts = [content(source) for cells in notebooks for source in visible(cells)]
    total, of_content = map(sum, zip(*counts, strict=True))
    return of_content / total


def _code(cells: list[dict]) -> Iterator[tuple[dict, bool]]:
    """The code cells, and whether each lies inside a solution."""
    solution = False
    for cell in cells:
        if cell["cell_type"] == "code":
            yield cell, solution
        elif fences := _FENCE.findall(cell["source"]):
            solution = fences[-1] == "start"


def _put(metadata: dict, section: str, **values) -> None:
    """Set what is given in a section of a cell's metadata, and take out what is false, and then an empty section."""
    kept = {key: value for key, value in metadata.pop(section, {}).items() if key not in values}
    if kept := kept | {key: value for key, value in values.items() if value}:
        metadata[section] = kept


def parsed(source: str) -> ast.Module | None:
    """The cell as Python, with `pass` for IPython's own lines, or None."""
    for text in (source, re.sub(r"^(\s*)[%!].*$", r"\1pass", source, flags=re.M)):
        try:
            return ast.parse(text)
        except SyntaxError:
            pass
    return None


def _calls(tree: ast.AST) -> set[str]:
    """What a piece of code calls, as written: `plots.show`, `fig.axes[0].set_xlim`."""
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


def _checks(tree: ast.AST) -> bool:
    return bool(_calls(tree) & _CHECKS)


def _draws(tree: ast.AST) -> bool:
    return any(re.split(r"\W", call, maxsplit=1)[0] in _DRAWING for call in _calls(tree) - _STYLE)


def _live(tree: ast.AST) -> bool:
    """Whether it explores an experiment or uses ipywidgets; a mere import shows nothing."""
    nodes = list(ast.walk(tree))
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == "ipywidgets"]
    names = {"ipywidgets"} | {alias.asname or alias.name for node in froms for alias in node.names}
    explores = any(call.endswith(".explore") for call in _calls(tree))
    return explores or any(isinstance(node, ast.Name) and node.id in names for node in nodes)


def _sets_up(statement: ast.stmt) -> bool:
    """Whether a statement imports (or installs where an import fails), sets the style or binds device or claims."""
    if isinstance(statement, ast.Try):
        parts = [*statement.body, *(inner for handler in statement.handlers for inner in handler.body)]
        return all(map(_sets_up, parts))
    if isinstance(statement, ast.Assign):
        return all(isinstance(name, ast.Name) and name.id in _BOUND_IN_SET_UP for name in statement.targets)
    if isinstance(statement, ast.Expr):
        return _calls(statement) <= _STYLE
    return isinstance(statement, ast.Import | ast.ImportFrom | ast.Pass)


def _label(statement: ast.stmt, labels: dict[int, str]) -> None:
    """Label the lines of a statement by what they are; the head of a compound one is content if anything inside is."""
    first = min([statement.lineno, *(node.lineno for node in getattr(statement, "decorator_list", []))])
    assert statement.end_lineno is not None  # it was parsed
    own = range(first, statement.end_lineno + 1)
    inside = _inside(statement)
    if not inside:
        labels.update(dict.fromkeys(own, _part(statement)))
        return
    for inner in inside:
        _label(inner, labels)
    part = "content" if any(labels.get(line) == "content" for line in own) else "other"
    if getattr(statement, "name", "") == "alt":  # the function that words the alt texts of a figure
        labels.update({line: "other" for line in own if labels.get(line) == "content"})
        part = "other"
    labels.update({line: part for line in own if line not in labels})


def _inside(node: ast.AST) -> list[ast.stmt]:
    """The statements directly inside a compound one, those of its handlers and cases too."""
    children = list(ast.iter_child_nodes(node))
    deeper = (ast.ExceptHandler, ast.match_case)
    below = [inner for child in children if isinstance(child, deeper) for inner in _inside(child)]
    return [child for child in children if isinstance(child, ast.stmt)] + below


def _part(statement: ast.stmt) -> str:
    """What a simple statement is: content, docstring or other."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return "docstring"
    if isinstance(statement, ast.Import | ast.ImportFrom) or _checks(statement) or _draws(statement):
        return "other"
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return "other" if ast.unparse(statement.value.func) in {"print", "display", *_STYLE} else "content"
    if isinstance(statement, ast.Assign):  # alt texts, and the names that a figure writes at its axes
        names = {getattr(target, "attr", getattr(target, "id", "")) for target in statement.targets}
        return "other" if names & {"alt", "attrs"} else "content"
    return "content"
