r"""The balance of one memorised noise patch under label noise: a Markov chain of its margin, with no free number.

.. math:: z \leftarrow z\,(1 + c X)^2, \qquad X = B - s(z), \quad P(B = 1) = 1 - p,

where s is the logistic function, and all filters that carry the patch are multiplied alike. Derived on this lecture's
page.
"""

import math

import numpy as np
from scipy.special import expit

from flbook import rng
from flbook.domains import Count, FlipProbability, Positive, checked_arguments


@checked_arguments
def mean_force(c: Positive, flip_prob: FlipProbability, chains: Count = 2000, steps: Count = 1500) -> float:
    """The mean of X in the long run, by simulation; to second order it is c p(1-p)/2.

    Examples
    --------
    >>> round(float(mean_force(0.05, 0.2)) / (0.05 * 0.2 * 0.8 / 2), 1)
    1.0
    """
    generator = rng.numpy_generator(0, "flips of the chain")
    z, total = np.full(chains, math.log((1 - flip_prob) / flip_prob)), 0.0
    unheard = round(40 / c)
    for step in range(unheard + steps):
        x = (generator.random(chains) >= flip_prob) - expit(z)
        total += x.mean() if step >= unheard else 0.0
        z = z * (1 + c * x) ** 2
    return total / steps
