r"""Neurons and attention trained together, at two rates: how fast must attention be?

.. math:: \dot\theta_j = -m\,\frac{\partial L}{\partial\theta_j}, \qquad
          \dot\Gamma = -\tau\,\frac{\partial L}{\partial\Gamma}, \qquad
          L(h, \Gamma) = \tfrac12E|f - \Sigma_{fh}\Gamma h|^2, \qquad \Gamma(0) = 0.

Claims (derived here): a slow attention delays the features by a time proportional to :math:`\tau^{-1/2}`, which the
limit of slow attention gives without a free constant, and

.. math:: \frac1m\sum_ja_ja_j^\top - \frac1\tau\big(\Gamma\Gamma^\top + \Gamma^\top\Gamma\big)

does not change. The law of the inputs is uniform over given points, so that every expectation is exact.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from flbook import rng
from flbook.domains import Count, Natural, NonNegative, Positive
from flbook.lectures.in_context_learning.shared import mean_field
from flbook.lectures.in_context_learning.shared.mean_field import Particles, Population
from flbook.runs import Experiment, Grid, axis


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    tau: tuple[Positive, ...] = axis([1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10], "ratio of rates τ")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    m: Count = 32  # neurons
    k: Count = 3  # features, true and learned
    d: Count = 6  # inputs
    points: Count = 100  # of the law of the inputs
    teacher: Count = 20  # its neurons
    dead: Natural = 0  # learned features that are zero at the start
    gamma: NonNegative = 0.0  # size of a random attention at the start
    lr: Positive = 0.05  # step size of the neurons
    slow: Positive = 1e6  # ratio below which steps may be longer, in proportion to its root
    steps: Natural = 1000
    every: Count = 5  # steps between two records

    def step_size(self, tau: float) -> float:
        """Step size of the neurons at a ratio: a slow attention delays everything, so steps may be longer."""
        return self.lr * max(1.0, (self.slow / tau) ** 0.5)


CURVES = ("tau", "seed", "step")
experiment = Experiment(
    Setting, version=1, loops=("tau",), devices=("cpu",),
    gives={
        "features": ("loss L(h) of the features, attention at its optimum", "1", CURVES),
        "loss": ("loss L(h, Γ)", "1", CURVES),
        "time": ("time t", "1", ("tau", "step")),
        "onset": ("time until L(h, Γ) is below nine tenths of its start", "1", ("tau", "seed")),
        "most": ("time until L(h, Γ) has fallen to a half", "1", ("tau", "seed")),
        "second_layer": ("growth of the second layers' second moment, trace", "1", ("tau", "seed")),
        "attention": ("growth of ΓΓᵀ + ΓᵀΓ over τ, trace", "1", ("tau", "seed")),
    },
    beside={"step": (lambda s: s.every * np.arange(s.steps // s.every + 1), "step")},
    presets={"tiny": ("Two ratios, two seeds, forty steps", dict(
        tau=(1e4, 1e6), seed=(0, 1), m=12, points=40, steps=40))},
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Joint training at one ratio of rates; between two steps of the neurons attention's flow is solved exactly."""
    start, population = problem(s)
    size, values, features = s.step_size(s.tau), [], []
    particles, gamma = start, attention(s)
    for t in range(s.steps + 1):
        move, turned, value = mean_field.joint_velocity(particles, gamma, population, s.tau * size)
        values.append(value)
        if t % s.every == 0:
            features.append(mean_field.loss(particles, population))
        if t < s.steps:
            particles, gamma = particles.moved(move, size), turned
    grown = moment(particles) - moment(start)
    paid = (products(gamma) - products(attention(s))) / s.tau
    losses, times = torch.stack(values, -1), size * torch.arange(s.steps + 1).double()
    return {"features": torch.stack(features, -1), "loss": losses[..., :: s.every], "time": times[:: s.every],
            "onset": reached(times, losses, 0.45), "most": reached(times, losses, 0.25),
            "second_layer": trace(grown), "attention": trace(paid)}


run = experiment.run


