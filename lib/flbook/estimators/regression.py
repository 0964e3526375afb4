"""Regression and classification of one sample: the weights that data determine."""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import nnls
from torch import Tensor

from flbook.domains import Positive, require

ITERATIONS = 1000  # of conjugate gradients; a kernel matrix with a ridge takes some dozens


def averaging(x: Float[Tensor, "*E n d"], observed: Float[Tensor, "*E n"]) -> Float[Tensor, "*E d"]:
    r"""The averaging classifier :math:`w = \sum_i \tilde y_i x_i`; it predicts the sign of :math:`\langle w, x\rangle`.

    Parameters
    ----------
    x
        Samples, shape ``(*E, n, d)``.
    observed
        Labels :math:`\tilde y_i`, shape ``(*E, n)``.

    Returns
    -------
    Tensor
        Weights w, shape ``(*E, d)``.

    Source: derived in the lecture on the data model.

    Examples
    --------
    >>> averaging(torch.tensor([[1.0, 2.0], [3.0, -1.0]]), torch.tensor([1.0, -1.0]))
    tensor([-2.,  3.])
    """
    return torch.einsum("...n,...nd->...d", observed, x)


def weighted_second_moment(x: Float[Tensor, "*E n d"], weight: Float[Tensor, "*E n"]) -> Float[Tensor, "*E d d"]:
    r"""The matrix :math:`\frac1n\sum_i T_i x_i x_i^\top`; its top eigenvector is the spectral estimate of a direction.

    Parameters
    ----------
    x
        Samples, shape ``(*E, n, d)``.
    weight
        Weights :math:`T_i`, shape ``(*E, n)``.

    Returns
    -------
    Tensor
        Shape ``(*E, d, d)``.

    Source: Lu and Li (2020), equation (2).
    """
    return torch.einsum("...n,...nd,...nc->...dc", weight / x.shape[-2], x, x)


def min_norm(features: Float[Tensor, "*#E n N"], y: Float[Tensor, "*#E n"]) -> Float[Tensor, "*E N"]:
    r"""Least squares on N features; of all solutions (there are many if N > n) the shortest.

    .. math:: \hat a = \lim_{\lambda\to 0} \arg\min_a \|y - \Phi a\|^2 + \lambda\|a\|^2 = \Phi^+ y

    By one QR decomposition of :math:`\Phi`, or of :math:`\Phi^\top` if N > n. No singular value is cut off, however
    small: the cut-off of ``lstsq`` and ``pinv`` is a ridge that nobody asked for, and it flattens the peak at N = n.

    Parameters
    ----------
    features
        :math:`\Phi`, shape ``(*E, n, N)``.
    y
        Labels, shape ``(*E, n)``.

    Returns
    -------
    Tensor
        Weights :math:`\hat a`, shape ``(*E, N)``.

    Raises
    ------
    ValueError
        If the features (samples, if N > n) are linearly dependent to rounding.

    Examples
    --------
    >>> weights = min_norm(torch.tensor([[3.0, 4.0]]), torch.tensor([5.0]))  # the shortest with 3 a + 4 b = 5
    >>> bool((weights - torch.tensor([0.6, 0.8])).abs().max() < 1e-6)
    True
    """
    n, size = features.shape[-2:]
    q, r = torch.linalg.qr(features if size <= n else features.mT)
    diagonal = r.diagonal(dim1=-2, dim2=-1).abs()
    if bool((~(diagonal.amin(-1) > torch.finfo(r.dtype).eps * diagonal.amax(-1))).any()):
        raise ValueError(f"features of shape {tuple(features.shape)} must have full rank; some are linear combinations "
                         "of others to rounding, so there is no minimum-norm solution without a cut-off")
    if size <= n:
        return torch.linalg.solve_triangular(r, torch.einsum("...n,...nk->...k", y, q)[..., None], upper=True)[..., 0]
    inner = torch.linalg.solve_triangular(r.mT, y[..., None], upper=False)[..., 0]
    return torch.einsum("...n,...kn->...k", inner, q)


def ridge(
    features: Float[Tensor, "*#E n N"], y: Float[Tensor, "*#E n"], lam: float | tuple[float, ...]
) -> Float[Tensor, "*EL N"]:
    r"""Ridge regression on N features, for one ridge or for a whole scan at the price of one.

    .. math:: \hat a_\lambda = \arg\min_a \frac1n \|y - \Phi a\|^2 + \frac{\lambda}{N}\|a\|^2

    One eigen-decomposition of :math:`\Phi^\top\Phi/n`, or of :math:`\Phi\Phi^\top/n` if that is smaller, serves all of
    them.

    Parameters
    ----------
    features
        :math:`\Phi`, shape ``(*E, n, N)``.
    y
        Labels, shape ``(*E, n)``.
    lam
        A ridge above 0, or a tuple of them.

    Returns
    -------
    Tensor
        Weights of shape ``(*E, N)``, for a tuple ``(*E, lam, N)``.

    Raises
    ------
    ValueError
        If a ridge is no number above 0.

    Source: Ba et al. (2022), Section 2.1.

    Examples
    --------
    >>> features, y = torch.eye(2), torch.tensor([1.0, 2.0])
    >>> ridge(features, y, (1.0, 3.0)).shape
    torch.Size([2, 2])
    """
    n, size = features.shape[-2:]
    shift = _scan(lam, features) / size
    if size <= n:
        gram = torch.einsum("...nk,...nl->...kl", features, features) / n
        weights = _shifted_solve(gram, torch.einsum("...n,...nk->...k", y, features) / n, shift)
    else:
        gram = torch.einsum("...nk,...mk->...nm", features, features) / n
        weights = torch.einsum("...nk,...ln->...lk", features, _shifted_solve(gram, y / n, shift))
    return weights if isinstance(lam, tuple) else weights[..., 0, :]


