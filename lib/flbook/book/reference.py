"""The reference: what a network, data or an experiment of one's own may ask the library for, by task.

``python -m flbook.book.reference book/reference.md`` writes the page. Signatures and docstrings are read from the
sources, so nothing is imported: the pages are rendered where there is no torch.
"""

import ast
import posixpath
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

import flbook
from flbook.book import definitions, lectures, made, tables
from flbook.book.ledger import plain

FILE = "lib/flbook/book/reference.toml"  # below the folder that holds _toc.yml
PAGE = "book/reference"
OTHERS = "Other public names"  # those that no task names yet; a test asks for a task

_INTRODUCTION = """\
# Reference

What you may import for a network, data or an experiment of your own, by task. What is imported from `flbook` itself is
stable: it keeps its meaning within a major version, and an old name warns for a minor version before it goes. The page
{doc}`your_own` uses several of these names on a network that the book does not have.

Each name links to its code; many give an equation and, after "Source", the paper that it is from. Arguments, results
and, for most, an example that the tests run open below it; examples leave out common imports (torch, nn, np, xr).
Shapes are written as in the lectures: `n` samples, `d` coordinates, and `*E` for any number of leading axes of an
ensemble.
"""
_CALLED = {"Parameters": "Takes", "Attributes": "Holds", "Returns": "Returns", "Yields": "Yields", "Raises": "Raises"}
_INLINE = re.compile(r"``(?P<code>.+?)``(?!`)|:math:`(?P<math>.+?)`|(?<!\w)`(?P<name>[^`]+)`", flags=re.DOTALL)


@dataclass(frozen=True)
class Task:
    """A task of a reader, and what serves it.

    Parameters
    ----------
    title
        The task, as the reader would say it.
    says
        What serves it, in a sentence or two.
    names
        Public names, or paths below the package such as ``data.prompts.TaskPool``, divided by spaces.
    """

    title: str
    says: str
    names: str


class Listed(NamedTuple):
    """A name of the reference: how it is called below the package, where it is defined, and what is imported for it."""

    name: str
    place: definitions.Definition
    imported: str
    called: str


def read(folder: Path) -> list[Task]:
    """The tasks, in their order.

    Raises
    ------
    ValueError
        As `flbook.book.tables.read`.
    """
    return tables.read(folder, FILE, Task)


def tasks(folder: Path) -> list[Task]:
    """The same; what is public and serves none of them stands in a last one."""
    found = read(folder)
    missing = unplaced(found)
    return [*found, Task(OTHERS, "Not sorted yet", " ".join(missing))] if missing else found


def unplaced(found: list[Task]) -> list[str]:
    """Public names that no task names, and those of `flbook.observe`."""
    named = {name for task in found for name in task.names.split()}
    tree = _tree(definitions.LIBRARY / "flbook/observe/__init__.py")
    offered = next(ast.literal_eval(getattr(one, "value", one)) for one in tree.body if _assigns(one) == "__all__")
    observed = [f"observe.{name}" for name in offered if name not in flbook.PUBLIC]
    return [name for name in (*flbook.PUBLIC, *observed) if name not in named]


def entries(task: Task) -> list[Listed]:
    """The names of a task; a module stands for the functions and classes that it offers.

    Raises
    ------
    ValueError
        If the library has no such name.
    """
    found = []
    for name in task.names.split():
        place = definitions.definition("flbook", *name.split("."))
        if place is None:
            raise ValueError(f"{Path(FILE).name}, {task.title!r}: the library has no {name}.")
        home, _, short = name.rpartition(".")
        take = f"from flbook{f'.{home}' if home else ''} import {short}"
        found.append(Listed(name, place, take, short))
        if place.line == 1:
            path = definitions.LIBRARY / place.file
            offered = [one for one in _tree(path).body if isinstance(one, ast.FunctionDef | ast.ClassDef)]
            for one in offered:
                if not one.name.startswith("_"):
                    inside, called = definitions.Definition(place.file, one.lineno), f"{short}.{one.name}"
                    found.append(Listed(f"{name}.{one.name}", inside, take, called))
    return found


def addresses(folder: Path) -> dict[definitions.Definition, str]:
    """The name in the reference of what is defined at a line of the library."""
    return {entry.place: entry.name for task in tasks(folder) for entry in entries(task)}


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _assigns(statement: ast.stmt) -> str | None:
    targets = getattr(statement, "targets", [getattr(statement, "target", None)])
    return targets[0].id if targets and isinstance(targets[0], ast.Name) else None


# The text of a docstring, from reStructuredText to MyST.


def inline(text: str) -> str:
    """A piece of a docstring's text: code, formulas and names marked as MyST has them, the rest as plain words."""
    parts, end = [], 0
    for found in _INLINE.finditer(text):
        parts.append(plain(text[end : found.start()]))
        code = found["code"] or found["name"] or ""
        parts.append(f"${found['math']}$" if found["math"] else f"`` {code} ``" if "`" in code else f"`{code}`")
        end = found.end()
    return re.sub(r"\s+", " ", "".join([*parts, plain(text[end:])])).strip()


