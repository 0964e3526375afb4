"""What fell, and was mended: the file says it of lectures and claims that exist."""

from pathlib import Path

import pytest

from flbook.book import fallen, lectures
from flbook.claims import statements

ROOT = Path(__file__).parents[2]
GOOD = 'lecture = "one/first"\nsaid = "It is so"\nfell = "it is |not| so"\nwrong = "haste"\nmended = "it says so"\n'


@pytest.fixture
def folder(tmp_path):
    """A checkout whose file of fallen claims holds one entry of the given text."""

    def write(entry):
        path = tmp_path / fallen.FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"[[fallen]]\n{entry}")
        return tmp_path

    return write


def test_it_speaks_of_what_there_is():
    entries, known = fallen.read(ROOT), lectures.listed(ROOT)
    assert entries
    for entry in entries:
        assert entry.lecture in known, entry.said
        if entry.claim:
            assert entry.claim in statements.read(statements.path(entry.lecture)), entry.said


@pytest.mark.parametrize(
    "entry, said",
    [
        (GOOD.replace("wrong", "wrogn"), "entry 1: unknown key 'wrogn'; known are claim, fell, lecture"),
        (GOOD.replace('wrong = "haste"\n', ""), "entry 1: wrong is missing"),
        (GOOD.replace('"haste"', '"Haste."'), "entry 1: wrong is 'Haste.'; it must be text without a full stop"),
        (GOOD + "seed = 7\n", "entry 1: seed is 7; it must be text"),
        ("said = \n", "Invalid value"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(folder, entry, said):
    with pytest.raises(ValueError, match=f"^fallen.toml.*{said}") as error:
        fallen.read(folder(entry))
    assert "\n" not in str(error.value)


def test_nothing_fell(tmp_path):
    assert fallen.read(tmp_path) == []
