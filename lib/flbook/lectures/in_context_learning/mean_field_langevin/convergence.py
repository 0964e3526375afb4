r"""Mean-field Langevin dynamics where everything is Gaussian, bounds on rates, and what N neurons add.

Linear neurons :math:`h(\theta, x) = \langle\theta, x\rangle`, squared loss with the factor 1/2, inputs of covariance
diag(s) and a linear teacher. Then every distribution of neurons stays Gaussian with independent coordinates.

Derived in the lecture mean_field_langevin.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flbook.domains import Checked, NonNegative, Positive


@dataclass(frozen=True)
class LinearNeurons(Checked):
    r"""The objective, with the mean m of the neurons and the teacher :math:`\theta^*`,

    .. math:: \tfrac12\sum_j s_j(m_j - \theta^*_j)^2 + \tfrac{\lambda'}2 E\|\theta\|^2 + \lambda\,\mathrm{Ent} .

    The minimiser is Gaussian with mean :math:`s_j\theta^*_j/(s_j + \lambda')` and
    variance :math:`\lambda/\lambda'` in every coordinate.
    """

    s: tuple[NonNegative, ...] = (4.0, 2.0, 1.0, 0.5, 0.0)  # variances of the inputs
    teacher: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0, 1.0)
    lam: Positive = 0.2  # temperature
    decay: Positive = 0.5  # lambda'

    @property
    def rates(self) -> NDArray[np.floating]:
        """The rate s + lambda' at which each coordinate of the mean relaxes."""
        return np.array(self.s) + self.decay

    @property
    def mean_star(self) -> NDArray[np.floating]:
        """Mean of the minimiser."""
        return np.array(self.s) * np.array(self.teacher) / self.rates

    @property
    def log_sobolev(self) -> float:
        """The log-Sobolev constant alpha of every proximal Gibbs distribution: Gaussians of variance lambda/lambda'."""
        return self.decay / self.lam

    def moments(self, t: float | NDArray, mean: tuple[float, ...], variance: float) -> tuple[NDArray, NDArray]:
        """Mean and variance of every coordinate at time t, shape ``(*t, p)``, from a Gaussian start."""
        time = np.asarray(t, float)[..., None]
        final = self.lam / self.decay
        m = self.mean_star + (np.asarray(mean) - self.mean_star) * np.exp(-self.rates * time)
        return m, final + (variance - final) * np.exp(-2 * self.decay * time) * np.ones_like(m)

    def gap(self, t: float | NDArray, mean: tuple[float, ...], variance: float) -> NDArray[np.floating] | np.floating:
        """The objective at time t above its minimum."""
        m, c = self.moments(t, mean, variance)
        return (self.rates / 2 * (m - self.mean_star) ** 2 + self._spread(c)).sum(-1)

    def certificate(
        self, t: float | NDArray, mean: tuple[float, ...], variance: float
    ) -> NDArray[np.floating] | np.floating:
        """lambda KL(mu | p_mu) at time t, which bounds the gap from above and needs no minimiser."""
        m, c = self.moments(t, mean, variance)
        return (self.rates**2 / (2 * self.decay) * (m - self.mean_star) ** 2 + self._spread(c)).sum(-1)

    def _spread(self, c: NDArray) -> NDArray:
        """lambda KL of a centred Gaussian of variance c from one of variance lambda/lambda'."""
        ratio = c * self.decay / self.lam
        return self.lam / 2 * (ratio - 1 - np.log(ratio))


def holley_stroock(
    oscillation: ArrayLike, lam: ArrayLike, decay: float
) -> NDArray[np.floating] | np.floating:
    r"""A lower bound on the log-Sobolev constant, :math:`\alpha \ge (\lambda'/\lambda)\,e^{-B/\lambda}`.

    For a Gibbs distribution whose potential is :math:`\frac{\lambda'}2\theta^2` plus a part that varies by B at most.

    Source: Holley and Stroock (1987).
    """
    return decay / np.asarray(lam) * np.exp(-np.asarray(oscillation) / np.asarray(lam))


def bakry_emery(potential: NDArray, cell: float, lam: ArrayLike) -> NDArray[np.floating]:
    r"""A lower bound on the log-Sobolev constant of :math:`e^{-V/\lambda}`,

    .. math:: \alpha \ge \min_\theta V''(\theta)/\lambda .

    It is 0, and says nothing, where the potential is not convex.

    potential: V on equal cells, shape ``(*E, grid)``, which outside of them bends no less.

    Source: Bakry and Emery (1985).
    """
    bend = np.diff(potential, 2, axis=-1) / cell**2
    return np.maximum(bend.min(-1), 0) / np.asarray(lam)


def kramers(potential: NDArray, cell: float, lam: ArrayLike) -> NDArray[np.floating]:
    r"""The rate of the objective in a symmetric double well at low temperature,

    .. math:: \frac2\pi\sqrt{V''(\theta_0)\,|V''(0)|}\;e^{-(V(0) - V(\theta_0))/\lambda} .

    A crowd on one side leaks to the other at half of it, and the objective is quadratic in what is still to leak.

    potential: V on equal cells, shape ``(*E, grid)``, with minima at :math:`\pm\theta_0` and the barrier at the
    middle one.

    Source: Kramers (1940).
    """
    bend = np.diff(potential, 2, axis=-1) / cell**2  # of the cells but the first and the last
    middle, bottom = potential.shape[-1] // 2, potential.argmin(-1)[..., None]
    height = potential[..., middle] - potential.min(-1)
    wells = np.take_along_axis(bend, bottom - 1, -1)[..., 0]
    return 2 / np.pi * np.sqrt(wells * np.abs(bend[..., middle - 1])) * np.exp(-height / np.asarray(lam))


def chaos_constant(covariance: NDArray, lam: float) -> tuple[float, float]:
    r"""N times :math:`E\frac1{2n}\|f_N - f_*\|^2` to leading order, of interacting and of independent neurons.

    .. math:: \frac1{2n}\mathrm{tr}\Big[\Big(I + \frac{K}{\lambda n}\Big)^{-1}K\Big], \qquad \frac1{2n}\mathrm{tr}\,K

    covariance: K, of the neurons' outputs on the n samples under the minimiser.
    """
    n = len(covariance)
    held = np.linalg.solve(np.eye(n) + covariance / (lam * n), covariance)
    return float(np.trace(held) / (2 * n)), float(np.trace(covariance) / (2 * n))
