"""What was handed in: the files of a folder, each with a name that may be shown, and the notebook in it."""

import json
import os
import stat
from pathlib import Path
from typing import NamedTuple

_LARGEST = 50 * 2**20  # bytes: a notebook with pictures has a hundredth of it

GRADES, FEEDBACK = "grades.csv", "feedback"  # ours, at the top of the folder; in the second lies nothing but Markdown


class Entry(NamedTuple):
    """One file that was handed in, or what stands in its place."""

    path: Path
    name: str  # below the folder, as it is shown

    def read(self) -> bytes:
        """All of it; a ValueError says what is wrong with a file that is none."""
        if self.path.is_symlink():
            raise ValueError("this is a link and no file: put the file itself here")
        try:
            with open(os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                about = os.fstat(file.fileno())
                if not stat.S_ISREG(about.st_mode):
                    raise ValueError("this is no file")
                if about.st_size > _LARGEST:
                    raise ValueError(f"this is larger than {_LARGEST // 2**20} MiB")
                return file.read()
        except OSError as error:
            raise ValueError(f"this cannot be read: {error.strerror}") from None


def shown(name: str) -> str:
    """A name as it can be printed and stored: what is no character, or none that one sees, stands as its number.

    Parameters
    ----------
    name
        Of a file, as the system gives it.

    Returns
    -------
    str
        The same for ordinary names.
    """
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def listed(folder: Path) -> list[Entry]:
    """All that was handed in, in the folder and below, but hidden files and our own.

    Parameters
    ----------
    folder
        Of the submissions.

    Returns
    -------
    list of Entry
        In the order of their names; a link stands for itself, and so does a folder that cannot be opened.

    Raises
    ------
    ValueError
        If there is no such folder, or nothing in it.
    """
    if not folder.is_dir():
        raise ValueError(f"SUBMISSIONS must be a folder; there is no folder {shown(str(folder))!r}.")
    found, closed = [], []
    for place, folders, files in os.walk(folder, onerror=lambda error: closed.append(Path(str(error.filename)))):
        here = Path(place)
        links = [name for name in folders if (here / name).is_symlink()]
        found += [here / name for name in (*files, *links) if not name.startswith(".")]
        folders[:] = [name for name in folders if not name.startswith(".")]
    theirs = [path for path in sorted({*found, *closed}) if not _ours(path.relative_to(folder))]
    entries = [Entry(path, shown(str(path.relative_to(folder)))) for path in theirs]
    if not entries:
        raise ValueError(f"SUBMISSIONS must hold what was handed in; {shown(str(folder))!r} is empty.")
    return entries


def _ours(path):
    return str(path) == GRADES or (path.parts[0] == FEEDBACK and path.suffix == ".md")


def notebook(content: bytes) -> dict:
    """The notebook in a file, in UTF-8, UTF-16 or UTF-32, with or without a byte order mark.

    Parameters
    ----------
    content
        Of the file.

    Returns
    -------
    dict
        Whose cells have a kind and a source.

    Raises
    ------
    ValueError
        If it is none.
    """
    try:
        found = json.loads(content)
        if not all(map(_is_cell, found["cells"])) or not isinstance(found.get("metadata", {}), dict):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("this is no notebook") from None
    return found


def _is_cell(cell):
    source = cell["source"]
    lines = [source] if isinstance(source, str) else source
    return isinstance(cell["cell_type"], str) and isinstance(lines, list) and all(isinstance(t, str) for t in lines)
