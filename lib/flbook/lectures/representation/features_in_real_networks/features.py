r"""Questions to a trained network: what its filters and its gradients have in common.

Each takes tensors with leading ensemble axes. A layer's feature matrix :math:`W^\top W` and its average gradient outer
product G (`feature_matrix`, `layer_matrices`, `correlation`). Concepts are found and erased by
`flbook.observe.read_out`.
"""

import math

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

    `flbook.observe.agop` finds the same for any network, at the price of its Jacobians; here a whole ensemble is
    followed through training, for which gates suffice.

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
