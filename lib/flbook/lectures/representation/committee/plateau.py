r"""The plateau of M students and M teachers when steps are small: its place, its height, and how fast it is left.

On it all students are :math:`b\sum_n w_n^*`. Derived in the lecture; the place and the height are those of Saad and
Solla (1995).
"""

import math

import numpy as np

from flbook.dynamics.equations import State


def students(M: int, own: float, shared: float) -> State:
    r"""Order parameters of :math:`w_i = a\,w_i^* + b\sum_n w_n^*`, with a = `own` and b = `shared`."""
    R = own * np.eye(M) + shared
    return {"Q": R @ R.T, "R": R}


def place(M: int) -> float:
    r"""The overlap :math:`R_{in} = b = 1/\sqrt{M(2M - 1)}` of every student with every teacher."""
    return 1 / math.sqrt(M * (2 * M - 1))


def height(M: int) -> float:
    r"""The risk :math:`\frac M\pi\big(\frac\pi6 - M\arcsin\frac1{2M}\big)`.

    Examples
    --------
    >>> round(height(2), 5), round(linear(2), 5)
    (0.01161, 0.01502)
    """
    return M / math.pi * (math.pi / 6 - M * math.asin(1 / (2 * M)))


def rate(M: int) -> float:
    r"""The growth rate of a, over the step size: :math:`\frac{2M}{\pi(2M + 1)\sqrt{4M^2 - 1}}`."""
    return 2 * M / (math.pi * (2 * M + 1) * math.sqrt(4 * M**2 - 1))


def linear(M: int) -> float:
    r"""The risk of the best linear model, :math:`\frac M2(E\,g^2 - (E\,g')^2) = \frac M2(\frac13 - \frac1\pi)`."""
    return M / 2 * (1 / 3 - 1 / math.pi)
