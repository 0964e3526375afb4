"""The 1/8: the sum of the page attains it, and no sum over patches does better."""

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from flbook.lectures.training_strategies.mixture_of_experts.bound import best_sum, patterns


def fewest_errors(clusters: int) -> int:
    """The smallest number of wrong patterns over all values on v_k, -v_k and c_k: an integer programme."""
    every, values, far = patterns(clusters), 3 * clusters, 200.0
    rows = np.zeros((len(every), values + len(every)))
    for i, (k, other, y, eps) in enumerate(every):
        for place in (2 * k - 2 + (y < 0), 2 * other - 2 + (eps < 0), 2 * clusters + k - 1):
            rows[i, place] += y
        rows[i, values + i] = far  # a pattern that counts as an error asks for nothing
    cost = np.r_[np.zeros(values), np.ones(len(every))]
    high = np.r_[np.full(values, 60.0), np.ones(len(every))]
    ends = Bounds(np.r_[-high[:values], np.zeros(len(every))], high)
    return round(milp(cost, constraints=LinearConstraint(rows, 1.0), integrality=cost, bounds=ends).fun)


@pytest.mark.parametrize("clusters", [2, 3, 4])
def test_no_sum_over_patches_does_better(clusters):
    assert fewest_errors(clusters) * 8 == len(patterns(clusters)) == 4 * clusters * (clusters - 1)


def test_the_sum_of_the_page_attains_it():
    assert all(best_sum(clusters) == 1 / 8 for clusters in range(2, 9))
    with pytest.raises(ValueError, match="^clusters "):
        best_sum(1)
