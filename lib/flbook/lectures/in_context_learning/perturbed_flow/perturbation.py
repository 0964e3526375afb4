r"""Perturbed Wasserstein gradient flow: a random push at a saddle, shaped by the Hessian.

For an objective :math:`F(\mu) = \Phi(E_\mu u(\theta))` over distributions of particles the second variation is an
integral operator,

.. math:: (H_\mu v)(\theta) = \int \nabla^2_\mu F(\theta, \theta')\,v(\theta')\,\mu(d\theta'), \qquad
          \nabla^2_\mu F(\theta, \theta') = Du(\theta)^\top\,\Phi''\,Du(\theta'),

and a particle that moves alone feels :math:`(H'_\mu v)(\theta) = \nabla\nabla_\mu F(\theta)\,v(\theta)` besides. At a
stationary density :math:`\nabla_\mu F = 0` almost everywhere, so H' is zero and H decides whether it is a saddle.
The push is a Gaussian process with the covariance of :math:`H_\mu^2`, so it prefers steep directions.

Axes: N particles, p coordinates; ensemble axes lead.
Source: Yamamoto, Kim and Suzuki (2025), as reported; sampling by one product with the Hessian is derived here.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class MeanFunctional:
    r"""The objective :math:`F(\mu) = \Phi\big(\frac1N\sum_j u(\theta_j)\big)` of N particles, and its derivatives.

    mean: the average of u over the particles, from ``(*E, N, p)`` to ``(*E, *q)``; outer: Phi, from ``(*E, *q)`` to
    ``(*E,)``. Phi has to be differentiable twice, the mean once.
    """

    mean: Callable[[Tensor], Tensor]
    outer: Callable[[Tensor], Tensor]

    def loss(self, theta: Float[Tensor, "*E N p"]) -> Float[Tensor, "*E"]:
        """F."""
        return self.outer(self.mean(theta))

    def slope(self, theta: Float[Tensor, "*E N p"]) -> tuple[Float[Tensor, "*E N p"], Float[Tensor, "*E"]]:
        """The Wasserstein gradient at every particle, N times the gradient in the particles, and F."""
        leaf = theta.detach().requires_grad_()
        loss = self.loss(leaf)
        return theta.shape[-2] * torch.autograd.grad(loss.sum(), leaf)[0], loss.detach()

    def whole(self, theta: Float[Tensor, "*E N p"], v: Float[Tensor, "*#E N p"]) -> Float[Tensor, "*E N p"]:
        """(H + H') v: N times the product of v with the Hessian in the particles."""
        leaf = theta.detach().requires_grad_()
        first = torch.autograd.grad(self.loss(leaf).sum(), leaf, create_graph=True)[0]
        return theta.shape[-2] * torch.autograd.grad((first * v).sum(), leaf)[0]

    def interaction(self, theta: Float[Tensor, "*E N p"], v: Float[Tensor, "*#E N p"]) -> Float[Tensor, "*E N p"]:
        """H v, the mean over j of the second variation at (i, j) times v_j: three products, no matrix."""
        leaf = theta.detach().requires_grad_()
        mean, change = torch.func.jvp(self.mean, (theta.detach().clone(),), (v.expand_as(theta).clone(),))
        center = mean.detach().requires_grad_()
        first = torch.autograd.grad(self.outer(center).sum(), center, create_graph=True)[0]
        bent = torch.autograd.grad((first * change.detach()).sum(), center)[0]
        return theta.shape[-2] * torch.autograd.grad((self.mean(leaf) * bent).sum(), leaf)[0]

    def spectrum(
        self, theta: Float[Tensor, "N p"], local: bool = True
    ) -> tuple[Float[Tensor, " Np"], Float[Tensor, "Np N p"]]:
        """Eigenvalues of H + H' (of H if not `local`), rising, and eigenvectors of length 1 in L2(mu).

        Forms the matrix, from one product a row: for small examples and tests, not for the algorithm.
        """
        basis = torch.eye(theta.numel(), dtype=theta.dtype, device=theta.device).reshape(-1, *theta.shape)
        rows = (self.whole if local else self.interaction)(theta.expand_as(basis), basis).flatten(1)
        values, vectors = torch.linalg.eigh((rows + rows.T) / 2)
        return values, vectors.T.reshape(basis.shape) * theta.shape[0] ** 0.5


def norm(v: Float[Tensor, "*E N p"]) -> Float[Tensor, "*E"]:
    """Length of a velocity field in L2(mu): the root mean square over particles."""
    return v.square().sum(-1).mean(-1).sqrt()


def guided(
    functional: MeanFunctional, theta: Float[Tensor, "*E N p"], g: Float[Tensor, "*E N p"], local: bool = False
) -> Float[Tensor, "*E N p"]:
    r"""A draw of the Gaussian process with the covariance of :math:`H_\mu^2`, at the particles.

    .. math:: \xi_i = \frac1{\sqrt N}\sum_j \nabla^2_\mu F(\theta_i, \theta_j)\,g_j, \qquad
              E\,\xi_i\xi_k^\top = \frac1N\sum_j \nabla^2_\mu F(\theta_i, \theta_j)\nabla^2_\mu F(\theta_j, \theta_k)

    g: standard normal numbers. local: take H + H' in place of H.
    """
    product = functional.whole if local else functional.interaction
    return theta.shape[-2] ** 0.5 * product(theta, g)


def smooth(theta: Float[Tensor, "*#E N p"], g: Float[Tensor, "*#E N p"], length: float) -> Float[Tensor, "*E N p"]:
    r"""A draw of a stationary Gaussian process: covariance :math:`e^{-|\theta-\theta'|^2/(2\ell^2)}` a coordinate."""
    kernel = torch.exp(-torch.cdist(theta, theta).square() / (2 * length**2))
    values, vectors = torch.linalg.eigh(kernel)
    return vectors @ (values.clamp_min(0).sqrt()[..., None] * (vectors.mT @ g))


def sized(v: Float[Tensor, "*E N p"], size: float) -> Float[Tensor, "*E N p"]:
    """The field scaled to this length in L2(mu)."""
    return size * v / norm(v)[..., None, None]
