"""How fast a coefficient grows under a power of ReLU: to infinity, in finite time."""

import numpy as np


def blow_up_time(start, rate, q):
    r"""When :math:`\dot z = a z^{q-1}` with :math:`z(0) = z_0 > 0` reaches infinity: :math:`1/((q-2)\,a\,z_0^{q-2})`.

    start: :math:`z_0`; where it is not positive the answer is infinity, since the slope of ReLU^q is 0 there.
    rate: a, positive. q: above 2; at q = 2 growth is exponential, below it is slower, and neither ever blows up.

    The time to reach a level is this less the blow-up time from that level.

    Source: derived in the lecture on powers of ReLU.
    """
    if not np.all(np.asarray(q) > 2):
        raise ValueError(f"q must be above 2, since slower growth never blows up; got {q}")
    start = np.asarray(start, dtype=float)
    with np.errstate(divide="ignore"):
        return np.where(start > 0, 1 / ((q - 2) * rate * np.maximum(start, 0.0) ** (q - 2)), np.inf)
