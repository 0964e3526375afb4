r"""How many samples one gradient step needs to find both parents of every node, from theory without a constant.

At zero scores a parent's gradient exceeds the others' by :math:`4/M^2`, and all have noise of standard deviation
:math:`(4/M)\sqrt{2/(Mn)}`, so the *leading* law has the signal-to-noise ratio :math:`s = \sqrt{n/2M}` against the
largest of M - 2 normal numbers, the same noise for both parents. The *exact* law takes mean and covariance of one
sample's gradient over all signs that M independent tokens and a noisy product can have: z^3 counts there, too, and
wrong targets let the two parents differ.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special, stats

GRID = np.linspace(-6, 6, 97)  # of a standard normal number
DENSITY = stats.norm.pdf(GRID) * (GRID[1] - GRID[0])
HALVES = (np.arange(8) + 0.5) / 2  # of the absolute value of one
HALF_DENSITY = stats.norm.pdf(HALVES)


class GradientMoments(NamedTuple):
    """Of a parent's gradient less another token's, for one sample, in units of 4/M."""

    lead: float  # mean
    shared: float  # standard deviation of the parents' mean less what the other tokens share
    own: float  # standard deviation of what another token has for itself
    apart: float  # standard deviation of half the difference between the two parents


def leading(m: int, correct: float) -> GradientMoments:
    """Of M = `m` tokens in the limit of many; the product is right up to sign flips, on average `correct`."""
    return GradientMoments(correct / m, np.sqrt(2 / m), np.sqrt(2 / m), 0.0)


def independent(m: int, correct: float) -> GradientMoments:
    """The leading law if the two parents had noise of their own, which they have not."""
    return GradientMoments(correct / m, np.sqrt(1 / m), np.sqrt(2 / m), np.sqrt(1 / m))


@lru_cache(maxsize=4096)
def exact(m: int, correct: float) -> GradientMoments:
    """Of M = `m` independent signs, two of them parents, whose product is right with chance (1 + correct)/2."""
    signs = np.array([-1.0, 1.0])
    a, b, i, j, flip, rest = np.meshgrid(signs, signs, signs, signs, signs, np.arange(m - 3), indexing="ij")
    weight = stats.binom.pmf(rest, m - 4, 0.5) * (1 + flip * correct) / 32
    z = (a + b + i + j + 2 * rest - (m - 4)) / m
    pulled = (1 + flip * a * b - 2 * z**2) * z
    gradients = np.stack([pulled * (x - z) for x in (a, b, i, j)]).reshape(4, -1)
    mean = gradients @ weight.ravel()
    c = (gradients * weight.ravel()) @ gradients.T - np.outer(mean, mean)
    shared = (c[0, 0] + c[0, 1]) / 2 - 2 * c[0, 2] + c[2, 3]
    return GradientMoments(mean[0] - mean[2], np.sqrt(max(shared, 0)), np.sqrt(c[2, 2] - c[2, 3]),
                   np.sqrt(max(c[0, 0] - c[0, 1], 0) / 2))


def chance(n: np.ndarray, m: int, moments: GradientMoments) -> np.ndarray:
    """That both parents are ahead of all M - 2 other tokens after n samples."""
    n = np.asarray(n, float)[..., None, None]
    ahead = np.sqrt(n) * moments.lead + moments.shared * GRID[:, None] - moments.apart * HALVES
    below = np.exp((m - 2) * special.log_ndtr(ahead / moments.own))
    return np.einsum("...uv,u,v->...", below, DENSITY, HALF_DENSITY / HALF_DENSITY.sum())


def all_nodes(n: np.ndarray, d: int, k: int, flip: float = 0.0, kind=exact) -> np.ndarray:
    """That the parents of all k - 1 nodes are found, as if nodes were independent; M is the mean of a level."""
    found, first = np.ones(np.shape(n)), d
    for level in range(1, k.bit_length()):
        count = k >> level
        correct = (1 - 2 * flip) ** (1 if level == 1 else 3)  # of the target, and above the first level of both parents
        m = first + (count - 1) // 2
        found = found * chance(n, m, kind(m, correct)) ** count
        first += count
    return found


@lru_cache(maxsize=4096)
def needed(d: int, k: int, flip: float = 0.0, kind=exact) -> float:
    """The mean over draws of how many samples it takes to find all of them."""
    guess = 4 * d * np.log(d)
    n = np.concatenate([[0.0], np.geomspace(guess / 30, guess * 12, 80)])
    return float(np.trapezoid(1 - all_nodes(n, d, k, flip, kind), n))
