"""Samples that a step needs: partial sums, the threshold, and the law at a small size."""

import numpy as np
import pytest
import torch

from flbook.lectures.in_context_learning import chain_of_thought
from flbook.lectures.in_context_learning.chain_of_thought import parent_law
from flbook.lectures.in_context_learning.chain_of_thought.parity_trees import ParityTree, first_gradient


def test_growing_samples_give_the_gradient_of_each_size_up_to_a_factor():
    tokens = ParityTree(9, 4).draw(50, 0).tokens.double()
    partial = chain_of_thought.growing(tokens, 9, np.array([20, 50]))
    for n, part in zip((20, 50), partial, strict=True):
        direct = first_gradient(tokens[:n], 9)
        for m in range(3):
            torch.testing.assert_close(part[m, : 9 + m] * 4 / (9 + m) / n, direct[m, : 9 + m])


def test_the_threshold_is_where_failure_ends():
    solved = torch.tensor([[False, True], [False, True], [True, True], [True, True]])
    found = chain_of_thought.threshold(solved, np.array([10, 20, 40, 80]))
    assert found.tolist() == [30.0, 5.0]


def test_a_small_tree_needs_what_the_law_says():
    setting = chain_of_thought.experiment.setting(d=(16,), seed=tuple(range(60)))
    needed = chain_of_thought.run(setting).needed.squeeze(["flip", "k", "d"])
    assert float(needed.mean()) == pytest.approx(parent_law.needed(16, 8), rel=4 * 0.4 / 60**0.5)
