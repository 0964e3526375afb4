r"""The static, joint and modified dynamics of particles: gradient steps, birth-death, and a random velocity field.

.. math:: \text{birth-death:}\quad \mu \leftarrow (1 - \gamma)\mu + \gamma\pi , \qquad
          \text{perturbation:}\quad \mu \leftarrow (\mathrm{id} + \eta_p\,\xi)_\sharp\,\mu ,\quad \xi \sim GP(0, K) .

The modified dynamics descends like the static one and does both whenever the loss has stalled.
Source: Kim and Suzuki (2024), sections 5.1, 5.4 and 6, and Algorithm 1.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from flbook import rng
from flbook.domains import Checked, Count, Natural, NonNegative, Positive, Probability, checked_arguments
from flbook.lectures.in_context_learning.shared.mean_field import Particles, Population, draw, joint_velocity, velocity


def birth_death(
    particles: Particles, fresh: Particles, seed: int, where: Bool[Tensor, "*E"] | None = None
) -> Particles:
    """mu <- (1 - share) mu + share pi: particles chosen at random die, and the p fresh ones take their places.

    Parameters
    ----------
    particles
        m samples of mu.
    fresh
        p <= m samples of pi.
    seed
        Of the choice, the same for all members of the ensemble.
    where
        Which members do this, shape ``*E``; None: all.

    Raises
    ------
    ValueError
        If there are more fresh particles than old ones, or none.
    """
    m, p = particles.a.shape[-2], fresh.a.shape[-2]
    if not 1 <= p <= m:
        raise ValueError(f"fresh must hold between 1 and m = {m} particles; it holds {p}")
    dead = torch.randperm(m, generator=rng.generator(seed, "deaths"))[:p].to(particles.a.device)
    born = Particles(*(old.index_copy(-2, dead, new.to(old).expand(*old.shape[:-2], *new.shape[-2:]))
                       for old, new in zip(particles, fresh, strict=True)))
    return born if where is None else _chosen(where, born, particles)


@checked_arguments
def gaussian_process(particles: Particles, length: Positive, seed: Natural) -> Particles:
    r"""A random velocity field: a stationary Gaussian process over theta with independent components, at the particles.

    Its covariance is :math:`K(\theta, \theta') = e^{-|\theta - \theta'|^2/(2\ell^2)} I_{k+d}`, with `length`
    :math:`\ell`. Raises ValueError unless that is positive.
    """
    theta = torch.cat(particles, -1)
    kernel = torch.exp(-torch.cdist(theta, theta).square() / (2 * length**2))
    values, vectors = torch.linalg.eigh(kernel)
    noise = rng.normal(tuple(theta.shape), seed, "Gaussian process").to(theta)
    field = vectors @ (values.clamp_min(0).sqrt()[..., None] * (vectors.mT @ noise))
    return Particles(*field.split([part.shape[-1] for part in particles], -1))


def _chosen(where: Bool[Tensor, "*E"], new: Particles, old: Particles) -> Particles:
    return Particles(*(torch.where(where[..., None, None], one, other) for one, other in zip(new, old, strict=True)))


@dataclass(frozen=True)
class Modified(Checked):
    """Algorithm 1: when the loss has stalled for `every` steps, replace some particles, and shake all of them.

    Examples
    --------
    >>> particles, rule = draw(m=20, k=2, d=3, seed=0), Modified(share=0.25)
    >>> after = rule(particles, before=torch.tensor(0.3), now=torch.tensor(0.1), count=1)  # the loss still falls
    >>> torch.equal(after.w, particles.w)
    True
    """

    every: Count = 100
    birth_death_below: float = 0.01  # relative decrease of the loss that counts as stalled
    perturb_below: float = 0.01
    share: Probability = 0.05  # of the particles that are replaced
    size: NonNegative = 0.1  # time for which the particles follow the Gaussian process
    length: Positive = 1.0  # its correlation length
    spread: Positive = 1.0  # of the fresh neurons' w
    seed: Natural = 0
    until: float = 0.0  # loss at which the goal is reached and nothing is done any more

    def __call__(self, particles: Particles, before: Tensor, now: Tensor, count: int) -> Particles:
        """The particles after the check number `count`, given the losses at the last check and now; shapes ``*E``."""
        gained = torch.where(now > self.until, 1 - now / before, torch.ones_like(now))
        (m, k), d = particles.a.shape[-2:], particles.w.shape[-1]
        seed = rng.entropy(self.seed, f"check {count}")
        if bool((gained < self.birth_death_below).any()):
            fresh = draw(max(1, round(self.share * m)), k, d, seed, "births", self.spread)
            particles = birth_death(particles, fresh, seed, gained < self.birth_death_below)
        if bool((gained < self.perturb_below).any()):
            shaken = particles.moved(gaussian_process(particles, self.length, seed), self.size)
            particles = _chosen(gained < self.perturb_below, shaken, particles)
        return particles


@checked_arguments
def descend(
    particles: Particles,
    population: Population | Callable[[int], Population],
    lr: Positive | Tensor,
    steps: Count,
    modified: Modified | None = None,
    gamma: Float[Tensor, "*E k k"] | None = None,
    ratio: NonNegative | Tensor = 0.0,
    watch: Callable[[int, Particles], None] | None = None,
) -> tuple[Particles, Float[Tensor, "*E t"]]:
    """Train: the static dynamics; the joint one if `gamma` is given; with `modified` Algorithm 1.

    Parameters
    ----------
    particles
        At the start.
    population
        The law of the inputs; a function of the step for fresh prompts at every step.
    lr
        Step size; a tensor has one a member.
    steps
        How many.
    modified
        When and how particles are replaced and shaken.
    gamma
        Attention at the start, ``(*E, k, k)``.
    ratio
        Rate of attention over the rate of the neurons, tau; a tensor has one a member. Attention flows for the time
        ``ratio * lr`` between two steps of the neurons, see `mean_field.joint_velocity`.
    watch
        ``watch(step, particles)`` is called before every step.

    Returns
    -------
    particles, losses
        At the end, and before every step, shape ``(*E, t)``.

    Raises
    ------
    ValueError
        If an argument is out of its domain.
    """
    losses, last = [], None
    for t in range(steps):
        batch = population(t) if callable(population) else population
        if watch is not None:
            watch(t, particles)
        if gamma is None:
            move, now = velocity(particles, batch)
        else:
            move, gamma, now = joint_velocity(particles, gamma, batch, ratio * lr)
        losses.append(now)
        particles = particles.moved(move, lr)
        if modified is not None and t % modified.every == 0:
            if last is not None:
                particles = modified(particles, last, now, t // modified.every)
            last = now
    return particles, torch.stack(losses, -1)
