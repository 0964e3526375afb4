"""What is made of Jacobians: the average gradient outer product, the tangent kernel, and how alike two kernels are.

Jacobians are taken sample by sample in chunks, so memory grows with a chunk and with what is returned, not with n.
"""

from functools import reduce

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import jacrev, vmap

from flbook.domains import Count, checked_arguments
from flbook.observe.functions import Network, outputs, single


@checked_arguments
def agop(f: Network, params: dict[str, Tensor], x: Tensor, chunk: Count = 256) -> Float[Tensor, "d d"]:
    r"""Average gradient outer product: along which inputs does a network vary?

    .. math:: M = \frac1n\sum_{i=1}^n J(x_i)^\top J(x_i), \qquad J = \partial f/\partial x \in \mathbb R^{k\times d}

    Parameters
    ----------
    f, params
        The network.
    x
        Inputs, shape ``(n, ...)``; d numbers each.
    chunk
        Inputs whose Jacobians are held at once.

    Returns
    -------
    Tensor
        Symmetric and positive semidefinite, shape ``(d, d)``.

    Raises
    ------
    ValueError
        If there is no input, or the outputs are neither ``(n,)`` nor ``(n, k)``.

    Source: Radhakrishnan et al. (2024).

    Examples
    --------
    >>> w = torch.tensor([1.0, 2.0])
    >>> agop(lambda params, x: x @ params["w"], {"w": w}, torch.randn(7, 2)).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    _check(f, params, x)
    jacobian = vmap(jacrev(single(f), argnums=1), in_dims=(None, 0))

    def part(some: Tensor) -> Tensor:
        rows = jacobian(params, some).flatten(2).flatten(0, 1)  # (n k, d)
        return rows.T @ rows

    return reduce(torch.add, map(part, x.split(chunk))) / len(x)


@checked_arguments
def ntk(f: Network, params: dict[str, Tensor], x: Tensor, other: Tensor | None = None, chunk: Count = 64
        ) -> Float[Tensor, "n m"]:
    r"""The empirical neural tangent kernel, summed over the outputs.

    .. math:: K(x, x') = \sum_{c=1}^k \big\langle\nabla_\theta f_c(x), \nabla_\theta f_c(x')\big\rangle

    Parameters
    ----------
    f, params
        The network.
    x, other
        Inputs, n and m of them; the same if `other` is None.
    chunk
        Inputs whose gradients are held at once, two times.

    Returns
    -------
    Tensor
        Shape ``(n, m)``.

    Raises
    ------
    ValueError
        If there is no input, or the outputs are neither ``(n,)`` nor ``(n, k)``.

    Source: Jacot, Gabriel and Hongler (2018).

    Examples
    --------
    >>> x = torch.eye(2)
    >>> ntk(lambda params, x: x @ params["w"], {"w": torch.ones(2)}, x).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    _check(f, params, x)
    gradients = vmap(jacrev(single(f)), in_dims=(None, 0))

    def flat(some: Tensor) -> list[Tensor]:
        return [g.flatten(1) for g in gradients(params, some).values()]  # (n, k p) for each parameter

    def block(left: list[Tensor], right: list[Tensor]) -> Tensor:
        return reduce(torch.add, [a @ b.T for a, b in zip(left, right, strict=True)])

    if other is not None:
        return torch.cat([torch.cat([block(left, flat(more)) for more in other.split(chunk)], 1)
                          for left in map(flat, x.split(chunk))])
    parts = x.split(chunk)
    blocks: dict[tuple[int, int], Tensor] = {}
    for i, some in enumerate(parts):  # by symmetry half of the gradients need not be taken again
        left = flat(some)
        blocks[i, i] = block(left, left)
        for j in range(i):
            blocks[i, j] = block(left, flat(parts[j]))
            blocks[j, i] = blocks[i, j].T
    return torch.cat([torch.cat([blocks[i, j] for j in range(len(parts))], 1) for i in range(len(parts))])


@checked_arguments
def alignment(kernel: Float[Tensor, "n n"], other: Float[Tensor, "n n"], centred: bool = False) -> Tensor:
    r"""The cosine between two kernel matrices, or between a kernel and the labels' yy'.

    .. math:: A = \frac{\langle K, K'\rangle_F}{\|K\|_F\,\|K'\|_F}

    Parameters
    ----------
    kernel, other
        Symmetric matrices, shape ``(n, n)``.
    centred
        Whether rows and columns are given the mean 0 first, which makes it the centred kernel alignment (linear CKA
        for two Gram matrices).

    Returns
    -------
    Tensor
        A number, from 0 to 1 for positive semidefinite matrices.

    Raises
    ------
    ValueError
        If the shapes differ.

    Source: Cristianini et al. (2001); Cortes, Mohri and Rostamizadeh (2012) for the centred one.

    Examples
    --------
    >>> y = torch.tensor([1.0, -1.0])
    >>> round(alignment(torch.eye(2), torch.outer(y, y)).item(), 4)  # half of the kernel's square length
    0.7071
    """
    if kernel.shape != other.shape or kernel.ndim != 2:
        raise ValueError(f"kernels must be matrices of one shape; got {tuple(kernel.shape)} and {tuple(other.shape)}")
    if centred:
        kernel, other = centred_kernel(kernel), centred_kernel(other)
    return (kernel * other).sum() / (kernel.norm() * other.norm())


def centred_kernel(kernel: Float[Tensor, "n n"]) -> Float[Tensor, "n n"]:
    r"""The kernel of features less their mean, :math:`CKC` with :math:`C = I - \tfrac1n 11^\top`.

    Parameters
    ----------
    kernel
        Shape ``(n, n)``.

    Returns
    -------
    Tensor
        Rows and columns of mean 0.
    """
    return kernel - kernel.mean(0) - kernel.mean(1, keepdim=True) + kernel.mean()


def _check(f: Network, params: dict[str, Tensor], x: Tensor) -> None:
    """Refuse no inputs, and outputs of another shape than those of samples."""
    if x.ndim < 2 or not len(x):
        raise ValueError(f"x must hold at least one input, shape (n, ...); got shape {tuple(x.shape)}")
    outputs(f, params, x[:1])
