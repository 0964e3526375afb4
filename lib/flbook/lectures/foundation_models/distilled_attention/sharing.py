"""Sharing: how a budget of features is shared among the layers, by what is known of them."""

import numpy as np

from flbook.domains import Count, checked_arguments
from flbook.lectures.foundation_models.shared.degrees_of_freedom import allocation


@checked_arguments
def shared(weights: np.ndarray, budget: Count) -> np.ndarray:
    """Whole numbers in proportion to the weights that sum to the budget times the layers, at least 1 each.

    `allocation`, its rounding mended one feature at a time, so that all ways to share have as many features.

    Examples
    --------
    >>> shared(np.array([132.0, 171.0, 780.0, 794.0]), 16)
    array([ 4,  6, 27, 27])
    """
    found = allocation(weights, budget)
    exact = budget * len(weights) * np.asarray(weights) / np.sum(weights)
    while (over := found.sum() - budget * len(weights)) != 0:
        off = np.where(found > 1, found - exact, -np.inf) if over > 0 else exact - found
        found[int(np.argmax(off))] -= np.sign(over)
    return found


@checked_arguments
def cheapest(constants: np.ndarray, budget: Count) -> np.ndarray:
    r"""The whole numbers of least summed cost :math:`\sum_s A_s/M_s`, each feature to where it saves most.

    Examples
    --------
    >>> cheapest(np.array([1.0, 4.0]), 3)  # in proportion to square roots
    array([2, 4])
    """
    found = np.ones(len(constants), int)
    for _ in range((budget - 1) * len(constants)):
        found[int(np.argmax(constants / found - constants / (found + 1)))] += 1
    return found
