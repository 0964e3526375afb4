"""Files of entries that a person writes: one table per entry, each a dataclass of texts."""

import tomllib
from dataclasses import MISSING, fields
from pathlib import Path


def read(folder, file, kind):
    """The entries of a file below the folder that holds `_toc.yml`, in its order; none if there is no file.

    Parameters
    ----------
    folder
        The folder.
    file
        The file's path below it; its tables are named like the file.
    kind
        A dataclass of texts; a field without a default must be given.

    Raises
    ------
    ValueError
        If the file is no TOML, or an entry lacks a key, has an unknown one, or one that is no text.
    """
    path = Path(folder) / file
    if not path.is_file():
        return []
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get(path.stem, [])
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path.name}: {error}.") from None
    return [_entry(f"{path.name}, entry {number}", table, kind) for number, table in enumerate(tables, start=1)]


def _entry(where, table, kind):
    known = {field.name for field in fields(kind)}
    for key in table:
        if key not in known:
            raise ValueError(f"{where}: unknown key {key!r}; known are {', '.join(sorted(known))}.")
    for field in fields(kind):
        if field.name not in table and field.default is MISSING:
            raise ValueError(f"{where}: {field.name} is missing.")
    for key, text in table.items():
        if not isinstance(text, str) or not text.strip() or text.endswith("."):
            raise ValueError(f"{where}: {key} is {text!r}; it must be text without a full stop.")
    return kind(**table)
