"""Pages that are made from the others when the book is built: one command line for all of them."""

import sys
from pathlib import Path


def write(argv, usage, make):
    """Write what `make` returns for the path that the arguments name; returns the exit status.

    Parameters
    ----------
    argv
        The arguments: one path.
    usage
        How to call it, for whoever called it otherwise.
    make
        Function of the path that returns the page's text; of a ValueError its sentence is printed, and nothing written.
    """
    if len(argv) != 1:
        print(f"usage: {usage}", file=sys.stderr)
        return 2
    path = Path(argv[0])
    try:
        text = make(path)
    except ValueError as error:
        print(f"flbook: {error}", file=sys.stderr)
        return 1
    path.write_text(text, encoding="utf-8")
    return 0
