"""Words of source files: their numbers, copies, and where to look."""

import pytest
import torch

from flbook.lectures.in_context_learning.induction import source_words


@pytest.fixture
def folder(tmp_path):
    for k in range(12):
        (tmp_path / f"file_{k:02}.py").write_text(f"x = y + {k}\nx = y\n")
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "left_out.py").write_text("z = z\n" * 100)
    return tmp_path


def test_numbers_by_frequency_and_every_tenth_file_for_tests(folder):
    found = source_words.corpus(4, folder=str(folder))
    assert found.files == 12 and len(found.train) == 10 * 10 and len(found.test) == 2 * 10
    assert found.train[:10].tolist() == [3, 2, 0, 0, 0, 1, 3, 2, 0, 1]  # the end of a line, =, x; of equals the smaller
    assert source_words.corpus(4, files=3, folder=str(folder)).files == 3


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(ValueError, match="at least two files"):
        source_words.corpus(10, folder=str(tmp_path))


def test_the_first_words_come_twice():
    window = torch.arange(10).repeat(2, 1)
    found = source_words.repeated(window, torch.tensor([3, 5]))
    assert found.tolist() == [[0, 1, 2, 0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]]


def test_windows_repeat_in_their_share_and_are_the_same_for_all():
    words = torch.arange(10_000, dtype=torch.int32)
    data = source_words.RepeatedWindows(words, 17, (0.0, 0.5, 1.0))
    drawn = data.draw(200, 0, 3).words
    copied = (drawn[..., 0:1] == drawn[..., 1:]).any(-1)
    assert not copied[0].any() and copied[2].all() and 60 < int(copied[1].sum()) < 140
    assert torch.equal(drawn[:, :, 0], drawn[:1, :, 0].expand(3, -1))
    assert torch.equal(drawn, data.draw(200, 0, 3).words) and not torch.equal(drawn, data.draw(200, 0, 4).words)
    first = (drawn[2] == drawn[2][:, :1]).long()[:, 1:].argmax(-1) + 1
    assert set(first.tolist()) == set(range(4, 9)), "from a quarter to a half"
    halves = source_words.RepeatedWindows(words, 17, (1.0, 1.0), halves=(True, False)).draw(50, 0).words
    assert (halves[0, :, 8] == halves[0, :, 0]).all() and not (halves[1, :, 8] == halves[1, :, 0]).all()


def test_where_to_look_in_copies():
    words, first = source_words.random_repeats(vocabulary=30, length=12, rows=5, seed=0)
    where = source_words.after_copies(first, 12)
    assert (words[where.row, where.place + 1] == words[where.row, where.after]).all()
    assert (words[where.row, where.place] == words[where.row, where.after - 1]).all()
    assert (where.after <= where.place).all() and len(where.row) >= 5 * 2


def test_where_to_look_after_pairs():
    window = torch.tensor([[5, 6, 7, 1, 5, 6, 8, 5, 6, 9], [0, 6, 7, 1, 0, 6, 8, 2, 3, 4]])
    where = source_words.after_pairs(window)
    found = list(zip(where.row.tolist(), where.place.tolist(), where.after.tolist(), strict=True))
    assert found == [(0, 5, 2), (0, 8, 6)], "the last occurrence, and no pair with an unknown word"
