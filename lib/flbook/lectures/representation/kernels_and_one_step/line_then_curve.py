r"""The rival that needs no network: the direction of linear regression, then an odd cubic along it on a fresh sample.

Claim: across :math:`\beta_*` the inputs are independent of label noise and bend, so the direction misses by an angle
with :math:`\tan^2\theta = \frac{\|P_{>1}f_*\|^2 + \sigma_\varepsilon^2}{\mu_{1,*}^2}\,\frac{d-1}{n-d-1}`, and the angle
gives the risk.
"""

from collections.abc import Callable

import numpy as np

from flbook import hermite


def predicted_risk(n: int, d: int, link: Callable, noise: float) -> float:
    r"""Risk of the cubic: what it misses at the angle of the direction, and what estimating it on n samples adds.

    .. math:: E\,r^2 + \frac1n\,E\,(r^2 + \sigma_\varepsilon^2)(h_1^2 + h_3^2), \qquad
              r = \sigma_*(\cos\theta\,z + \sin\theta\,z') - c_1\cos\theta\,h_1(z) - c_3\cos^3\theta\,h_3(z)

    Source: Brillinger (1982) for the direction; derived here to leading order in 1/n.

    Examples
    --------
    >>> round(predicted_risk(1000, 100, lambda z: z, noise=0.0), 12)  # a line has nothing to miss
    0.0
    """
    c = hermite.coefficients(link, 3)
    bend = max(hermite.mean(lambda z: link(z) ** 2) - c[1] ** 2, 0.0)
    cos = 1 / np.sqrt(1 + (bend + noise**2) / c[1] ** 2 * (d - 1) / (n - d - 1))

    z, weight = np.polynomial.hermite_e.hermegauss(100)
    weight = np.outer(weight, weight) / weight.sum() ** 2
    line, cube = (hermite.polynomial(k, z)[:, None] for k in (1, 3))
    target = link(cos * z[:, None] + np.sqrt(1 - cos**2) * z)
    square = (target - c[1] * cos * line - c[3] * cos**3 * cube) ** 2
    return float((weight * (square + (square + noise**2) * (line**2 + cube**2) / n)).sum())
