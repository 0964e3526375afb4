"""What fell: claims and sentences of the pages that a measurement or a fresh seed refuted, and how each was mended.

They stand in `fallen.toml`, which a person writes; the Ledger page ends with them.
"""

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

FILE = "lib/flbook/book/fallen.toml"  # below the folder that holds _toc.yml


@dataclass(frozen=True)
class Fallen:
    """One thing that a page said and had to take back.

    Parameters
    ----------
    lecture
        Its page, as ``"benign_overfitting/xor"``.
    said
        What the page said.
    fell
        What was found instead, with its number.
    wrong
        Why it could stand there.
    mended
        What the page says or does now.
    claim
        The table in the lecture's claims file, if it was a claim.
    seed
        The seeds under which it fell, if they are known.
    """

    lecture: str
    said: str
    fell: str
    wrong: str
    mended: str
    claim: str = ""
    seed: str = ""


def read(folder):
    """The entries below the folder that holds `_toc.yml`, in the order of the file; none if there is no file.

    Raises
    ------
    ValueError
        If the file is no TOML, or an entry lacks a key, has an unknown one, or one that is no text.
    """
    path = Path(folder) / FILE
    if not path.is_file():
        return []
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("fallen", [])
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path.name}: {error}.") from None
    return [_entry(number, table) for number, table in enumerate(tables, start=1)]


def _entry(number, table):
    known = {field.name for field in fields(Fallen)}
    for key in table:
        if key not in known:
            raise ValueError(f"fallen.toml, entry {number}: unknown key {key!r}; known are {', '.join(sorted(known))}.")
    for key in ("lecture", "said", "fell", "wrong", "mended"):
        if key not in table:
            raise ValueError(f"fallen.toml, entry {number}: {key} is missing.")
    for key, text in table.items():
        if not isinstance(text, str) or not text.strip() or text.endswith("."):
            raise ValueError(f"fallen.toml, entry {number}: {key} is {text!r}; it must be text without a full stop.")
    return Fallen(**table)
