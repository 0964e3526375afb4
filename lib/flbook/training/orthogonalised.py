"""Orthogonalised matrices: every singular value becomes one, exactly or by a few steps of an odd polynomial."""

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.domains import Count, checked_arguments

# Steep at 0, so that small singular values grow fast; large ones end between 0.68 and 1.21 and not at 1. Jordan (2024).
COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def polar_factor(matrix: Float[Tensor, "*E m n"]) -> Float[Tensor, "*E m n"]:
    r"""The polar factor :math:`UV^\top` of :math:`USV^\top`: all singular values 1, and 0 where they are 0.

    Parameters
    ----------
    matrix
        One matrix or more, shape ``(*E, m, n)``.

    Returns
    -------
    Tensor
        The nearest matrix with orthonormal rows or columns, in the same shape.

    Source: Higham (2008), Functions of Matrices, chapter 8.

    Examples
    --------
    >>> polar_factor(torch.tensor([[3.0, 0.0], [0.0, -0.2]])).round(decimals=5).tolist()
    [[1.0, 0.0], [0.0, -1.0]]
    """
    u, s, vt = torch.linalg.svd(matrix, full_matrices=False)
    floor = max(matrix.shape[-2:]) * torch.finfo(matrix.dtype).eps
    kept = (s > floor * s[..., :1]).to(matrix)
    return (u * kept[..., None, :]) @ vt


@checked_arguments
def newton_schulz(matrix: Float[Tensor, "*E m n"], steps: Count = 5) -> Float[Tensor, "*E m n"]:
    r"""Muon's approximation of the polar factor, which needs products of matrices only.

    .. math:: X_0 = G/\|G\|_F, \qquad X_{k+1} = aX_k + bX_kX_k^\top X_k + c(X_kX_k^\top)^2X_k

    Each singular value y goes to :math:`ay + by^3 + cy^5` with a = 3.4445, b = -4.7750, c = 2.0315; so k steps multiply
    a small one by at most :math:`a^k`, and a large one ends between 0.68 and 1.21. A matrix of zeros stays.

    Parameters
    ----------
    matrix
        One matrix or more, shape ``(*E, m, n)``.
    steps
        How often, 1 at least.

    Returns
    -------
    Tensor
        The result, in the same shape.

    Raises
    ------
    ValueError
        If `steps` is no whole number of at least 1.

    Source: Jordan et al. (2024), Muon.

    Examples
    --------
    >>> once = newton_schulz(torch.tensor([[3.0, 0.0], [0.0, 4.0]]), steps=1)
    >>> [round(value, 4) for value in once.diagonal().tolist()]
    [1.1933, 0.9765]
    """
    wide = matrix if matrix.shape[-2] <= matrix.shape[-1] else matrix.mT
    length = torch.linalg.matrix_norm(wide, keepdim=True)
    x = wide / length.clamp(min=torch.finfo(wide.dtype).tiny)
    a, b, c = COEFFICIENTS
    for _ in range(steps):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return x if wide is matrix else x.mT
