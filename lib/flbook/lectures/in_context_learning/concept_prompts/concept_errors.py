"""Concept prompts in closed form: errors of two rules, and which sign attention learns."""

import numpy as np
from scipy.special import ndtr


def one_sided(n: int) -> float:
    r"""Share of the prompts with the query's label among theirs that show no other, :math:`1/(2^n - 1)`."""
    return 1.0 / (2.0**n - 1)


def known_error(noise: np.ndarray | float, contrast: float) -> np.ndarray:
    r"""Error of a rule that knows the concept and what its words mean, :math:`\Phi(-\|b\|/\sigma_\xi)`."""
    return np.asarray(ndtr(-contrast / np.asarray(noise, dtype=float)))


def basin(plus: np.ndarray, minus: np.ndarray, slope: np.ndarray, active: np.ndarray | float, contrast: float,
          label_contrast: float | None = None) -> np.ndarray:
    r"""Positive where attention comes to look at the query's own label, negative where at the opposite one.

    .. math:: \|b\|\,D + \frac{\sqrt\varphi\,\|d\|}{2}\Big(|W_K b + W_Q b| - |W_K b - W_Q b|\Big)

    plus, minus: the two lengths at the start. slope: that of the head's output in the label's contrast, D. active:
    share of active neurons, :math:`\varphi`. Derived for small starts, as the energy at the top of a barrier.
    """
    label_contrast = contrast if label_contrast is None else label_contrast
    return contrast * slope + np.sqrt(active) * label_contrast / 2 * (plus - minus)
