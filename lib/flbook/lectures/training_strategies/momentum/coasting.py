r"""The smallest model of a memory: one feature coefficient under the logistic loss of a cube, and how far it coasts.

The share p of samples with a large margin pulls the coefficient a down the loss
:math:`V(a) = p\log(1 + e^{-a^3})`. Averaged momentum of memory :math:`\tau = \eta/(1 - \gamma)` in flow time
:math:`s = \eta t` is, for small steps, :math:`\tau a'' + a' = -V'(a)`.
"""

import math
from functools import cache

import numpy as np
from scipy.integrate import quad
from scipy.special import expit


def pull(a, share: float):
    r"""How strongly the large-margin samples pull: :math:`-V'(a) = 3pa^2/(1 + e^{a^3})`."""
    return 3 * share * a**2 * expit(-(a**3))


def rolled(start, share: float, lr, memory, steps: int) -> tuple:
    r"""Coefficient and velocity after steps of averaged momentum with :math:`\gamma = 1 - \eta/\tau`.

    Parameters
    ----------
    start
        Coefficients at the start, any shape; the velocity is zero there.
    share
        p, of samples with a large margin; for noise, what stands in its place.
    lr
        Step size :math:`\eta`, one or one a coefficient.
    memory
        :math:`\tau`, at least `lr`; equal to it, the rule is gradient descent.
    steps
        How many.

    Examples
    --------
    >>> a, v = rolled(np.array([0.03]), share=0.8, lr=0.1, memory=100.0, steps=10_000)
    >>> round(float(a[0]), 1), round(float(coast(100.0, 0.8)), 1)
    (11.3, 11.3)
    """
    a = np.array(start, dtype=float)
    v, fresh = np.zeros_like(a), lr / memory
    for _ in range(steps):
        v = v + fresh * (pull(a, share) - v)
        a = a + lr * v
    return a, v


@cache
def offset() -> float:
    r"""What the coefficient travels beyond :math:`\sqrt{2\tau p\log2}` in long memories, for any p.

    .. math:: \kappa = \int_0^\infty 1 - \sqrt{1 - V(a)/V(0)}\,da
    """
    return quad(lambda a: 1 - math.sqrt(1 - np.logaddexp(0, -(a**3)) / math.log(2)), 0, 8)[0]


def coast(memory, share: float):
    r"""Where the coefficient comes to rest: :math:`\sqrt{2\tau p\log2} + \kappa`, up to what vanishes as τ grows.

    Examples
    --------
    >>> round(float(coast(50.0, 0.8)), 3), round(offset(), 4)
    (8.187, 0.7406)
    """
    return (2 * np.asarray(memory) * share * math.log(2)) ** 0.5 + offset()


def memory_needed(small: float, share: float, n: int, noise: float, seen: float) -> float:
    r"""Memory at which the feature overtakes the noise in the race for the small-margin samples.

    From :math:`a` the feature blows up after :math:`2/(3q\beta^3a)`, with q = 1 - p; a noise patch that a filter sees
    with :math:`b_0` after :math:`2n/(3\|\xi\|^2b_0)`. They tie at :math:`a_\ast = \|\xi\|^2b_0/(qn\beta^3)`.

    Parameters
    ----------
    small, share
        Margin β of the small-margin samples; share p of the others.
    n
        Samples.
    noise, seen
        Squared length of a noise patch; the largest :math:`\langle w(0), \xi\rangle` over filters.
    """
    tie = noise * seen / ((1 - share) * n * small**3)
    return max(0.0, tie - offset()) ** 2 / (2 * share * math.log(2))
