"""Kernels of two sets of points, up to a factor: what fixed features amount to, however many there are."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.models.random_features import RandomFeatures

Kernel = Callable[[Tensor, Tensor], Tensor]


def inner_product(g: Callable[[Tensor], Tensor]) -> Kernel:
    r"""The kernel :math:`g(\langle x, x'\rangle / d)`, such as ``inner_product(torch.exp)``.

    Parameters
    ----------
    g
        An elementwise function of tensors.

    Returns
    -------
    Kernel
        A function of points ``(*#E, n, d)`` and ``(*#E, p, d)`` that returns ``(*E, n, p)``.

    Examples
    --------
    >>> inner_product(torch.square)(torch.tensor([[1.0, 1.0]]), torch.tensor([[2.0, 2.0], [1.0, -1.0]])).tolist()
    [[4.0, 0.0]]
    """

    def kernel(x: Float[Tensor, "*#E n d"], other: Float[Tensor, "*#E p d"]) -> Float[Tensor, "*E n p"]:
        return g(torch.einsum("...nd,...pd->...np", x / x.shape[-1], other))

    return kernel


def distance(g: Callable[[Tensor], Tensor]) -> Kernel:
    r"""The kernel :math:`g(\|x - x'\|^2 / d)`; the Gaussian kernel is ``distance(lambda t: torch.exp(-t / 2))``.

    Parameters
    ----------
    g
        An elementwise function of tensors.

    Returns
    -------
    Kernel
        A function of points ``(*#E, n, d)`` and ``(*#E, p, d)`` that returns ``(*E, n, p)``.
    """

    def kernel(x: Float[Tensor, "*#E n d"], other: Float[Tensor, "*#E p d"]) -> Float[Tensor, "*E n p"]:
        squares = x.square().sum(-1)[..., :, None] + other.square().sum(-1)[..., None, :]
        return g((squares - 2 * torch.einsum("...nd,...pd->...np", x, other)) / x.shape[-1])

    return kernel


def neural_tangent(net: RandomFeatures) -> Kernel:
    r"""The tangent kernel of a network's first layer, every neuron with the same weight in the output.

    .. math:: \frac{\langle x, x'\rangle}{d} \cdot \frac1N \sum_j \sigma'(\langle w_j, x\rangle)\,
              \sigma'(\langle w_j, x'\rangle)

    Source: Ba et al. (2022), Section 3.1; Jacot et al. (2018).

    Parameters
    ----------
    net
        The network, of which the first layer ``(*E, N, d)`` and the activation count.

    Returns
    -------
    Kernel
        A function of points ``(*#E, n, d)`` and ``(*#E, p, d)`` that returns ``(*E, n, p)``.
    """

    def kernel(x: Float[Tensor, "*#E n d"], other: Float[Tensor, "*#E p d"]) -> Float[Tensor, "*E n p"]:
        slopes = [net.activation.slope(torch.einsum("...nd,...kd->...nk", points, net.w)) for points in (x, other)]
        together = torch.einsum("...nk,...pk->...np", slopes[0] / net.width, slopes[1])
        return together * torch.einsum("...nd,...pd->...np", x / x.shape[-1], other)

    return kernel


def arcsine(x: Float[Tensor, "*#E n d"], other: Float[Tensor, "*#E p d"]) -> Float[Tensor, "*E n p"]:
    r"""What two erf neurons share: :math:`E\,\mathrm{erf}(\langle x, g\rangle)\,\mathrm{erf}(\langle x', g\rangle)`.

    .. math:: \frac2\pi \arcsin \frac{2\langle x, x'\rangle}{\sqrt{(1 + 2\|x\|^2)(1 + 2\|x'\|^2)}}, \qquad
              g \sim N(0, I)

    Read as a function of two weight vectors it is the exact second moment of their features over Gaussian data.

    Source: Williams (1998), "Computation with infinite neural networks".

    Parameters
    ----------
    x
        Points or weights, shape ``(*#E, n, d)``.
    other
        Others, shape ``(*#E, p, d)``.

    Returns
    -------
    Tensor
        Kernel matrix, shape ``(*E, n, p)``.
    """
    lengths = [(1 + 2 * points.square().sum(-1)).sqrt() for points in (x, other)]
    cosine = 2 * torch.einsum("...nd,...pd->...np", x, other) / lengths[0][..., :, None] / lengths[1][..., None, :]
    return 2 / math.pi * torch.asin(cosine)


def erf_risk(
    net: RandomFeatures, weights: Float[Tensor, "*E lam N"], direction: Float[Tensor, " d"]
) -> Float[Tensor, "*E lam"]:
    r"""Exact risk of second layers on erf features against the target :math:`\mathrm{erf}(\langle\beta_*, x\rangle)`.

    :math:`E(\hat f - f_*)^2` over Gaussian x, each of its three terms an `arcsine`; no test data.

    Parameters
    ----------
    net
        The network of the features, whose activation is erf.
    weights
        Second layers, shape ``(*E, lam, N)``.
    direction
        Direction :math:`\beta_*` of the target, shape ``(d,)``.

    Returns
    -------
    Tensor
        Risks, shape ``(*E, lam)``.
    """
    among = arcsine(net.w, net.w) / net.width
    with_target = arcsine(net.w, direction[None])[..., 0] / math.sqrt(net.width)
    square = torch.einsum("...lk,...km,...lm->...l", weights, among, weights)
    own = arcsine(direction[None], direction[None])[0, 0]
    return square - 2 * torch.einsum("...k,...lk->...l", with_target, weights) + own


def relu_tangent(bias: bool = True) -> Kernel:
    r"""The tangent kernel of an infinitely wide ReLU network with two trained layers.

    .. math:: k(u, u') = \langle u, u'\rangle\,\kappa_0(\cos) + \|u\|\|u'\|\,\kappa_1(\cos), \qquad
              \kappa_0 = 1 - \tfrac{\phi}{\pi}, \quad
              \kappa_1 = \tfrac1\pi\big(\sin\phi + (\pi - \phi)\cos\phi\big)

    with the angle :math:`\phi` between u and u'.

    Source: Cho and Saul (2009); Jacot et al. (2018).

    Parameters
    ----------
    bias
        With biases, :math:`u = (x, \sqrt d)/\sqrt{2d}`, or without, :math:`u = x/\sqrt d`, and the kernel is blind to
        odd harmonics of degree three and more.

    Returns
    -------
    Kernel
        A function of points ``(*#E, n, d)`` and ``(*#E, p, d)`` that returns ``(*E, n, p)``.
    """

    def lift(x: Tensor) -> Tensor:
        d = x.shape[-1]
        return torch.cat([x, torch.full_like(x[..., :1], d**0.5)], -1) / (2 * d) ** 0.5 if bias else x / d**0.5

    def kernel(x: Float[Tensor, "*#E n d"], other: Float[Tensor, "*#E p d"]) -> Float[Tensor, "*E n p"]:
        u, v = lift(x), lift(other)
        product = torch.einsum("...nd,...pd->...np", u, v)
        length = u.norm(dim=-1)[..., :, None] * v.norm(dim=-1)[..., None, :]
        cosine = (product / length).clamp(-1, 1)
        angle = torch.acos(cosine)
        once = 1 - angle / math.pi
        return product * once + length * (torch.sin(angle) / math.pi + once * cosine)

    return kernel
