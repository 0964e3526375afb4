"""The table of addition: what each kind of split shows, counted by hand."""

import pytest
import torch

from flbook.lectures.representation.grokking.modular_table import (
    SPLITS,
    ModularTable,
    differences,
    inputs,
    labels,
    targets,
)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("p", [6, 7])
def test_every_pair_is_shown_or_kept(split, p):
    table = ModularTable(p, 0.6, split)
    train, test = table.draw((0, 1))
    assert train.shape == (2, table.n, 2) and table.n % p == 0
    codes = (torch.cat([train, test], 1) * torch.tensor([p, 1])).sum(-1)
    assert (codes.sort(-1).values == torch.arange(p * p)).all()
    assert not torch.equal(train[0], train[1])
    torch.testing.assert_close(train[1], table.draw(1).train)


def test_what_is_equal_and_what_is_uneven():
    p, often = 11, 6
    counts = {split: differences(ModularTable(p, 0.55, split).draw(0).train, p) for split in SPLITS}
    assert (counts["equal a-b"] == often).all()
    assert sorted(counts["uneven a-b"].tolist()) == [2] * 5 + [6] + [10] * 5
    assert counts["random"].std() > 0.5 and counts["equal a+b"].std() > 0.5
    sums = torch.bincount(labels(ModularTable(p, 0.55, "equal a+b").draw(0).train, p), minlength=p)
    assert (sums == often).all()


def test_inputs_and_targets_by_hand():
    pairs = torch.tensor([[2, 1], [0, 2]])
    assert inputs(pairs, 3).tolist() == [[0, 0, 1, 0, 1, 0], [1, 0, 0, 0, 0, 1]]
    assert targets(pairs, 3).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert differences(pairs, 3).tolist() == [0, 2, 0]


def test_a_table_without_a_test_is_refused():
    with pytest.raises(ValueError, match="leave pairs to show and to test"):
        ModularTable(5, 0.95)
    with pytest.raises(ValueError, match="p must be at least 3"):
        ModularTable(2, 0.5)
