r"""The rival that needs no network: the direction of linear regression, then a curve along it on a fresh sample.

Claim: across :math:`\beta_*` the inputs are independent of label noise and bend, so the direction misses by an angle
with :math:`\tan^2\theta = \frac{\|P_{>1}f_*\|^2 + \sigma_\varepsilon^2}{\mu_{1,*}^2}\,\frac{d-1}{n-d-1}`, and the angle
gives the risk.
"""

import numpy as np
import scipy.special

from flbook.theory import one_step


def predicted_risk(n: int, d: int, noise: float, functions: int = 3) -> float:
    r"""Risk for an erf target: what no curve along the direction knows, and what fitting one on n samples adds.

    .. math:: r + (r + \sigma_\varepsilon^2)\,\frac{\text{functions}}{n}, \qquad
              r = \frac2\pi\Big(\arcsin\frac23 - \arcsin\frac{2\cos^2\theta}3\Big)

    Parameters
    ----------
    n
        Samples of either move.
    d
        Dimension.
    noise
        Standard deviation of the label noise.
    functions
        Number of functions that the curve is made of.

    Returns
    -------
    float
        A mean square error.

    Source: Brillinger (1982) for the direction; derived here to leading order in 1/n.

    Examples
    --------
    >>> round(predicted_risk(10**9, 100, noise=0.1), 6)
    0.0
    """
    target = one_step.parts(scipy.special.erf)
    bend = one_step.nonlinear_floor(target)
    cos_2 = 1 / (1 + (bend + noise**2) / target.mu_1**2 * (d - 1) / (n - d - 1))
    missed = 2 / np.pi * (np.arcsin(2 / 3) - np.arcsin(2 / 3 * cos_2))
    return float(missed + (missed + noise**2) * functions / n)
