"""What fell: claims and sentences of the pages that a measurement or a fresh seed refuted, and how each was mended.

They stand in `fallen.toml`, which a person writes; the page Differences ends with them.
"""

from dataclasses import dataclass

from flbook.book import tables

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
        As `flbook.book.tables.read`.
    """
    return tables.read(folder, FILE, Fallen)
