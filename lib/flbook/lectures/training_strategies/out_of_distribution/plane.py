r"""Training in the plane of two features: outputs :math:`f = a s_1 + b s_2`, infinitely many samples, no noise.

A network of mirrored filters stays in this plane (derived on the lecture's page); gradient descent of step
:math:`\eta` on it is one of step :math:`\eta/(2m)` here.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from scipy.special import expit

from flbook.domains import Checked, NonNegative, Probability
from flbook.lectures.training_strategies.shared.environments import SIGNS

_SIGNS = np.array(SIGNS)


@dataclass(frozen=True)
class Plane(Checked):
    """The objectives as functions of (a, b).

    Parameters
    ----------
    alpha, betas
        As in `Environments`.
    penalty
        ``"IRMv1"`` or ``"VREx"``.
    weight
        Of the penalty; 0 is empirical risk minimisation.

    Raises
    ------
    ValueError
        If a field is out of its domain.

    Examples
    --------
    >>> Plane().erm().round(4).tolist()
    [1.0986, 1.7346]
    """

    alpha: Probability = 0.25
    betas: tuple[Probability, ...] = (0.1, 0.2)
    penalty: Literal["IRMv1", "VREx"] = "IRMv1"
    weight: NonNegative = 0.0

    @cached_property
    def _shares(self) -> np.ndarray:
        """How probable each pair of signs is for the label +1, by environment."""
        own = np.where(_SIGNS[:, 0] > 0, 1 - self.alpha, self.alpha)
        return np.array([own * np.where(_SIGNS[:, 1] > 0, 1 - beta, beta) for beta in self.betas])

    def erm(self) -> np.ndarray:
        """Where the mean risk is least: the log odds of either feature."""
        odds = np.array([self.alpha, np.mean(self.betas)])
        return np.log(1 / odds - 1)

    def risks(self, w: np.ndarray) -> np.ndarray:
        """Of each environment."""
        return self._shares @ np.logaddexp(0, -_SIGNS @ w)

    def scale_slopes(self, w: np.ndarray) -> np.ndarray:
        """c_e, the derivative of each risk in a common factor of the outputs."""
        f = _SIGNS @ w
        return self._shares @ (-expit(-f) * f)

    def gradient(self, w: np.ndarray) -> np.ndarray:
        """Of mean risk and penalty."""
        f = _SIGNS @ w
        slope = -expit(-f)
        of_risks = (self._shares * slope) @ _SIGNS
        if self.penalty == "IRMv1":
            c = self.scale_slopes(w)
            of_penalty = (c[:, None] * ((self._shares * (slope + f * expit(f) * expit(-f))) @ _SIGNS)).mean(0)
        else:
            risks = self.risks(w)
            of_penalty = ((risks - risks.mean())[:, None] * of_risks).mean(0)
        return of_risks.mean(0) + 2 * self.weight * of_penalty

    def flow(self, start: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Gradient flow from a start, at increasing times; shape (times, 2)."""
        times = np.asarray(times, float)
        path = solve_ivp(lambda _, w: -self.gradient(w), (0, times[-1]), start, "LSODA", times, rtol=1e-8, atol=1e-10)
        return path.y.T

    def end(self, start: np.ndarray, time: float = 3000.0) -> np.ndarray:
        """Where the flow is after a long time."""
        return self.flow(start, np.array([time]))[-1]

    def least_head_start(self, longest: float = 20.0) -> tuple[float, np.ndarray]:
        """For how long, and how far, risk alone must train from 0 so that the penalty does not undo it.

        Undone is what ends nearer to 0 than to the feature's log odds.
        """
        times = np.linspace(0, longest, 2001)
        path = Plane(self.alpha, self.betas).flow(np.zeros(2), times)
        low, high = 0, len(times) - 1
        while high - low > 1:
            middle = (low + high) // 2
            kept = self.end(path[middle])[0] > self.erm()[0] / 2
            low, high = (low, middle) if kept else (middle, high)
        return times[high], path[high]

    def ridge(self) -> float:
        """Without a spurious feature: how far the invariant one must be learned, for a large weight."""
        def rising(a: float) -> float:
            return 1 - self.alpha - expit(a) - a * expit(a) * expit(-a)

        return brentq(rising, 0.0, self.erm()[0])
