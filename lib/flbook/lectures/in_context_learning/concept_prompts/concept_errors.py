"""Concept prompts in closed form: what fixed attention reads, which sign it learns, and the floor of its loss."""

import numpy as np
from scipy.special import ndtr


def attended_share(score: float, n: int, equal: np.ndarray) -> np.ndarray:
    r"""Attention on the labels equal to the query's, :math:`\frac{k}{k + (n-k)e^{-2\beta}}`, if k of n are equal."""
    equal = np.asarray(equal, dtype=float)
    return equal / (equal + (n - equal) * np.exp(-2.0 * score))


def one_sided(n: int) -> float:
    r"""Share of the prompts with the query's label among theirs that show no other, :math:`1/(2^n - 1)`."""
    return 1.0 / (2.0**n - 1)


def known_error(noise: np.ndarray, contrast: float) -> np.ndarray:
    r"""Error of a rule that knows the concept and what its words mean, :math:`\Phi(-\|b\|/\sigma_\xi)`."""
    return ndtr(-contrast / np.asarray(noise, dtype=float))


def cross_entropy_floor(n: int) -> float:
    r"""Least expected cross-entropy of an output that is right unless no label is the query's: the entropy of 2^-n."""
    p = 2.0**-n
    return float(-p * np.log(p) - (1 - p) * np.log1p(-p))


def basin(plus: np.ndarray, minus: np.ndarray, slope: np.ndarray, active: np.ndarray | float, contrast: float,
          label_contrast: float | None = None) -> np.ndarray:
    r"""Positive where attention comes to look at the query's own label, negative where at the opposite one.

    .. math:: \|b\|\,D + \frac{\sqrt\varphi\,\|d\|}{2}\Big(|W_K b + W_Q b| - |W_K b - W_Q b|\Big)

    plus, minus: the two lengths at the start. slope: that of the head's output in the label's contrast, D. active:
    share of active neurons, :math:`\varphi`. Derived for small starts, as the energy at the top of a barrier.
    """
    label_contrast = contrast if label_contrast is None else label_contrast
    return contrast * slope + np.sqrt(active) * label_contrast / 2 * (plus - minus)
