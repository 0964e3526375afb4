r"""Questions to a trained network: what its filters and its gradients have in common, and which direction is a concept.

Each takes tensors with leading ensemble axes. A layer's feature matrix :math:`W^\top W` and its average gradient outer
product G (`feature_matrix`, `layer_matrices`, `correlation`); a concept, found as a difference of means and erased by
the smallest affine edit (`Eraser`).
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.models.convnet import ConvNet
from flbook.training.problem import Params


def feature_matrix(w: Float[Tensor, "*E m k"]) -> Float[Tensor, "*E k k"]:
    r""":math:`W^\top W` of neurons or filters, one a row.

    Source: Radhakrishnan et al. (2024), the neural feature matrix.
    """
    return torch.einsum("...mk,...ml->...kl", w, w)


def gradient_outer_product(
    x: Float[Tensor, "*E n d"], w: Float[Tensor, "*E m d"], b: Float[Tensor, "*E m"], a: Float[Tensor, "*E C m"]
) -> Float[Tensor, "*E d d"]:
    r"""Average gradient outer product of a two-layer ReLU network :math:`f(x) = A\,\sigma(Wx + b)` over inputs x.

    .. math:: G = W^\top B W, \qquad B = (A^\top A) \circ \tfrac1n\sum_i \sigma'(z_i)\sigma'(z_i)^\top

    Source: Radhakrishnan et al. (2024).
    """
    on = (torch.einsum("...nd,...md->...nm", x, w) + b[..., None, :] > 0).to(w)
    both_on = torch.einsum("...nm,...nl->...ml", on, on) / x.shape[-2]
    return w.mT @ (a.mT @ a * both_on) @ w


def correlation(a: Float[Tensor, "*E k k"], b: Float[Tensor, "*E k k"]) -> Float[Tensor, "*E"]:
    """Cosine between two symmetric matrices without their multiples of the identity, the same in every basis.

    The identity is taken off because a positive diagonal makes any two matrices of the form X'X look alike.
    """
    eye = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    a, b = (x - eye * x.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None] for x in (a, b))
    return (a * b).sum((-2, -1)) / (a.norm(dim=(-2, -1)) * b.norm(dim=(-2, -1)))


def pearson(a: Float[Tensor, "*E k k"], b: Float[Tensor, "*E k k"]) -> Float[Tensor, "*E"]:
    """Pearson correlation between all entries of two matrices, as in Radhakrishnan et al. (2024)."""
    a, b = (x.flatten(-2) - x.mean((-2, -1))[..., None] for x in (a, b))
    return (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))


def untrained_correlation(outputs: float, neurons: int) -> float:
    r""":math:`\rho = \sqrt{4C/(4C + m + 7)}`, of a two-layer ReLU network with C outputs and m neurons, as drawn.

    The root of :math:`E[X_{12} G_{12}]^2 / (E X_{12}^2\,E G_{12}^2)` with :math:`X = W^\top W`, for Gaussian weights
    and inputs, as the dimension grows. Source: derived on the lecture's page.
    """
    return math.sqrt(4 * outputs / (4 * outputs + neurons + 7))


def layer_matrices(
    net: ConvNet, params: Params, x: Float[Tensor, "*#E n c h w"]
) -> list[tuple[Float[Tensor, "*E k k"], Float[Tensor, "*E k k"]]]:
    r"""Of every layer of filters, :math:`W^\top W` and G over the patches that its filters see.

    A patch acts on the outputs through :math:`z = Wx^{(p)}` alone, as if patches could change by themselves, so
    :math:`G = W^\top B W` with B the average of :math:`\sum_c (\partial f_c/\partial z)(\partial f_c/\partial z)^\top`
    over pictures and places p; here k is the number of weights of a filter.

    Source: Beaglehole et al. (2023), the gradient outer product over patches.
    """
    params, half = {name: p.detach() for name, p in params.items()}, 2 ** (net.pool != "none")
    filters, nudges, edges = [], [], x.shape[-2:]
    for layer in range(net.depth):
        w = params[f"w{layer}"]
        edges = [edge + 1 + 2 * net.padding - w.shape[-1] for edge in edges]
        nudges.append(w.new_zeros(*w.shape[:-4], x.shape[-4], w.shape[-4], *edges).requires_grad_())
        filters.append(w.flatten(-3))
        edges = [edge // half for edge in edges]
    f = torch.func.functional_call(net, params, (x, nudges))
    f = f if f.ndim == filters[0].ndim else f[..., None]  # (*E, n, classes), also for one output
    slopes = [torch.autograd.grad(f[..., c].sum(), nudges, retain_graph=True) for c in range(f.shape[-1])]
    found = []
    for w, by_output in zip(filters, zip(*slopes, strict=True), strict=True):
        by_place = [s.movedim(-3, -4).flatten(-3) for s in by_output]  # (*E, m, pictures and places)
        m = sum(torch.einsum("...mp,...lp->...ml", s, s) / s.shape[-1] for s in by_place)
        found.append((feature_matrix(w), w.mT @ m @ w))
    return found


def mean_difference(h: Float[Tensor, "*E n k"], z: Float[Tensor, "*E n"]) -> Float[Tensor, "*E k"]:
    """A concept's direction: the mean of h where z is positive, less the mean where it is not."""
    yes = (z > 0).to(h)[..., None]
    return (h * yes).sum(-2) / yes.sum(-2) - (h * (1 - yes)).sum(-2) / (1 - yes).sum(-2)


