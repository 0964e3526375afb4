"""The book by Sphinx alone, should Jupyter Book 1 be left behind: ``python -m flbook.book.frontend write|check|build``.

`conf.py` beside `_config.yml` is what Jupyter Book tells Sphinx, written down, without the extensions that are Jupyter
Book's own. `write` makes it, `check` says whether it is what `_config.yml` gives, and `build` builds with it where
Jupyter Book cannot be imported. Pages are then rendered by Sphinx, MyST-NB and the theme, which live on without it.
"""

import sys

from flbook.book import lectures

OUT = "_build/sphinx"
# Jupyter Book itself, what it adds for LaTeX, and what this book switches off anyway.
LEFT_OUT = {"jupyter_book", "sphinx_jupyterbook_latex", "sphinx_thebe", "sphinx_comments"}
SETTINGS_LEFT_OUT = {"use_jupyterbook_latex", "latex_engine", "comments_config"}
HEAD = '''\
"""What Sphinx builds the book with if Jupyter Book does not: made of _config.yml by `make conf`, never by hand."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "book" / "_ext"))

'''


def text(folder):
    """The text of `conf.py` that the `_config.yml` of a folder gives; asks Jupyter Book.

    Parameters
    ----------
    folder
        The folder of `_config.yml` and `_toc.yml`.
    """
    from jupyter_book.config import get_final_config  # pyright: ignore[reportMissingImports] (where books are built)

    given = {"external_toc_path": "_toc.yml", "latex_individualpages": False}
    settings, _ = get_final_config(user_yaml=folder / "_config.yml", sourcedir=folder, cli_config=given)
    settings["extensions"] = [name for name in settings["extensions"] if name not in LEFT_OUT]
    return HEAD + "".join(f"{key} = {settings[key]!r}\n" for key in sorted(settings.keys() - SETTINGS_LEFT_OUT))


def check(folder):
    """Refuse a `conf.py` that is not what `_config.yml` gives."""
    file = folder / "conf.py"
    if not file.is_file() or file.read_text(encoding="utf-8") != text(folder):
        raise ValueError("conf.py is not what _config.yml gives: run `make conf`, and commit it.")


def build(folder):
    """Build the pages as if Jupyter Book were not installed; returns the exit status."""
    from sphinx.cmd.build import main as sphinx

    sys.modules["jupyter_book"] = None  # pyright: ignore[reportArgumentType] (importing it raises ImportError now)
    return sphinx(["-W", "--keep-going", "-q", str(folder), str(folder / OUT)])


def main(argv):
    """Do what the argument names; returns the exit status."""
    tasks = {"write": lambda folder: (folder / "conf.py").write_text(text(folder), encoding="utf-8") and 0,
             "check": check, "build": build}
    if len(argv) != 1 or argv[0] not in tasks:
        print("usage: python -m flbook.book.frontend write|check|build", file=sys.stderr)
        return 2
    try:
        return tasks[argv[0]](lectures.root()) or 0
    except ValueError as error:
        print(f"flbook: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
