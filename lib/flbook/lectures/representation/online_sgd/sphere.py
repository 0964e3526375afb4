r"""One neuron on the sphere, one sample a step: its overlap with the hidden direction is the whole state.

For a target :math:`y = g(\langle\beta, x\rangle)` a step is :math:`w \leftarrow w + \frac\eta d g_t\,x_\perp`,
divided by its length, with :math:`a = \langle w, x\rangle`, :math:`x_\perp = x - aw` and a factor :math:`g_t` that
depends on y, a and :math:`|x_\perp|^2/d`. Then :math:`m = \langle w, \beta\rangle` is a Markov chain: with p the
coordinate of the sample towards beta and across w,

.. math:: m \leftarrow \frac{m + \frac\eta d g_t\sqrt{1 - m^2}\,p}{\sqrt{1 + \frac{\eta^2}{d^2}g_t^2|x_\perp|^2}},
          \qquad |x_\perp|^2 = p^2 + \chi^2_{d-2},

three random numbers a step, exactly in law. As d grows, in t = eta steps/d,

.. math:: m' = A(m) - \frac\eta2\,m\,V(m), \qquad A = \sqrt{1 - m^2}\;E\,g_tp, \quad V = E\,g_t^2 .

Sources: Ben Arous et al. (2021), section 2, for the chain's drift and noise; derived in the lecture.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy import ndarray

from flbook import hermite
from flbook.domains import Checked, Positive
from flbook.dynamics.equations import Number, integrate
from flbook.rng import numpy_generator

_BLOCK = 2048  # steps whose random numbers are held at once


@dataclass(frozen=True)
class Neuron(Checked):
    """A neuron's rule: the target's link, and the factor ``factor(y, a, square)`` of its step."""

    link: Callable
    factor: Callable
    lr: Positive  # eta

    def step(self, m: Number, d: int, a: Number, p: Number, rest: Number) -> Number:
        """The overlap after one step; `rest` is chi squared with d - 2 degrees of freedom."""
        across = np.sqrt(np.maximum(1 - m**2, 0))
        square = p**2 + rest
        move = self.lr / d * self.factor(self.link(m * a + across * p), a, square / d)
        return (m + move * across * p) / np.sqrt(1 + move**2 * square)

    def drift(self, m: Number) -> Number:
        """A(m), by Gauss-Hermite quadrature in a and p; for one m or many."""
        g, weight, p = self._table(m)
        return np.sqrt(1 - np.square(m)) * (weight * g * p).sum((-2, -1))

    def power(self, m: Number) -> Number:
        """V(m), in the same way."""
        g, weight, _ = self._table(m)
        return (weight * g**2).sum((-2, -1))

    def rate(self, m: Number) -> Number:
        """The derivative of m in t = eta steps/d, as d grows."""
        return self.drift(m) - self.lr / 2 * np.asarray(m) * self.power(m)

    def _table(self, m: Number) -> tuple[ndarray, ndarray, ndarray]:
        """The factor at all nodes (a, p), shape (*m, 60, 60), their weights, and p."""
        node, weight = np.polynomial.hermite_e.hermegauss(60)
        a, p, m = node[:, None], node, np.asarray(m, float)[..., None, None]
        g = self.factor(self.link(m * a + np.sqrt(1 - m**2) * p), a, 1.0)
        return g, np.outer(weight, weight) / weight.sum() ** 2, p


def hermite_neuron(k: int, lr: float) -> Neuron:
    r"""Target and student are both :math:`h_k`; the loss is minus their correlation, so :math:`g_t = y\,h_k'(a)`.

    Its equation is :math:`m' = k m^{k-1}(1 - m^2) - \frac\eta2 m V(m)`.
    """
    link, slope = hermite.he(k), hermite.he(k).derivative()
    return Neuron(link, lambda y, a, square: y * slope(a), lr)


def looking_ahead(link: Callable, rho: float, lr: float) -> Neuron:
    r"""The student is :math:`-\mathrm{erf}(a/\sqrt 2)`, and each sample is used twice.

    A first step of length rho along its gradient moves the neuron's input to :math:`\tilde a`; the gradient of the same
    sample there, :math:`g_t = -y\,\sigma'(\tilde a)`, moves the weights. With rho = 0 it is ordinary SGD. Here
    :math:`\sigma'(a) = \sqrt{2/\pi}\,e^{-a^2/2}` and :math:`\tilde a = a - \rho\,y\,\sigma'(a)\,|x_\perp|^2/d`.
    """
    def slope(a):
        return np.sqrt(2 / np.pi) * np.exp(-(a**2) / 2)

    return Neuron(link, lambda y, a, square: -y * slope(a - rho * y * slope(a) * square), lr)


def follow(neuron: Neuron, start: float, d: int, seeds: tuple[int, ...], steps: ndarray, level: float = 0.5,
           role: str = "samples") -> tuple[ndarray, ndarray]:  # fmt: skip
    """The chain at dimension d from one start, for many seeds.

    Returns m at the given numbers of steps (increasing), shape (seed, len(steps)), and the first step after which
    \\|m\\| reached `level`, NaN where it never did.
    """
    sources = [numpy_generator(seed, f"{role} {d}") for seed in seeds]
    m, path = np.full(len(seeds), float(start)), np.empty((len(seeds), len(steps)))
    reached = np.full(len(seeds), np.nan)
    where, now = 0, 0
    while where < len(steps) and steps[where] == 0:
        path[:, where] = m
        where += 1
    while where < len(steps):
        count = min(_BLOCK, int(steps[-1]) - now)
        a, p = np.stack([source.standard_normal((_BLOCK, 2)) for source in sources]).transpose(2, 1, 0)
        rest = np.stack([source.chisquare(d - 2, _BLOCK) for source in sources], -1)
        for j in range(count):
            m = neuron.step(m, d, a[j], p[j], rest[j])
            now += 1
            if now % 4 == 0:  # escape is looked for every fourth step: it costs as much as a step
                reached = np.where(np.isnan(reached) & (np.abs(m) >= level), now, reached)
            while where < len(steps) and steps[where] == now:
                path[:, where] = m
                where += 1
    return path, reached


def solve(neuron: Neuron, start: float, times: ndarray, dt: float = 0.02) -> ndarray:
    """The equation's solution at the given times t = eta steps/d, from a table of the rate on [-1, 1]."""
    grid = np.sin(np.linspace(-np.pi / 2, np.pi / 2, 401))
    table = neuron.rate(grid)
    path = integrate(lambda s: {"m": np.interp(s["m"], grid, table)}, {"m": float(start)}, times, dt)
    return path["m"]