def problem(s: Setting) -> tuple[Particles, Population]:
    """Random neurons, and the true features on the points; one a seed."""
    x = rng.normal((s.points, s.d), s.seed, "inputs")
    truth = mean_field.draw(s.teacher, s.k, s.d, s.seed, "teacher", 4.0).whitened(x)
    start = mean_field.draw(s.m, s.k, s.d, s.seed, "student", 2.0)
    start = start._replace(a=start.a * (torch.arange(s.k) < s.k - s.dead))
    return start, Population(x, truth.features(x))


def attention(s: Setting) -> Tensor:
    """Attention at the start: zero, or normal entries of the given size."""
    return s.gamma * rng.normal((s.k, s.k), s.seed, "attention")


def moment(particles: Particles) -> Tensor:
    """The mean of a a^T over the neurons."""
    return particles.a.mT @ particles.a / particles.a.shape[-2]


def products(gamma: Tensor) -> Tensor:
    """The sum of Gamma Gamma^T and Gamma^T Gamma."""
    return gamma @ gamma.mT + gamma.mT @ gamma


def trace(matrix: Tensor) -> Tensor:
    """The traces of a stack of matrices."""
    return matrix.diagonal(dim1=-2, dim2=-1).sum(-1)


def static(s: Setting, steps: int | None = None) -> tuple[Tensor, Tensor]:
    """Times, and the loss of the features along the flow with attention at its optimum; (seed, step)."""
    particles, population = problem(s)
    rows = []
    for _ in range(steps or s.steps):
        rows.append(mean_field.loss(particles, population))
        particles = mean_field.step(particles, population, s.lr)
    return s.lr * torch.arange(len(rows)).double(), torch.stack(rows, -1)


def onset(s: Setting, growth: float = 100.0, relative: float = 0.01) -> Tensor:
    r"""The time, over :math:`\tau^{-1/2}`, at which slow attention takes off; (seed,).

    With :math:`t = u/\sqrt\tau` and :math:`\Gamma = \sqrt\tau\,\Phi` the joint flow has the limit, as
    :math:`\tau \to 0`, of gradient ascent on :math:`\mathrm{tr}(\Sigma_{fh}\Phi\Sigma_{fh}^\top)`, which is cubic in
    second layers and attention together and ends in finite time. Steps are of a fixed relative size.

    Parameters
    ----------
    s
        The setting.
    growth
        Of the norm of Phi over that of the second layers' start at which we stop; what is left is 1/growth of the last
        scale.
    relative
        Growth per step.
    """
    particles, population = problem(s)
    phi = torch.zeros(len(s.seed), s.k, s.k, dtype=torch.float64)
    elapsed = phi[:, 0, 0].clone()
    first = trace(moment(particles)).sqrt()
    while bool((torch.linalg.matrix_norm(phi) < growth * first).any()):
        h = particles.features(population.x)
        fh = mean_field.second_moment(population.f, h)
        field = population.f @ fh @ (phi + phi.mT)
        push = mean_field.pushed(particles, population.x, particles.neurons(population.x), field)
        turn = fh.mT @ fh
        size = torch.linalg.matrix_norm(phi) + first
        speed = torch.linalg.matrix_norm(turn) / size + trace(moment(push)).sqrt() / trace(moment(particles)).sqrt()
        dt = torch.where(torch.linalg.matrix_norm(phi) < growth * first, relative / speed, 0.0)
        particles, phi, elapsed = particles.moved(push, dt), phi + dt[:, None, None] * turn, elapsed + dt
    return elapsed


def reached(times: Tensor, losses: Tensor, level: float) -> Tensor:
    """The time at which a loss first comes below a level, between two records; NaN if never. losses: (..., step)."""
    below, times = losses < level, times.expand_as(losses)
    after = below.double().argmax(-1, keepdim=True)
    before = (after - 1).clamp_min(0)
    (t_0, L_0), (t_1, L_1) = ([part.gather(-1, at)[..., 0] for part in (times, losses)] for at in (before, after))
    share = torch.where(after[..., 0] > 0, (L_0 - level) / (L_0 - L_1), 0.0)
    return torch.where(below.any(-1), t_0 + share * (t_1 - t_0), torch.nan)