def prose(text: str) -> list[str]:
    """Lines of MyST for the paragraphs of a docstring: displayed formulas, lists and indented code among them."""
    lines, found = text.strip("\n").splitlines(), []
    while lines:
        line = lines.pop(0)
        if line.startswith(".. math::"):
            formula = " ".join([line.removeprefix(".. math::"), *_taken(lines, _indented)])
            found += ["", "$$", _display(" ".join(formula.split())), "$$", ""]
        elif _indented(line) and line.strip():
            block = dedent("\n".join([line, *_taken(lines, _indented)])).strip("\n")
            found += ["", "```text", block, "```", ""]
        elif line.startswith("- "):
            found.append(f"- {inline(' '.join([line[2:], *_taken(lines, _continued)]))}")
        else:
            found.append(inline(re.sub(r"::$", ":", "\n".join([line, *_taken(lines, _plain)]))))
    return [*found, ""]


def _indented(line: str) -> bool:
    return line.startswith(" ") or not line.strip()


def _continued(line: str) -> bool:
    return line.startswith("  ")


def _plain(line: str) -> bool:
    return bool(line.strip()) and not re.match(r"\.\. math::|- | ", line)


def _taken(lines: list[str], belongs: Callable[[str], bool]) -> list[str]:
    """The first lines that belong together, taken off the list."""
    count = next((k for k, line in enumerate(lines) if not belongs(line)), len(lines))
    taken = lines[:count]
    del lines[:count]
    return taken


def _display(formula: str) -> str:
    """A displayed formula; lines that are aligned stand in the environment that reStructuredText gives them."""
    aligned = re.search(r"(?<!\\)&|\\\\", formula) and r"\begin" not in formula
    return rf"\begin{{aligned}}{formula}\end{{aligned}}" if aligned else formula


def sections(doc: str) -> dict[str, str]:
    """The parts of a numpy docstring by title, what stands before them under ``""``, and its source."""
    doc = doc.replace("\r", "")
    found = {}
    if source := re.search(r"^Source: (.*?)(?=\n\s*\n|\Z)", doc, flags=re.DOTALL | re.MULTILINE):
        found["Source"] = source[1]
        doc = doc[: source.start()] + doc[source.end() :]
    parts = re.split(r"^(\w[\w ]*)\n-{3,}$", doc, flags=re.MULTILINE)
    return {"": parts[0].strip("\n"), **dict(zip(parts[1::2], parts[2::2], strict=True)), **found}


def items(text: str) -> list[tuple[str, str]]:
    """Names and what is said of each, of a section such as Parameters."""
    found = re.findall(r"^(\S.*)\n((?:[ \t]+\S.*\n?|[ \t]*\n)*)", text.strip("\n") + "\n", flags=re.MULTILINE)
    return [(name.strip(), said.strip()) for name, said in found]


def signature(node: ast.stmt, name: str) -> str:
    """How a function is called, or a class made; of a value what it is."""
    if isinstance(node, ast.FunctionDef):
        return f"{name}({_arguments(node.args)})"
    if isinstance(node, ast.ClassDef):
        start = next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
        if start:
            return f"{name}({_arguments(start.args)})"
        fields = [one for one in node.body if isinstance(one, ast.AnnAssign) and "ClassVar" not in ast.unparse(one)]
        return f"{name}({', '.join(map(_field, fields))})" if fields else name
    value = getattr(node, "value", None)
    return f"{name} = {ast.unparse(value)}" if value else name


def _field(one: ast.AnnAssign) -> str:
    return f"{ast.unparse(one.target)}={ast.unparse(one.value)}" if one.value else ast.unparse(one.target)


def _arguments(given: ast.arguments) -> str:
    """The arguments by name with their defaults, without their types and the object itself."""
    places, names = [*given.posonlyargs, *given.args], [ast.arg(one.arg) for one in given.kwonlyargs]
    if places and places[0].arg in ("self", "cls"):
        places = places[1:]
    return ast.unparse(ast.arguments(
        posonlyargs=[], args=[ast.arg(one.arg) for one in places], kwonlyargs=names, defaults=given.defaults,
        kw_defaults=given.kw_defaults, vararg=given.vararg and ast.arg(given.vararg.arg),
        kwarg=given.kwarg and ast.arg(given.kwarg.arg),
    ))


def _methods(node: ast.stmt) -> list[str]:
    """What an object of a class can be asked, with the first line of each docstring."""
    inside = [one for one in getattr(node, "body", []) if isinstance(one, ast.FunctionDef)]
    inside = [one for one in inside if isinstance(node, ast.ClassDef) and not one.name.startswith("_")]
    lines = []
    for one in inside:
        said = (ast.get_docstring(one) or "").partition("\n\n")[0]
        plain_value = any(ast.unparse(by) == "property" for by in one.decorator_list)
        called = one.name if plain_value else signature(one, one.name)
        lines.append(f"- `{called}`: {inline(said)}")
    return lines


