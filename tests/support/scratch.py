"""Cells from scratch: they use nothing of the library, so that a reader can paste them into an empty notebook."""

import ast

from flbook.book.kinds import parsed, untitled


def imported(cells: list[dict]) -> set[str]:
    """Names that the cells of a notebook import from flbook."""
    trees = [tree for cell in cells if cell["cell_type"] == "code" and (tree := parsed(untitled(cell["source"])))]
    found = [node for tree in trees for node in ast.walk(tree)]
    own = [node for node in found if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "flbook"]
    return {"flbook"} | {alias.asname or alias.name for node in own for alias in node.names}


def from_scratch(source: str, names: set[str]) -> bool:
    """Whether a cell uses none of these names, those of the library."""
    tree = parsed(source)
    return tree is not None and not {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & names