class Eraser(NamedTuple):
    r"""The affine map :math:`r(h) = h - u \langle v, h - \bar h\rangle` after which no linear probe finds a concept."""

    mean: Float[Tensor, "*E k"]
    u: Float[Tensor, "*E k"]
    v: Float[Tensor, "*E k"]

    def __call__(self, h: Float[Tensor, "*E n k"]) -> Float[Tensor, "*E n k"]:
        """Features without the concept."""
        along = torch.einsum("...k,...nk->...n", self.v, h - self.mean[..., None, :])
        return h - along[..., None] * self.u[..., None, :]


def eraser(h: Float[Tensor, "*E n k"], z: Float[Tensor, "*E n"], smallest: bool = True) -> Eraser:
    r"""Erase a binary concept z from features h, with :math:`s = \mathrm{Cov}(h, z)` and :math:`S = \mathrm{Cov}(h)`.

    smallest: :math:`u = s / (s^\top S^{-1} s), v = S^{-1} s`, which moves h the least in mean square, by
        :math:`\|s\|^2 / (s^\top S^{-1} s)`; else the orthogonal projection along s, :math:`u = v = s / \|s\|`.
        Directions in which h varies less than 1e-6 of the most are left alone.

    Source: Belrose et al. (2023), for a concept of one dimension.
    """
    mean = h.mean(-2)
    centred, z = h - mean[..., None, :], (z - z.mean(-1, keepdim=True)).to(h)
    s = torch.einsum("...n,...nk->...k", z, centred) / z.shape[-1]
    if not smallest:
        unit = s / s.norm(dim=-1, keepdim=True)
        return Eraser(mean, unit, unit)
    covariance = torch.einsum("...nk,...nl->...kl", centred, centred) / z.shape[-1]
    size, axes = torch.linalg.eigh(covariance)
    alive = size > 1e-6 * size[..., -1:]
    inverse = torch.where(alive, 1 / size.clamp(min=torch.finfo(h.dtype).tiny), 0.0)
    within = torch.einsum("...k,...kl->...l", s, axes)
    v = torch.einsum("...l,...kl->...k", inverse * within, axes)
    return Eraser(mean, s / (s * v).sum(-1, keepdim=True), v)


def probe(h: Float[Tensor, "*E n k"], z: Float[Tensor, "*E n"], ridge: float = 1e-3) -> tuple[Tensor, Tensor]:
    """A linear probe: weights ``(*E, k)`` and threshold ``(*E,)`` of ridge regression of z on h.

    ridge: in units of the mean variance of a feature.
    """
    mean, target = h.mean(-2), (z - z.mean(-1, keepdim=True)).to(h)
    centred = h - mean[..., None, :]
    covariance = torch.einsum("...nk,...nl->...kl", centred, centred) / z.shape[-1]
    size = covariance.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
    s = torch.einsum("...n,...nk->...k", target, centred) / z.shape[-1]
    eye = torch.eye(h.shape[-1], dtype=h.dtype, device=h.device)
    w = torch.linalg.solve(covariance + ridge * size * eye, s)
    return w, (w * mean).sum(-1) - z.mean(-1)


def probed(found: tuple[Tensor, Tensor], h: Float[Tensor, "*E n k"], z: Float[Tensor, "*E n"]) -> Float[Tensor, "*E"]:
    """Share of samples whose concept (z, of size 1) a probe gets right; an answer of 0 up to rounding is half right."""
    output = torch.einsum("...k,...nk->...n", found[0], h) - found[1][..., None]
    right = ((output > 0) == (z > 0)).to(h)
    return torch.where(output.abs() < torch.finfo(h.dtype).eps ** 0.5, 0.5, right).mean(-1)
