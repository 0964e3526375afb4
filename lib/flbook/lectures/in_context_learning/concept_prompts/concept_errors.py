"""Concept prompts in closed form: what fixed attention errs, which sign it learns, and the floor of its loss."""

import math

import numpy as np


def attended_share(score: float, n: int, equal: np.ndarray) -> np.ndarray:
    r"""Attention on the labels equal to the query's, :math:`\frac{k}{k + (n-k)e^{-2\beta}}`, if k of n are equal."""
    equal = np.asarray(equal, dtype=float)
    return equal / (equal + (n - equal) * np.exp(-2.0 * score))


def frozen_error(score: float, n: int = 8, contains: bool = True) -> float:
    r"""Error of attention with the score :math:`\beta = b^\top W_K^\top W_Q b`, whose head has the right sign.

    It errs where the labels of the other kind get more than half of the attention, and half of the time at a tie:
    a staircase in :math:`\beta`, whose last step, at :math:`\frac12\log(n-1)`, leaves no error. Without noise.

    contains: only prompts in which at least one label is that of the query.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, the examples of a prompt; got {n}")
    equal = np.arange(int(contains), n + 1)
    weight = np.array([math.comb(n, int(k)) for k in equal], dtype=float)
    share = attended_share(score, n, equal)
    wrong = np.where(np.isclose(share, 0.5, rtol=0, atol=1e-12), 0.5, share < 0.5)
    return float((weight * wrong).sum() / weight.sum())


def one_sided(n: int) -> float:
    r"""Share of the prompts with the query's label among theirs that show no other, :math:`1/(2^n - 1)`."""
    return 1.0 / (2.0**n - 1)


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
