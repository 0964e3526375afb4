r"""The race between signal and noise in three numbers: what training is when all noise vectors are orthogonal.

With orthogonal noise of one length and a vanishing start, all filters have one signal coefficient :math:`\gamma`, and
the noise coefficients take one value on clean samples and one on flipped ones, for each share s of a label's filters
that is active on a sample. Derived in the lecture.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit
from scipy.stats import binom


class Race(NamedTuple):
    """Coefficients after each step, the initial zero first."""

    gamma: np.ndarray
    rho: np.ndarray

    @property
    def ratio(self) -> float:
        """Signal over noise at the end.

        Returns
        -------
        float
            The last :math:`\\gamma/\\overline\\rho`.
        """
        return float(self.gamma[-1] / self.rho[-1])


def race(a: float, p: float, share: float = 0.5, *, lr: float = 0.5, steps: int = 300, filters: int = 0, m: int = 10):
    r"""Signal and noise coefficients while a network trains.

    Parameters
    ----------
    a
        Strength of the signal, :math:`n\,\mathrm{SNR}^2`.
    p
        Share of flipped labels.
    share
        Share s of filters that are active on a sample's noise.
    lr
        Step size, in units of :math:`nm/(\sigma_\xi^2 d)`.
    steps
        How many.
    filters
        How many filters can be active on a sample, each with probability `share`: m in a ReLU network, 2 m in its lazy
        version. 0 stands for many: every sample then has the same share.
    m
        Filters a sign, over which the output averages.

    Returns
    -------
    Race
        Of arrays of ``steps + 1`` numbers; rho is the mean over active filters of all samples.

    Examples
    --------
    >>> round(race(a=3.0, p=0.0).ratio, 6), race(a=10.0, p=0.1).ratio < 4.0
    (1.5, True)
    """
    s = np.arange(filters + 1) / m if filters else np.array([share])
    weight = binom.pmf(np.arange(filters + 1), filters, share) if filters else np.ones(1)
    gamma, clean, flipped = [0.0], [np.zeros_like(s)], [np.zeros_like(s)]
    for _ in range(steps):
        on_clean = expit(-gamma[-1] - s * clean[-1])  # minus the derivative of the logistic loss
        on_flipped = expit(gamma[-1] - s * flipped[-1])
        clean.append(clean[-1] + lr * on_clean)
        flipped.append(flipped[-1] + lr * on_flipped)
        gamma.append(gamma[-1] + lr * a / 2 * float(weight @ ((1 - p) * on_clean - p * on_flipped)))
    rho = ((1 - p) * np.array(clean) + p * np.array(flipped)) @ (weight * s) / (weight @ s)
    return Race(np.array(gamma), rho)


def limit(a, p, share):
    r"""Where the ratio :math:`\gamma/\overline\rho` ends under small steps.

    .. math:: \frac{(1-2p)\,a/2}{1 + 2p(1-p)\,a/s}

    Parameters
    ----------
    a
        Strength of the signal, :math:`n\,\mathrm{SNR}^2`.
    p
        Share of flipped labels.
    share
        Share s of a label's filters that are active on a sample's noise.

    Returns
    -------
    array_like
        The limit; without flipped labels the ratio of the first step.

    Examples
    --------
    >>> float(limit(3.0, 0.0, 0.5))
    1.5
    """
    return (1 - 2 * p) * a / 2 / (1 + 2 * p * (1 - p) * a / share)


def share_after_one_step(zeta, a, p, lr=0.5):
    r"""Share of a label's filters that are active on a sample's noise after the first step, for Gaussian overlaps.

    .. math:: s_1 = \frac12 + \frac1{2\pi}\arctan\frac{\kappa\sqrt{2 + (1-2p)^2 a}}{4\zeta}, \qquad
              \zeta = \sigma_0\sigma_\xi\sqrt d\,\sqrt{d/n}

    Parameters
    ----------
    zeta
        Size of the start over that of an overlap.
    a
        Strength of the signal, :math:`n\,\mathrm{SNR}^2`.
    p
        Share of flipped labels.
    lr
        Step size :math:`\kappa`, in units of :math:`nm/(\sigma_\xi^2 d)`.

    Returns
    -------
    array_like
        From 1/2 for a large start to 3/4 for a small one.

    Examples
    --------
    >>> round(float(share_after_one_step(1e-9, 1.0, 0.0)), 6)
    0.75
    """
    return 0.5 + np.arctan(lr * np.sqrt(2 + (1 - 2 * p) ** 2 * a) / (4 * np.asarray(zeta))) / (2 * np.pi)
