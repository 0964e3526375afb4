r"""The test error of a network whose random start is large: it answers to fresh noise as it did before training.

A filter of label j that is active on a sample of label j at the start stays so, and carries the response c_i at the
end; the others do not answer to the sample. Of the m filters of a label K are active on it, a binomial number, and the
gradient flow of the logistic loss gives, with :math:`\vartheta=\eta v_0^2\sigma_\xi^2d\,t/(nm)`,

.. math:: \tfrac Kmc + e^{\frac Kmc} = 1 + \tfrac Km\vartheta.

With :math:`\bar c` the mean of c over K and :math:`s=v_0\sigma_0\sigma_\xi d/\sqrt n` the test error is

.. math:: \Phi\Big(\frac{-2(1-2p)\sqrt r}{\sqrt{1+3/m+(s/s_0)^2}}\Big), \qquad
    s_0=\frac{\bar c}4\sqrt{\frac m{1-1/\pi}}.

Source: derived on the page of this lecture, for s much larger than c and much smaller than :math:`\sqrt{d/n}`.
"""

import math

import numpy as np
from scipy.special import ndtr, ndtri, wrightomega
from scipy.stats import binom

from flbook.domains import Count, FlipProbability, Positive, checked_arguments


@checked_arguments
def mean_response(m: Count, time: Positive) -> float:
    """Mean response c of a filter to a sample that it carries, after training.

    Parameters
    ----------
    m
        Filters for each label.
    time
        Step size times steps, in units of nm/(v_0^2 sigma_xi^2 d).
    """
    active = np.arange(1, m + 1)
    margin = np.log(wrightomega(1 + active / m * time).real)  # x + e^x = 1 + time K/m
    weights = binom.pmf(active, m, 0.5)
    return float((weights * margin * m / active).sum() / weights.sum())


@checked_arguments
def size_that_matters(m: Count, time: Positive) -> float:
    """The start s_0 from which on the border moves, in units of sqrt(n)/(sigma_xi d)."""
    return mean_response(m, time) / 4 * math.sqrt(m / (1 - 1 / math.pi))


@checked_arguments
def large_start_error(r, s, flip_prob: FlipProbability, m: Count, time: Positive) -> np.ndarray:
    """Test error at r = n|mu|^4/(sigma_xi^4 d) and start s; both may be arrays."""
    noise = 1 + 3 / m + (np.asarray(s) / size_that_matters(m, time)) ** 2
    return np.asarray(ndtr(-2 * (1 - 2 * flip_prob) * np.sqrt(np.asarray(r) / noise)))


@checked_arguments
def large_start_border(s, flip_prob: FlipProbability, m: Count, time: Positive, level: float = 0.25) -> np.ndarray:
    """The r at which the test error is `level`."""
    noise = 1 + 3 / m + (np.asarray(s) / size_that_matters(m, time)) ** 2
    return np.asarray((ndtri(level) / (2 * (1 - 2 * flip_prob))) ** 2 * noise)
