r"""The 1/8 of all sums over patches, by enumeration, and a sum that attains it.

A function of the form :math:`F = \sum_p f(x^{(p)})` that looks at the direction of a patch only is given by its values
on :math:`v_k`, :math:`-v_k` and :math:`c_k`. There are 4 K (K-1) patterns of clusters and signs, all equally likely.
"""

from itertools import product

from flbook.domains import checked_arguments
from flbook.lectures.training_strategies.mixture_of_experts.clusters import AtLeastTwo


def patterns(clusters: int) -> list[tuple[int, int, int, int]]:
    """Cluster k, other cluster k', label y, sign of the misleading patch: every pattern once."""
    k = range(1, clusters + 1)
    return [(one, other, y, eps) for one, other, y, eps in product(k, k, (1, -1), (1, -1)) if one != other]


@checked_arguments
def best_sum(clusters: AtLeastTwo) -> float:
    """Share of the patterns on which the sum of this lecture's page is wrong.

    Examples
    --------
    >>> best_sum(4)
    0.125
    """
    high = 2 * clusters + 2

    def signal(k: int, sign: int) -> int:
        return high + 2 * k + 1 if sign > 0 else -high

    every = patterns(clusters)
    wrong = [y * (signal(k, y) - 2 * k + signal(other, eps)) <= 0 for k, other, y, eps in every]
    return sum(wrong) / len(every)
