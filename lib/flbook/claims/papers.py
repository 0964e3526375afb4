"""How a paper is called where a claim names it: by authors and year, not by its key in the bibliography.

The bibliography belongs to the book and is not installed with the library, so the names of the papers that claims cite
stand in `papers.json` beside this file; `make run` writes it.
"""

import json
import re
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("papers.json")
KEY = re.compile(r"\b[a-z]+\d{4}[a-z]\w*")  # of the bibliography, as in kou2023benign


def named(text):
    """A text with authors and year in place of each key of the bibliography.

    Parameters
    ----------
    text
        As in ``"kou2023benign, Theorem 4.2"``.

    Returns
    -------
    str
        As in ``"Kou et al. 2023, Theorem 4.2"``; a key that is not known stays.
    """
    return KEY.sub(lambda key: _papers().get(key[0], key[0]), text)


@cache
def _papers():
    return json.loads(FILE.read_text(encoding="utf-8"))