def _shifted_solve(
    matrix: Float[Tensor, "*#E k k"], target: Float[Tensor, "*#E k"], shift: Float[Tensor, " lam"]
) -> Float[Tensor, "*E lam k"]:
    """Solutions of (matrix + shift I) v = target for every shift; matrix symmetric and not negative."""
    if len(shift) == 1:  # a Cholesky factor costs a tenth of the eigenvectors
        ridge = shift * torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
        return torch.cholesky_solve(target[..., None], torch.linalg.cholesky(matrix + ridge)).mT
    values, vectors = torch.linalg.eigh(matrix)
    along = torch.einsum("...k,...ks->...s", target, vectors)[..., None, :]
    return torch.einsum("...ks,...ls->...lk", vectors, along / (values[..., None, :] + shift[:, None]))


def kernel_ridge(
    kernel: Float[Tensor, "*#E n n"], y: Float[Tensor, "*#E n"], lam: float | tuple[float, ...], rtol: float = 1e-8
) -> Float[Tensor, "*EL n"]:
    r"""Kernel ridge regression: the weights :math:`\alpha_\lambda = (K + n\lambda I)^{-1} y` of the n samples.

    They minimise :math:`\frac1n\sum_i (y_i - f(x_i))^2 + \lambda\|f\|^2` with :math:`f(x) = \sum_i \alpha_i k(x, x_i)`.
    All ridges are solved together by conjugate gradients to a relative residual `rtol`: some dozens of products with K,
    where a decomposition would take n of them.

    Parameters
    ----------
    kernel
        K, shape ``(*E, n, n)``.
    y
        Labels, shape ``(*E, n)``.
    lam
        A ridge above 0, or a tuple of them.
    rtol
        Of the residual.

    Returns
    -------
    Tensor
        Weights of shape ``(*E, n)``, for a tuple ``(*E, lam, n)``.

    Raises
    ------
    ValueError
        If a ridge is no number above 0, or 1000 iterations do not suffice, because K is nearly singular and the ridge
        too small.

    Examples
    --------
    >>> kernel_ridge(torch.eye(2), torch.tensor([2.0, 4.0]), 0.5)
    tensor([1., 2.])
    """
    shift = _scan(lam, kernel)[:, None] * y.shape[-1]
    residual = y[..., None, :].expand(*y.shape[:-1], len(shift), y.shape[-1])
    alpha, along = torch.zeros_like(residual), residual
    square = first = residual.square().sum(-1, keepdim=True)
    tiny = torch.finfo(y.dtype).tiny
    for iteration in range(ITERATIONS):
        image = torch.einsum("...lm,...mn->...ln", along, kernel) + shift * along
        step = square / (along * image).sum(-1, keepdim=True).clamp(min=tiny)
        alpha, residual = alpha + step * along, residual - step * image
        before, square = square, residual.square().sum(-1, keepdim=True)
        along = residual + square / before.clamp(min=tiny) * along
        if iteration % 8 == 7 and not bool((~(square <= rtol**2 * first)).any()):  # a NaN is not exact enough
            return alpha if isinstance(lam, tuple) else alpha[..., 0, :]
    raise ValueError(f"lam must be larger for a kernel matrix so nearly singular; got {lam}")


class TunedRidge(NamedTuple):
    """Kernel ridge regression with the ridge of the least leave-one-out error."""

    predictions: Float[Tensor, "p ..."]
    lam: float  # of (K + lam I), K centred
    error: float  # mean square of the errors on samples left out