def _remarks(node: ast.stmt, lines: list[str]) -> list[tuple[str, str]]:
    """The fields of a class that comments describe."""
    fields = [one for one in getattr(node, "body", []) if isinstance(one, ast.AnnAssign)]
    said = [(ast.unparse(one.target), lines[(one.end_lineno or one.lineno) - 1].partition("  # ")[2]) for one in fields]
    return [(name, remark) for name, remark in said if remark]


# The page.


def _described(entry: Listed, repository: str) -> list[str]:
    """An entry's lines of MyST."""
    path = definitions.LIBRARY / entry.place.file
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    where = f"{repository}/blob/main/lib/{entry.place.file}"
    if entry.place.line == 1:
        return [*_heading(entry, entry.name, where), *prose(sections(ast.get_docstring(tree) or "")[""])]
    node = next(one for one in tree.body if one.lineno == entry.place.line)
    lines = _heading(entry, signature(node, entry.called), f"{where}#L{entry.place.line}")
    if not isinstance(node, ast.FunctionDef | ast.ClassDef):  # a value is what its class says
        node = next((one for one in tree.body if getattr(one, "name", "") == _class(node)), node)
    doc = ast.get_docstring(node) if isinstance(node, ast.FunctionDef | ast.ClassDef) else None
    parts = sections(doc or "")
    lines += prose(parts[""])
    if "Source" in parts:
        lines += [f"*Source:* {inline(parts['Source'])}", ""]
    more = _folded(parts, node, text.splitlines())
    return [*lines, *_fold(more)] if more else lines


def _class(node: ast.stmt) -> str:
    """The class of a value, such as ``ReLUPower`` of ``relu = ReLUPower(1.0)``."""
    return ast.unparse(getattr(node, "value", node)).partition("(")[0]


def _heading(entry: Listed, said: str, source: str) -> list[str]:
    name = entry.name
    return [
        "```{raw} html",
        f'<h3 class="reference" id="{name}"><code>{escape(said)}</code>'
        f'<a class="headerlink" href="#{name}" title="Link to this name">#</a></h3>',
        f'<p class="reference"><code>{entry.imported}</code> · '
        f'<a href="{source}" aria-label="Source of {name}">Source</a></p>',
        "```",
        "",
    ]


def _folded(parts: dict[str, str], node: ast.stmt, source: list[str]) -> list[str]:
    """Arguments, result, errors, methods and example."""
    lines = []
    for title, called in _CALLED.items():
        if title in parts:
            lines += [f"**{called}**", ""]
            lines += [f"- `{name}`: {inline(said)}" for name, said in items(parts[title])] + [""]
    if not {"Parameters", "Attributes"} & parts.keys() and (remarks := _remarks(node, source)):
        lines += ["**Holds**", "", *(f"- `{name}`: {inline(said)}" for name, said in remarks), ""]
    if methods := _methods(node):
        lines += ["**Methods and properties**", "", *methods, ""]
    if "Examples" in parts:
        lines += ["**Example**", "", "```python", parts["Examples"].strip("\n"), "```", ""]
    return lines


def _fold(lines: list[str]) -> list[str]:
    said = "Arguments, result and example"
    if "**Example**" not in lines:
        said = "Details"
    begin = f'<details class="reference"><summary>{said}</summary>'
    return ["```{raw} html", begin, "```", "", *lines, "```{raw} html", "</details>", "```", ""]


def _short(name: str) -> str:
    """A name without the modules that it lies in."""
    return name.rpartition(".")[2]


def as_page(folder: Path) -> str:
    """The page in MyST Markdown."""
    settings = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    repository = settings["project"]["urls"]["Repository"]
    found = [(task, entries(task)) for task in tasks(folder)]
    lines = [_INTRODUCTION]
    last = Counter(_short(one.name) for _, inside in found for one in inside)  # what is not unique is named in full
    for task, inside in found:
        shown = [one.name if last[_short(one.name)] > 1 else _short(one.name) for one in inside]
        named = zip(inside, shown, strict=True)
        links = ", ".join(f'<a href="#{one.name}"><code>{text}</code></a>' for one, text in named)
        lines += [f"**{task.title}.** {links}", ""]
    for task, inside in found:
        lines += [f"## {task.title}", "", f"{task.says}.", ""]
        for one in inside:
            lines += _described(one, repository)
    return "\n".join(lines) + "\n"


def link(page: str, name: str) -> str:
    """The way from a page of the book to a name of the reference."""
    return f"{posixpath.relpath(PAGE, posixpath.dirname(page))}.html#{name}"


def main(argv: list[str]) -> int:
    """Write the page to the file that the arguments name; returns the exit status."""
    return made.write(argv, "python -m flbook.book.reference OUT.md", lambda path: as_page(lectures.root()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
