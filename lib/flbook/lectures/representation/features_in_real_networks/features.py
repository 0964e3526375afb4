"""Features: what a trained network looks at, what it takes to be alike, and which directions inside it mean something.

Four questions to a network, each a tensor with leading ensemble axes: its filters (`feature_matrix`), what its output
is sensitive to (`gradient_outer_product`), how its kernel sits to the labels (`kernel_alignment`), and a concept, found
as a difference of means and erased by the smallest affine edit (`Eraser`).
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook.models.convnet import ConvNet
from flbook.training.problem import Params


def feature_matrix(w: Float[Tensor, "*E m c s s"]) -> Float[Tensor, "*E k k"]:
    r""":math:`W^\top W` of first-layer filters, each flattened to one row of :math:`k = c s^2` weights.

    Source: Radhakrishnan et al. (2024), the neural feature matrix.
    """
    rows = w.flatten(-3)
    return torch.einsum("...mk,...ml->...kl", rows, rows)


def patch_gradients(net: ConvNet, params: Params, x: Float[Tensor, "*#E n c h w"]) -> Float[Tensor, "*E C n p k"]:
    r"""Gradient of each output in every patch that a first-layer filter sees, as if patches could change by themselves.

    A patch acts through :math:`z = W x^{(p)}` alone, so its gradient is :math:`W^\top \partial f / \partial z`: for C
    outputs, n pictures, p places of a filter and the :math:`k = c s^2` pixels of a patch.
    """
    w = params["w0"].detach()
    with torch.no_grad():
        edge = torch.func.functional_call(net, params, (x,)).shape[-1:]
        places = [size - w.shape[-1] + 1 + 2 * net.padding for size in x.shape[-2:]]
    nudge = torch.zeros(*w.shape[:-4], x.shape[-4], w.shape[-4], *places, dtype=w.dtype, device=w.device)
    nudge.requires_grad_()
    f = torch.func.functional_call(net, {name: p.detach() for name, p in params.items()}, (x, nudge))
    by_z = [torch.autograd.grad(f[..., c].sum(), nudge, retain_graph=True)[0] for c in range(edge[0])]
    return torch.einsum("...cnmhw,...mk->...cnhwk", torch.stack(by_z, -5), w.flatten(-3)).flatten(-3, -2)


def gradient_outer_product(gradients: Float[Tensor, "*E C n p k"]) -> Float[Tensor, "*E k k"]:
    r"""Average gradient outer product :math:`G = \mathbb{E} \sum_c \nabla f_c \nabla f_c^\top`, over samples, places.

    Source: Radhakrishnan et al. (2024); over patches, Beaglehole et al. (2023).
    """
    count = gradients.shape[-3] * gradients.shape[-2]
    return torch.einsum("...cnpk,...cnpl->...kl", gradients, gradients) / count


def correlation(a: Float[Tensor, "*E k k"], b: Float[Tensor, "*E k k"]) -> Float[Tensor, "*E"]:
    """Pearson correlation between the off-diagonal entries of two matrices: diagonals agree in almost anything."""
    off = ~torch.eye(a.shape[-1], dtype=torch.bool, device=a.device)
    a, b = (x[..., off] - x[..., off].mean(-1, keepdim=True) for x in (a, b))
    return (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))


def trace_shares(matrix: Float[Tensor, "*E k k"], parts: int) -> Float[Tensor, "*E parts"]:
    """How the trace of a matrix is divided among equal consecutive parts of its axis, such as colour channels."""
    if matrix.shape[-1] % parts:
        raise ValueError(f"parts must divide {matrix.shape[-1]}, the size of the matrix; got {parts}")
    diagonal = matrix.diagonal(dim1=-2, dim2=-1)
    return diagonal.unflatten(-1, (parts, -1)).sum(-1) / diagonal.sum(-1, keepdim=True)


def kernel_alignment(h: Float[Tensor, "*E n k"], y: Float[Tensor, "*#E n C"]) -> Float[Tensor, "*E"]:
    r"""Centred alignment of the kernel :math:`K = h h^\top` with :math:`Y Y^\top`, between 0 and 1.

    .. math:: A = \frac{\langle \bar K, \bar Y \bar Y^\top\rangle}{\|\bar K\| \|\bar Y \bar Y^\top\|}

    The bars take means away. Computed in features, not in samples: :math:`\langle h h^\top, y y^\top\rangle = \|h^\top
    y\|^2`.

    Source: Cortes et al. (2012), Definition 4.
    """
    h, y = (x - x.mean(-2, keepdim=True) for x in (h, y))

    def square(a: Tensor, b: Tensor) -> Tensor:
        return torch.einsum("...nk,...nc->...kc", a, b).square().sum((-2, -1))

    return square(h, y) / (square(h, h) * square(y, y)).sqrt()


def one_hot(y: Int[Tensor, "*E n"], classes: int = 10) -> Float[Tensor, "*E n C"]:
    """Class numbers as rows of 0 and 1, in float64."""
    return torch.nn.functional.one_hot(y, classes).double()


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
