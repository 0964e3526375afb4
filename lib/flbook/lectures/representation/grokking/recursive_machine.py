r"""A recursive feature machine with the quadratic kernel :math:`(x^\top M x')^2`, and what is measured of its M.

.. math:: f(x) = \sum_i \alpha_i\,(x^\top M x_i)^2, \quad
          G = \frac1n\sum_j \sum_c \tilde\nabla f_c(x_j)\tilde\nabla f_c(x_j)^\top, \quad M \leftarrow \sqrt G

The tilde means that the mean gradient over the samples is subtracted. M is scaled to the mean diagonal 1: predictions
do not depend on its scale.

Source: Mallinar et al. (2025), whose code subtracts the mean gradient.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook.lectures.representation.grokking.modular_table import TablePairs, inputs, labels, targets

RIDGE = 1e-9  # of the kernel's mean diagonal: late kernels have eigenvalues of the size of rounding errors


def similarities(x: Float[Tensor, "*E n q"], other: Float[Tensor, "*E t q"], metric: Float[Tensor, "*E q q"]
                 ) -> Float[Tensor, "*E n t"]:  # fmt: skip
    r"""The products :math:`x^\top M x'`, whose squares are the kernel."""
    return (x @ metric) @ other.mT


def coefficients(x: Float[Tensor, "*E n q"], y: Float[Tensor, "*E n p"], metric: Float[Tensor, "*E q q"]
                 ) -> Float[Tensor, "*E n p"]:  # fmt: skip
    r"""The :math:`\alpha` of the function that passes through the labels."""
    kernel = similarities(x, x, metric).square()
    level = kernel.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
    kernel.diagonal(dim1=-2, dim2=-1).add_(RIDGE * level[..., 0])
    factor, failed = torch.linalg.cholesky_ex(kernel)
    if bool(failed.any()):  # M that was set by hand need not be positive
        return torch.linalg.solve(kernel, y)
    return torch.cholesky_solve(y, factor)


def gradient_product(x: Float[Tensor, "*E n q"], alpha: Float[Tensor, "*E n p"], metric: Float[Tensor, "*E q q"],
                     centred: bool = True) -> Float[Tensor, "*E q q"]:  # fmt: skip
    r"""The average gradient outer product of f over its training inputs, a quarter of it.

    The gradient of :math:`f_c` at x is :math:`2 M \sum_i \alpha_{ic}(x_i^\top M x)\,x_i`. Summed over classes and
    samples the pairs i, i' enter by :math:`(\alpha\alpha^\top)_{ii'}` times :math:`x_i^\top M \Sigma M x_{i'}`, with
    the inputs' second moment :math:`\Sigma`, or their covariance: no Jacobian is made.
    `flbook.observe.agop` finds the same from any network's Jacobians.
    """
    moment = x.mT @ x / x.shape[-2]
    if centred:
        mean = x.mean(-2, keepdim=True)
        moment = moment - mean.mT @ mean
    both = similarities(x, x, metric @ moment @ metric) * (alpha @ alpha.mT)
    return metric @ (x.mT @ both @ x) @ metric


def scaled(metric: Float[Tensor, "*E q q"]) -> Float[Tensor, "*E q q"]:
    """To the mean diagonal 1."""
    return metric / metric.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]


def root(product: Float[Tensor, "*E q q"]) -> Float[Tensor, "*E q q"]:
    """The root of a positive semidefinite matrix, scaled."""
    values, vectors = torch.linalg.eigh(product)
    return scaled((vectors * values.clamp(min=0).sqrt()[..., None, :]) @ vectors.mT)


def one_round(x: Float[Tensor, "*E n q"], y: Float[Tensor, "*E n p"], metric: Float[Tensor, "*E q q"]
              ) -> tuple[Float[Tensor, "*E n p"], Float[Tensor, "*E q q"]]:  # fmt: skip
    """Fit in the metric M; the coefficients, and the next M."""
    alpha = coefficients(x, y, metric)
    return alpha, root(gradient_product(x, alpha, metric))


class MachineRound(NamedTuple):
    """One round: the metric in use, and what a fit in it does to the test pairs."""

    metric: Float[Tensor, "*E q q"]
    accuracy: Float[Tensor, "*E"]
    rank: Float[Tensor, "*E"]  # share of the other classes that are above the right one
    least: Float[Tensor, "*E"]  # accuracy of the class with the least output
    loss: Float[Tensor, "*E"]  # mean square over pairs and classes


def batches(seeds: tuple[int, ...], n: int) -> Iterator[tuple[int, ...]]:
    """Seeds a few at a time, so that their kernels stay in the processor's cache."""
    size = max(1, 700_000 // n**2)
    yield from (seeds[first : first + size] for first in range(0, len(seeds), size))


def recursion(p: int, split: TablePairs, rounds: int, device: torch.device | str = "cpu") -> Iterator[MachineRound]:
    """Rounds 0, which is in the metric M = I, to `rounds`."""
    train, test = (part.to(device) for part in split)
    x, y = inputs(train, p), targets(train, p)
    metric = torch.eye(2 * p, dtype=x.dtype, device=device).expand(*x.shape[:-2], 2 * p, 2 * p)
    for t in range(rounds + 1):
        alpha = coefficients(x, y, metric)
        outputs = similarities(inputs(test, p), x, metric).square() @ alpha
        loss = (outputs - targets(test, p)).square().mean((-1, -2))
        right, least = accuracy(outputs, test, p), accuracy(-outputs, test, p)
        yield MachineRound(metric, right, rank(outputs, test, p), least, loss)
        if t < rounds:
            metric = root(gradient_product(x, alpha, metric))


def accuracy(outputs: Float[Tensor, "*E t p"], pairs: Int[Tensor, "*E t 2"], p: int) -> Float[Tensor, "*E"]:
    """The share of pairs whose largest output is the right one."""
    return (outputs.argmax(-1) == labels(pairs, p)).double().mean(-1)


def rank(outputs: Float[Tensor, "*E t p"], pairs: Int[Tensor, "*E t 2"], p: int) -> Float[Tensor, "*E"]:
    """The share of the p - 1 other classes whose output is above that of the right one, mean over the pairs."""
    right = outputs.gather(-1, labels(pairs, p)[..., None])
    return (outputs > right).double().sum(-1).mean(-1) / (p - 1)


def accuracy_in(metric: Float[Tensor, "*E q q"], p: int, split: TablePairs) -> Float[Tensor, "*E"]:
    """Test accuracy of one fit in a metric."""
    x = inputs(split.train, p)
    alpha = coefficients(x, targets(split.train, p), metric)
    return accuracy(similarities(inputs(split.test, p), x, metric).square() @ alpha, split.test, p)


def profile(metric: Float[Tensor, "*E q q"]) -> Float[Tensor, "*E p"]:
    """The circulant part of the lower left block C: the mean of C_uv over the pairs with v - u = t."""
    return _along(metric, 1)


def _along(metric: Float[Tensor, "*E q q"], sign: int) -> Float[Tensor, "*E p"]:
    """Means of the lower left block over v - u = t (sign 1) or v + u = t (sign -1)."""
    p = metric.shape[-1] // 2
    u = torch.arange(p, device=metric.device)
    v = (torch.arange(p, device=metric.device)[:, None] + sign * u) % p  # (t, u)
    return metric[..., p:, :p][..., u.expand(p, p), v].mean(-1)


def progress(metric: Float[Tensor, "*E q q"]) -> Float[Tensor, "*E"]:
    """R: the mean modulus of the profile's Fourier coefficients, without the constant, over the mean diagonal."""
    moduli = torch.fft.fft(profile(metric)).abs()[..., 1:].mean(-1)
    return moduli / metric.diagonal(dim1=-2, dim2=-1).mean(-1)


def explained(metric: Float[Tensor, "*E q q"]) -> tuple[Float[Tensor, "*E"], Float[Tensor, "*E"]]:
    """How much of the lower left block's variance is a function of v - u (circulant), and of v + u (Hankel)."""
    p = metric.shape[-1] // 2
    total = metric[..., p:, :p].flatten(-2).var(-1, correction=0)
    circulant, hankel = (_along(metric, sign).var(-1, correction=0) / total for sign in (1, -1))
    return circulant, hankel


def circulant(profile: Float[Tensor, "*E p"]) -> Float[Tensor, "*E 2*p 2*p"]:
    """The metric of the profile C_t: ones on the diagonal, and C_uv = C_(v-u) in the lower left block."""
    p = profile.shape[-1]
    u = torch.arange(p, device=profile.device)
    block = profile[..., (u - u[:, None]) % p]
    eye = torch.eye(p, dtype=profile.dtype, device=profile.device).expand_as(block)
    return torch.cat([torch.cat([eye, block.mT], -1), torch.cat([block, eye], -1)], -2)
