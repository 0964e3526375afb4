r"""Particles that learn features for attention: the mean-field network in the two-time-scale limit.

A measure over neurons :math:`\theta = (a, w)`, held as m particles, gives k features

.. math:: h_\mu(x) = \frac1m \sum_j a_j\,\sigma(\langle w_j, x\rangle), \quad \sigma(z) = \frac{1}{1+e^{-z}} - \frac12 .

The sigmoid is centred, because its mean would be common to all neurons and would make the covariance of the features
nearly singular. One layer of linear attention on top predicts tasks :math:`v^\top f(x)` of q true features f. With
:math:`E\,v v^\top = I`, a long prompt and an attention matrix that is always at its optimum, its loss is

.. math:: L(\mu) = \tfrac12 E\,|f - G h_\mu|^2 = \tfrac12\mathrm{tr}\,S, \qquad
          G = \Sigma_{f\mu}\Sigma_{\mu\mu}^{-1}, \quad \zeta = f - G h_\mu, \quad S = E\,\zeta\zeta^\top,

with the factor 1/2. The Wasserstein gradient flow moves every particle down its first variation,

.. math:: \dot\theta = -\nabla \frac{\delta L}{\delta\mu}(\theta), \qquad
          \frac{\delta L}{\delta\mu}(a, w) = -a^\top G^\top E\,\zeta(x)\,\sigma(\langle w, x\rangle) ,

which is m times the gradient in the particles. The law of x is uniform over the given n points, so every expectation is
exact. Where :math:`\Sigma_{\mu\mu}` is singular its pseudo-inverse stands in.

Axes: j of m particles, k features, q true features, d inputs, n points; ensemble axes lead.
Source: Kim and Suzuki (2024), sections 2 to 5 and Algorithm 1; the closed form of the gradient is derived here.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.domains import Count, Positive, Seeds, checked_arguments
from flbook.models.activations import centred_sigmoid


class Particles(NamedTuple):
    """m neurons; the measure is uniform over them."""

    a: Float[Tensor, "*E m k"]
    w: Float[Tensor, "*E m d"]

    def features(self, x: Float[Tensor, "*#E n d"]) -> Float[Tensor, "*E n k"]:
        """h(x), the average of the neurons."""
        return torch.einsum("...nm,...mk->...nk", self.neurons(x), self.a) / self.a.shape[-2]

    def neurons(self, x: Float[Tensor, "*#E n d"]) -> Float[Tensor, "*E n m"]:
        """The activations, without second layer."""
        return centred_sigmoid(torch.einsum("...nd,...md->...nm", x, self.w))

    def moved(self, velocity: "Particles", time: float | Tensor) -> "Particles":
        """Every particle carried along its velocity for some time; a tensor has one time a member."""
        time = time[..., None, None] if isinstance(time, Tensor) and time.ndim else time
        return Particles(self.a + time * velocity.a, self.w + time * velocity.w)

    def mixed(self, matrix: Float[Tensor, "*#E q k"]) -> "Particles":
        """The push-forward along a -> M a, whose features are M h."""
        return Particles(torch.einsum("...qk,...mk->...mq", matrix, self.a), self.w)

    def whitened(self, x: Float[Tensor, "*#E n d"], covariance: Float[Tensor, "*#E k k"] | None = None) -> "Particles":
        """A push-forward whose features have this covariance on `x` (None: the identity over k)."""
        h = self.features(x)
        k = h.shape[-1]
        target = torch.eye(k).to(h) / k if covariance is None else covariance.to(h)
        return self.mixed(root(target) @ root(second_moment(h, h), -0.5))


class Population(NamedTuple):
    """The law of the inputs, uniform over n points, and the true features on them."""

    x: Float[Tensor, "*#E n d"]
    f: Float[Tensor, "*#E n q"]


class Regression(NamedTuple):
    """The true features regressed on the learned ones: f = G h + zeta."""

    gain: Float[Tensor, "*E q k"]  # G
    residual: Float[Tensor, "*E n q"]  # zeta
    unexplained: Float[Tensor, "*E q q"]  # S, the covariance of zeta


@checked_arguments
def draw(m: Count, k: Count, d: Count, seed: Seeds, role: str = "particles", spread: Positive = 1.0) -> Particles:
    r"""Independent neurons: a uniform on the unit sphere, w normal.

    Parameters
    ----------
    m, k, d
        Neurons, features, coordinates of an input.
    seed
        A tuple of seeds is an ensemble with one leading axis.
    role
        Names the draw.
    spread
        :math:`(E|w|^2)^{1/2}`.

    Returns
    -------
    Particles
        In float64.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    Examples
    --------
    >>> draw(m=5, k=2, d=3, seed=(0, 1)).w.shape
    torch.Size([2, 5, 3])
    """
    a = rng.normal((m, k), seed, f"{role}: a")
    return Particles(a / a.norm(dim=-1, keepdim=True), spread / d**0.5 * rng.normal((m, d), seed, f"{role}: w"))


def second_moment(u: Float[Tensor, "*#E n p"], v: Float[Tensor, "*#E n q"]) -> Float[Tensor, "*E p q"]:
    """E u v^T over the points."""
    return torch.einsum("...np,...nq->...pq", u, v) / u.shape[-2]


def root(matrix: Float[Tensor, "*E k k"], power: float = 0.5) -> Float[Tensor, "*E k k"]:
    """A power of a symmetric, positive definite matrix."""
    values, vectors = torch.linalg.eigh(matrix)
    return torch.einsum("...ij,...j,...kj->...ik", vectors, values**power, vectors)


def regress(h: Float[Tensor, "*#E n k"], f: Float[Tensor, "*#E n q"]) -> Regression:
    """The best linear prediction of f from h, and what it does not explain.

    Examples
    --------
    >>> h = torch.tensor([[1.0], [-1.0]])
    >>> regress(h, 3 * h).gain.tolist()
    [[3.0]]
    """
    inverse = torch.linalg.pinv(second_moment(h, h), rtol=100 * torch.finfo(h.dtype).eps, hermitian=True)
    gain = second_moment(f, h) @ inverse
    residual = f - torch.einsum("...qk,...nk->...nq", gain, h)
    return Regression(gain, residual, second_moment(residual, residual))


def loss(particles: Particles, population: Population) -> Float[Tensor, "*E"]:
    """L(mu) = tr S / 2; differentiable in the particles, once and twice."""
    return regress(particles.features(population.x), population.f).residual.square().sum(-1).mean(-1) / 2


def velocity(particles: Particles, population: Population) -> tuple[Particles, Float[Tensor, "*E"]]:
    """Minus the Wasserstein gradient at every particle, and the loss."""
    neurons = particles.neurons(population.x)
    h = torch.einsum("...nm,...mk->...nk", neurons, particles.a) / particles.a.shape[-2]
    fit = regress(h, population.f)
    field = torch.einsum("...qk,...nq->...nk", fit.gain, fit.residual)
    return pushed(particles, population.x, neurons, field), fit.residual.square().sum(-1).mean(-1) / 2


def pushed(
    particles: Particles,
    x: Float[Tensor, "*#E n d"],
    neurons: Float[Tensor, "*E n m"],
    field: Float[Tensor, "*E n k"],
) -> Particles:
    """What a loss whose gradient in the features is -field does to every particle."""
    n, slope = x.shape[-2], 0.25 - neurons.square()  # of the centred sigmoid
    inner = torch.einsum("...nk,...mk->...nm", field, particles.a) * slope  # minus the derivative in <w, x>
    a, w = torch.einsum("...nm,...nk->...mk", neurons, field), torch.einsum("...nm,...nd->...md", inner, x)
    return Particles(a / n, w / n)


def step(particles: Particles, population: Population, lr: float | Tensor) -> Particles:
    """One explicit step of the static dynamics, the gradient flow of L."""
    return particles.moved(velocity(particles, population)[0], lr)


def joint_velocity(
    particles: Particles, gamma: Float[Tensor, "*E k k"], population: Population, time: float | Tensor
) -> tuple[Particles, Float[Tensor, "*E k k"], Float[Tensor, "*E"]]:
    """Attention first: Gamma after its flow for some time at fixed features, then the particles' velocity; the loss.

    Parameters
    ----------
    particles, gamma, population
        The state, and the law of the inputs.
    time
        That time: a step of the particles times the ratio of the two rates. The flow is solved exactly (Lemma 3.1), so
        a long time costs no more than a short one.

    Returns
    -------
    velocity, gamma, loss
        Minus the gradient in the particles times m, Gamma after the flow, and L(mu, Gamma) there, shape ``*E``.
    """
    x, f = population
    neurons = particles.neurons(x)
    h = torch.einsum("...nm,...mk->...nk", neurons, particles.a) / particles.a.shape[-2]
    gamma = attention_flow(gamma, second_moment(f, h), second_moment(h, h), time)
    field, _, value = _attention_fields(h, f, gamma)
    return pushed(particles, x, neurons, field), gamma, value


def joint_step(
    particles: Particles,
    gamma: Float[Tensor, "*E k k"],
    population: Population,
    lr: float | Tensor,
    ratio: float | Tensor,
) -> tuple[Particles, Float[Tensor, "*E k k"], Float[Tensor, "*E"]]:
    r"""One gradient step of the neurons and of attention from the same state, at the rates lr and ratio * lr.

    .. math:: \theta_j \leftarrow \theta_j - \eta\,m\,\partial L/\partial\theta_j, \qquad
              \Gamma \leftarrow \Gamma - \tau\eta\,\partial L/\partial\Gamma, \qquad
              L = \tfrac12E|f - \Sigma_{f\mu}\Gamma h|^2.

    Parameters
    ----------
    particles, gamma, population
        The state, and the law of the inputs.
    lr, ratio
        Step size of the neurons, and the ratio of the two rates; tensors have one a member.

    Returns
    -------
    particles, gamma, loss
        After the step, and L(mu, Gamma) before it, shape ``*E``.
    """
    neurons = particles.neurons(population.x)
    h = torch.einsum("...nm,...mk->...nk", neurons, particles.a) / particles.a.shape[-2]
    field, turn, value = _attention_fields(h, population.f, gamma)
    rate = ratio * lr
    rate = rate[..., None, None] if isinstance(rate, Tensor) and rate.ndim else rate
    return particles.moved(pushed(particles, population.x, neurons, field), lr), gamma + rate * turn, value


def attention_flow(
    gamma: Float[Tensor, "*E k k"], cross: Float[Tensor, "*E q k"], own: Float[Tensor, "*E k k"], time: float | Tensor
) -> Float[Tensor, "*E k k"]:
    r"""Gamma after the gradient flow of L(mu, Gamma) at fixed features.

    In the eigenbases of :math:`\Sigma_{f\mu}^\top\Sigma_{f\mu}` (values b) and :math:`\Sigma_{\mu\mu}` (values c) the
    distance from :math:`\Sigma_{\mu\mu}^{-1}` decays entry by entry at the rates :math:`b_i c_j`.

    Parameters
    ----------
    gamma
        Where the flow starts.
    cross, own
        :math:`\Sigma_{f\mu}` and :math:`\Sigma_{\mu\mu}`.
    time
        How long it flows; a tensor has one a member.
    """
    (b, rows), (c, columns) = torch.linalg.eigh(cross.mT @ cross), torch.linalg.eigh(own)
    goal = torch.linalg.pinv(own, rtol=100 * torch.finfo(own.dtype).eps, hermitian=True)
    rates = b.clamp_min(0)[..., :, None] * c.clamp_min(0)[..., None, :]
    time = time[..., None, None] if isinstance(time, Tensor) and time.ndim else time
    kept = torch.exp(-time * rates)
    return goal + rows @ (kept * (rows.mT @ (gamma - goal) @ columns)) @ columns.mT


def _attention_fields(h: Tensor, f: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Minus the gradients of L(mu, Gamma) in the features and in Gamma, and the loss."""
    fh = second_moment(f, h)
    residual = f - torch.einsum("...qk,...kl,...nl->...nq", fh, gamma, h)
    rh = second_moment(residual, h)
    field = torch.einsum("...kl,...ql,...nq->...nk", gamma, rh, f)  # h as key and value
    field = field + torch.einsum("...lk,...ql,...nq->...nk", gamma, fh, residual)  # h as query
    return field, fh.mT @ rh, residual.square().sum(-1).mean(-1) / 2


def best_attention(particles: Particles, population: Population) -> Float[Tensor, "*E k k"]:
    """The matrix that attention converges to when the features stand still: the pseudo-inverse of their covariance."""
    h = particles.features(population.x)
    return torch.linalg.pinv(second_moment(h, h), rtol=100 * torch.finfo(h.dtype).eps, hermitian=True)