def tuned_kernel_ridge(
    kernel: Float[Tensor, "n n"], cross: Float[Tensor, "p n"], y: Float[Tensor, "n ..."]
) -> TunedRidge:
    r"""Kernel ridge regression with an intercept, its ridge chosen by leaving out one sample at a time.

    .. math:: e_i = \frac{y_i - \hat y_i}{1 - H_{ii}}, \qquad H = \tfrac1n 1 1^\top + K_c (K_c + \lambda I)^{-1},
              \quad K_c = C K C,\ C = I - \tfrac1n 1 1^\top

    is the error on sample i of the fit to the others, exactly, from one eigen-decomposition for all ridges: a quarter
    of a decade apart, from 1e-8 to 1e4 times the mean eigenvalue.

    Parameters
    ----------
    kernel, cross
        K among the n samples, and between p new ones and them.
    y
        Labels, shape ``(n,)`` or ``(n, q)``.

    Returns
    -------
    TunedRidge
        Predictions, shape ``(p,)`` or ``(p, q)``, in float64, and what was chosen.

    Raises
    ------
    ValueError
        If there are fewer than three samples, or the kernel is the same between all of them.

    Source: Craven and Wahba (1979); Allen (1974) for the errors.

    Examples
    --------
    >>> x = torch.linspace(-1, 1, 9).double()[:, None]
    >>> found = tuned_kernel_ridge(x @ x.T, 2 * x[:2] @ x.T, 3 * x[:, 0] + 1)
    >>> [round(value, 4) for value in found.predictions.tolist()]
    [-5.0, -3.5]
    """
    kernel, cross, target = (one.double() for one in (kernel, cross, y))
    n = len(kernel)
    mean, columns = target.mean(0), kernel.mean(0)
    centred = kernel - columns - columns[:, None] + kernel.mean()
    size = (centred.trace() / n).item()
    if n < 3 or not size > 1e-12 * kernel.abs().max().item():
        raise ValueError(f"leaving one out needs three samples at least, and a kernel that tells them apart; got {n} "
                         f"samples and a kernel whose centred trace is {size * n:g}")
    values, vectors = torch.linalg.eigh(centred)
    along = vectors.T @ (target - mean).reshape(n, -1)
    ridges = size * torch.logspace(-8, 4, 49, dtype=torch.float64, device=kernel.device)
    shrunk = ridges[:, None] / (values.clamp(min=0) + ridges[:, None])  # (ridges, n): what a fit leaves of each part
    missed = torch.einsum("ik,lk,kq->liq", vectors, shrunk, along)
    left = torch.einsum("ik,lk->li", vectors.square(), shrunk) - 1 / n  # 1 - H_ii
    errors = (missed / left[..., None]).square().sum(-1).mean(-1)
    best = int(errors.argmin())
    weights = vectors @ (along / (values.clamp(min=0) + ridges[best])[:, None])
    apart = cross - cross.mean(1, keepdim=True) - columns + kernel.mean()
    return TunedRidge(mean + (apart @ weights).reshape(len(cross), *target.shape[1:]), ridges[best].item(),
                      errors[best].item())


def _scan(lam: float | tuple[float, ...], like: Tensor) -> Float[Tensor, " lam"]:
    """The ridges as a vector."""
    require("lam", lam, Positive | tuple[Positive, ...])
    return torch.tensor(lam if isinstance(lam, tuple) else (lam,), dtype=like.dtype, device=like.device)


def hard_margin(x_x: Float[Tensor, "*E n n"], observed: Float[Tensor, "*E n"]) -> Float[Tensor, "*E n"]:
    r"""The hard-margin support vector machine without intercept, as coefficients c of :math:`w_* = \sum_i c_i x_i`.

    .. math:: w_* = \arg\min \|w\|^2 \quad\text{subject to}\quad \tilde y_i \langle w, x_i\rangle \ge 1

    from the inner products of the samples alone, in float64; :math:`\|w_*\|^2 = \sum_i \tilde y_i c_i`.
    Solved exactly as a problem of least distance, one active set a member.

    Parameters
    ----------
    x_x
        Inner products of the samples, shape ``(*E, n, n)``.
    observed
        Labels, -1 or +1, shape ``(*E, n)``.

    Returns
    -------
    Tensor
        Coefficients c, shape ``(*E, n)``.

    Raises
    ------
    ValueError
        If the samples are linearly dependent, when there may be no such w.

    Source: Lawson and Hanson (1974), chapter 23.

    Examples
    --------
    >>> c = hard_margin(torch.diag(torch.tensor([4.0, 1.0])), torch.tensor([1.0, -1.0]))
    >>> bool((c - torch.tensor([0.25, -1.0])).abs().max() < 1e-6)
    True
    """
    signed = observed[..., :, None] * x_x * observed[..., None, :]
    try:
        rows = torch.linalg.cholesky(signed.double())
    except torch.linalg.LinAlgError:
        raise ValueError(f"x_x must be positive definite, the samples linearly independent (n <= d); its shape is "
                         f"{tuple(x_x.shape)}") from None
    n = x_x.shape[-1]
    flat = rows.reshape(-1, n, n).cpu().numpy()
    found = torch.from_numpy(np.stack([_least_distance(one) for one in flat])).to(observed)
    return observed * found.reshape(*signed.shape[:-2], n)


def _least_distance(rows: np.ndarray) -> np.ndarray:
    """Multipliers of the shortest u with ``rows @ u >= 1``."""
    a = np.vstack([rows.T, np.ones(len(rows))])
    target = np.zeros(len(a))
    target[-1] = 1
    u, _ = nnls(a, target, maxiter=30 * len(rows))
    return u / (target - a @ u)[-1]
