r"""Where CutMix comes to rest: the one output :math:`z^*` of all patches, and what holds while a feature is missing.

With :math:`f_{ip} = y_i z` a picture pasted from two samples of different labels has the output :math:`\pm kz`, where
k is by how many patches one of them has more, and one from a single label has :math:`k = P`. The loss is smallest at

.. math:: \mathbb E\,|k|\tanh\frac{|k|z}2 = \frac1P\,\mathbb E\,k^2 .

Derived on this lecture's page.
"""

import math

import numpy as np
import torch
from scipy.optimize import brentq, minimize

from flbook.lectures.training_strategies.cutmix.pasting import CutMix
from flbook.lectures.training_strategies.shared.rare_features import RareFeatures


def excess(patches: int, law: tuple[float, ...] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Values of |k| and their probabilities, if half of the pairs have one label."""
    sizes = CutMix(law).sizes(patches)
    return np.abs([patches, *(2 * np.arange(patches + 1) - patches)]), np.array([0.5, *(q / 2 for q in sizes)])


def loss_of(z, patches: int = 3, law: tuple[float, ...] | None = None):
    """Mean loss if all patches are said z to, with the sign of the label.

    Examples
    --------
    >>> round(float(loss_of(0.0)), 4)
    0.6931
    """
    k, weight = excess(patches, law)
    kz = np.multiply.outer(np.asarray(z, dtype=float), k)
    return (np.logaddexp(0, kz) - kz * (1 + k / patches) / 2) @ weight


def resting_output(patches: int = 3, law: tuple[float, ...] | None = None) -> float:
    """z*; infinite if no picture is pasted from unequal shares.

    Examples
    --------
    >>> round(resting_output(), 5), resting_output(patches=2)
    (1.3954, inf)
    """
    k, weight = excess(patches, law)
    if not weight[(k > 0) & (k < patches)].sum():
        return math.inf

    def slope(z: float) -> float:
        return float(weight @ (k * np.tanh(k * z / 2) - k**2 / patches))

    high = 1.0
    while slope(high) < 0:
        high *= 2
    return brentq(slope, 0.0, high, xtol=1e-12)


def plateau(data: RareFeatures, missing: tuple[int, ...], law: tuple[float, ...] | None = None) -> np.ndarray:
    """What is said to each kind of feature where CutMix's loss is smallest, if the missing ones are said 0.

    A convex problem in the outputs of the training patches.
    """
    y, kind, recipe = data.labels(), data.kinds(), CutMix(law, partners=None)
    free = torch.ones(data.n, data.patches, dtype=torch.float64)
    for one in missing:
        free[kind == one, 0] = 0.0

    def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
        f = free * torch.from_numpy(flat).reshape(data.n, data.patches)
        return recipe.loss(f, y).mean().item(), (free * recipe.slope(f, y)).numpy().ravel() / data.n

    start = (y[:, None] * free).numpy().ravel()
    found = minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-10})
    said = y * torch.from_numpy(found.x).reshape(data.n, data.patches)[:, 0] * free[:, 0]
    return np.array([said[kind == one].mean().item() for one in range(data.features)])
