r"""Infinitely many neurons with one weight each: the mean-field Langevin dynamics as a density on a grid.

The law of the particles solves :math:`\partial_t\mu = \partial_\theta(\mu\,\partial_\theta V_\mu) +
\lambda\,\partial_\theta^2\mu`. Fluxes are those of Scharfetter and Gummel: the discrete Gibbs distributions are exact
steady states, mass is kept, and no cell becomes negative. Members of an ensemble, one temperature each, are solved as
one banded system.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.linalg import eigh, solve_banded


@dataclass(frozen=True)
class GridFlow:
    r"""Neurons :math:`h(\theta, x)` with :math:`\theta` on a grid, squared loss, and temperatures :math:`\lambda`.

    .. math:: F(\mu) = \frac1{2n}\|f_\mu - y\|^2 + \frac{\lambda'}2 E_\mu\theta^2, \qquad f_\mu = E_\mu h(\theta, x)

    A distribution is an array of cell probabilities, shape ``(*E, grid)``, that sum to one.
    """

    theta: Float[ndarray, " grid"]  # centres of equal cells
    features: Float[ndarray, "grid n"]  # h(theta, x_i)
    y: Float[ndarray, " n"]
    lam: Float[ndarray, " E"]
    decay: float  # lambda'

    def __post_init__(self):
        if not (np.asarray(self.lam) > 0).all() or self.decay <= 0:
            raise ValueError(f"lam and decay must be positive, or no Gibbs distribution exists; got lam={self.lam}, "
                             f"decay={self.decay}")

    @property
    def cell(self) -> float:
        """Width of a cell."""
        return float(self.theta[1] - self.theta[0])

    def normal(self, mean: float, variance: float) -> Float[ndarray, "E grid"]:
        """A Gaussian start, the same for every member."""
        return np.tile(_softmax(-((self.theta - mean) ** 2) / (2 * variance)), (len(self.lam), 1))

    def outputs(self, mu: Float[ndarray, "*E grid"]) -> Float[ndarray, "*E n"]:
        """What the network answers to the samples."""
        return mu @ self.features

    def forces(self, mu: Float[ndarray, "*E grid"]) -> Float[ndarray, "*E grid"]:
        """The part of the potential that comes from the data: mean of (f - y) h."""
        return (self.outputs(mu) - self.y) @ self.features.T / len(self.y)

    def potential(self, mu: Float[ndarray, "*E grid"]) -> Float[ndarray, "*E grid"]:
        """The first variation of F, up to a constant: what a neuron at each place feels."""
        return self.forces(mu) + self.decay * self.theta**2 / 2

    def gibbs(self, mu: Float[ndarray, "E grid"]) -> Float[ndarray, "E grid"]:
        """The proximal Gibbs distribution p_mu, proportional to exp(-V_mu / lambda)."""
        return _softmax(-self.potential(mu) / self.lam[:, None])

    def risk(self, mu: Float[ndarray, "*E grid"]) -> Float[ndarray, "*E"]:
        """Half the mean squared error on the samples."""
        return ((self.outputs(mu) - self.y) ** 2).mean(-1) / 2

    def distance(self, mu: Float[ndarray, "*#E grid"], other: Float[ndarray, "*#E grid"]) -> Float[ndarray, "*E"]:
        """D, half the mean squared distance of the outputs of two distributions."""
        return (((mu - other) @ self.features) ** 2).mean(-1) / 2

    def moved_risk(self, mu: Float[ndarray, " grid"], other: Float[ndarray, " grid"], share: float) -> float:
        """The risk when every neuron of mu has gone a share of its straight way to other, in the order of the line."""
        levels = (np.arange(2000) + 0.5) / 2000
        ends = [np.interp(levels, np.cumsum(one) - one / 2, self.theta) for one in (mu, other)]
        theta = (1 - share) * ends[0] + share * ends[1]
        outputs = np.array([np.interp(theta, self.theta, column).mean() for column in self.features.T])
        return float(((outputs - self.y) ** 2).mean() / 2)

    def free_energy(self, mu: Float[ndarray, "E grid"]) -> Float[ndarray, " E"]:
        """F + lambda Ent, the objective, with the entropy of the density mu / cell."""
        return self.risk(mu) + self.decay / 2 * mu @ self.theta**2 + self.lam * _entropy(mu, self.cell)

    def step(self, mu: Float[ndarray, "E grid"], dt: float) -> Float[ndarray, "E grid"]:
        """One implicit step in the potential of its start."""
        members, size = mu.shape
        slope = np.diff(self.potential(mu) / self.lam[:, None], axis=-1)
        out, back = (self.lam[:, None] * dt / self.cell**2 * _bernoulli(s) for s in (slope, -slope))
        none = np.zeros((members, 1))
        upper, lower = np.hstack([none, -back]), np.hstack([-out, none])  # from the right cell; from the left one
        middle = 1 + np.hstack([out, none]) + np.hstack([none, back])
        bands = np.stack([upper.ravel(), middle.ravel(), lower.ravel()])
        return solve_banded((1, 1), bands, mu.ravel(), check_finite=False).reshape(members, size)

    def flow(
        self, mu: Float[ndarray, "E grid"], times: Float[ndarray, " time"], dt: float
    ) -> Float[ndarray, "time E grid"]:
        """The distributions at the given times, whole multiples of dt."""
        path, done = [], 0
        for steps in np.rint(np.asarray(times) / dt).astype(int):
            for _ in range(steps - done):
                mu = self.step(mu, dt)
            done = max(done, steps)
            path.append(mu)
        return np.stack(path)

    def equilibrium(self, tol: float = 1e-13, damping: float = 0.05, limit: int = 5000) -> Float[ndarray, "E grid"]:
        """The minimiser, the fixed point mu = p_mu. Raises RuntimeError if `limit` damped iterations miss it."""
        mu = self.normal(0.0, 1.0)
        for _ in range(limit):
            change = self.gibbs(mu) - mu
            if np.abs(change).max() <= tol:
                return self.gibbs(mu)  # its tails, too small for tol, are exact
            mu = mu + damping * change
        raise RuntimeError(f"no fixed point within {limit} iterations at lam = {self.lam}; a smaller damping may help")

    def slowest(
        self, equilibrium: Float[ndarray, "E grid"], frozen: bool = False
    ) -> tuple[Float[ndarray, " E"], Float[ndarray, "E grid"]]:
        r"""The slowest rate at which the objective falls near its minimum, and the perturbation that falls so.

        The linearised flow is :math:`\partial_t\delta = -A B\delta`, with
        :math:`A = -\partial_\theta\mu_*\partial_\theta` and :math:`B = \lambda/\mu_* + HH^\top/n`; the objective is
        quadratic there and falls at twice its slowest rate.
        frozen: neurons that feel the final potential from the start, :math:`B = \lambda/\mu_*`: linear Langevin
        dynamics, whose rate is :math:`2\lambda` times the spectral gap of :math:`\mu_*`.
        """
        rates, modes = [], []
        for lam, mu in zip(self.lam, equilibrium, strict=True):
            bond = np.sqrt(mu[:-1] * _bernoulli(np.diff(-np.log(mu)))) / self.cell  # of A = D^T D
            main = lam * bond**2 * (1 / mu[:-1] + 1 / mu[1:])
            side = -lam * bond[:-1] * bond[1:] / mu[1:-1]
            whole = np.diag(main) + np.diag(side, 1) + np.diag(side, -1)
            if not frozen:
                moved = bond[:, None] * np.diff(self.features, axis=0)
                whole += moved @ moved.T / len(self.y)
            value, vector = eigh(whole, subset_by_index=[0, 0], overwrite_a=True, check_finite=False)
            mode = -np.diff(bond * vector[:, 0], prepend=0, append=0)
            rates.append(2 * value[0])
            modes.append(mode / np.abs(mode / mu).max())
        return np.array(rates), np.array(modes)

    def relaxation(
        self, end: Float[ndarray, "E grid"], mode: Float[ndarray, "E grid"], dt: float, size: float = 0.02
    ) -> Float[ndarray, " E"]:
        """The rate at which the objective falls from time 2 to 4, from the minimiser plus a multiple of a mode."""
        path = self.flow(end + size * mode, np.array([2.0, 4.0]), dt)
        gap = np.stack([self.free_energy(mu) for mu in path]) - self.free_energy(end)
        return np.log(gap[0] / gap[1]) / 2


def kullback(mu: Float[ndarray, "*#E grid"], other: Float[ndarray, "*#E grid"]) -> Float[ndarray, "*E"]:
    """KL(mu | other) of two arrays of cell probabilities."""
    return _xlogy(mu, mu) - _xlogy(mu, other)


def _xlogy(mu: ndarray, other: ndarray) -> ndarray:
    return (mu * np.log(np.maximum(other, np.finfo(float).tiny))).sum(-1)


def _entropy(mu: ndarray, cell: float) -> ndarray:
    return _xlogy(mu, mu) - np.log(cell)


def _softmax(logits: ndarray) -> ndarray:
    weight = np.exp(logits - logits.max(-1, keepdims=True))
    weight = np.maximum(weight, 1e-250)  # so that ratios of neighbours stay finite
    return weight / weight.sum(-1, keepdims=True)


def _bernoulli(z: ndarray) -> ndarray:
    """z / (exp(z) - 1), by its series near 0."""
    small = np.abs(z) < 1e-5
    safe = np.where(small, 1.0, z)
    return np.where(small, 1 - z / 2, safe / np.expm1(safe))
