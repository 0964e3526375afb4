"""Products of equal waves: the solution lies in their span, and few pairs find it."""

import pytest
import torch

from flbook.lectures.representation.grokking import known_group
from flbook.lectures.representation.grokking.modular_table import targets


def test_the_solution_lies_in_the_span():
    pairs = torch.cartesian_prod(torch.arange(9), torch.arange(9))
    for features, count in (("same wave", 17), ("all waves", 65)):
        x, y = known_group.products(pairs, 9, features), targets(pairs, 9)
        assert x.shape[-1] == count
        torch.testing.assert_close(x @ (torch.linalg.pinv(x) @ y), y, rtol=0, atol=1e-9)


def test_few_pairs_are_enough():
    found = known_group.run(known_group.experiment.setting(share=(0.4,), p=13)).accuracy
    assert found.mean() > 0.95


def test_an_even_modulus_is_refused():
    with pytest.raises(ValueError, match="p must be odd"):
        known_group.experiment.setting(p=10)
