"""The bibliography: every entry is closed, has a key of its own, and stands in alphabetical order."""

import re
from pathlib import Path

ENTRIES = re.split(r"\n(?=@)", (Path(__file__).parents[2] / "book/references.bib").read_text().strip())
KEYS = [re.match(r"@\w+\{(\S+),\n", entry)[1] for entry in ENTRIES]


def test_every_entry_is_closed():
    open_ones = [key for key, entry in zip(KEYS, ENTRIES, strict=True) if entry.count("{") != entry.count("}")]
    assert not open_ones
    assert all(entry.rstrip().endswith("\n}") for entry in ENTRIES)


def test_keys_are_unique_and_in_order():
    assert sorted(set(KEYS)) == KEYS


def test_keys_are_author_year_word():
    assert not [key for key in KEYS if not re.fullmatch(r"[a-z]+\d{4}[a-z]+", key)]
