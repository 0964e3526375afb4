"""The Hessian of a loss, without ever forming it: its largest eigenvalue, its trace, its value along a direction."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.func import grad, vjp

from flbook import rng
from flbook.domains import Count, Natural, Positive, checked_arguments
from flbook.observe.functions import derivable

Params = dict[str, Tensor]
Loss = Callable[[Params], Tensor]


class TopEigenvalue(NamedTuple):
    """The largest eigenvalue of a Hessian."""

    value: float
    residual: float  # |Hv - value v| of a unit vector v: an eigenvalue lies as near
    vector: Params  # of length 1


class Estimate(NamedTuple):
    """A mean over draws and its 95 % interval."""

    value: float
    interval: tuple[float, float]


def products(loss: Loss, params: Params) -> Callable[[Params], Params]:
    r""":math:`v \mapsto \nabla^2 L(\theta)\,v`, exact, each at the price of about one gradient.

    The graph of the gradient is made once and kept; its derivative is a row times the Hessian, which is symmetric.

    Parameters
    ----------
    loss
        A function of the parameters that returns one number.
    params
        Where.

    Returns
    -------
    Callable
        Takes and returns what is like `params`.
    """
    with derivable():
        times = vjp(grad(loss), params)[1]
    return lambda direction: times(direction)[0]


@checked_arguments
def sharpness(loss: Loss, params: Params, steps: Count = 40, tol: Positive = 1e-6, seed: Natural = 0) -> TopEigenvalue:
    r"""The largest eigenvalue of the Hessian, by Lanczos' method with full reorthogonalisation.

    Gradient descent with the rate :math:`\eta` leaves a minimum where it exceeds :math:`2/\eta`.

    Parameters
    ----------
    loss
        A function of the parameters that returns one number, such as
        ``lambda params: ((f(params, x) - y) ** 2).mean()``.
    params
        Where.
    steps
        Products with the Hessian at most; as many vectors are held.
    tol
        Residual, relative to the eigenvalue, at which it stops.
    seed
        Of the first direction.

    Returns
    -------
    TopEigenvalue
        The eigenvalue, its residual and its vector.

    Raises
    ------
    ValueError
        If the loss is not one number.

    Source: Lanczos (1950); Cohen et al. (2021) for what the number says of training.

    Examples
    --------
    >>> loss = lambda params: (torch.tensor([3.0, 1.0]) * params["w"] ** 2).sum() / 2
    >>> round(sharpness(loss, {"w": torch.zeros(2)}).value, 5)
    3.0
    """
    _one_number(loss, params)
    (flat, back), times = _vector(params), products(loss, params)
    basis = [torch.nn.functional.normalize(_gaussian(flat, seed, "first direction"), dim=0)]
    diagonal: list[Tensor] = []
    beside: list[Tensor] = []
    for step in range(min(steps, len(flat))):
        image = _vector(times(back(basis[-1])))[0]
        diagonal.append(image @ basis[-1])
        for _ in range(2):  # once would leave rounding errors that grow
            held = torch.stack(basis)
            image = image - held.T @ (held @ image)
        rest = image.norm()
        small = torch.diag(torch.stack(diagonal))
        if beside:
            small = small + torch.diag(torch.stack(beside), 1) + torch.diag(torch.stack(beside), -1)
        values, vectors = torch.linalg.eigh(small)
        value, residual = values[-1], (rest * vectors[-1, -1]).abs()
        if residual <= tol * value.abs() or step + 1 == min(steps, len(flat)):
            break
        basis.append(image / rest)
        beside.append(rest)
    vector = torch.nn.functional.normalize(torch.stack(basis).T @ vectors[:, -1], dim=0)
    return TopEigenvalue(value.item(), residual.item(), back(vector))


@checked_arguments
def hessian_trace(loss: Loss, params: Params, draws: Count = 32, seed: Natural = 0) -> Estimate:
    r"""The trace of the Hessian, by Hutchinson's estimator.

    .. math:: \mathrm{tr}\,H = E\,z^\top H z, \qquad z_j = \pm1 \text{ at equal odds}

    Parameters
    ----------
    loss, params
        As for `sharpness`.
    draws
        Of z, at least 2.
    seed
        Of the draws.

    Returns
    -------
    Estimate
        Mean and 95 % interval over the draws.

    Raises
    ------
    ValueError
        If the loss is not one number, or there is a single draw.

    Source: Hutchinson (1989).

    Examples
    --------
    >>> params = {"w": torch.zeros(3), "b": torch.zeros(1)}
    >>> hessian_trace(lambda p: (p["w"] ** 2).sum() + 2 * (p["b"] ** 2).sum(), params).value  # 3 times 2, and 4
    10.0
    """
    _one_number(loss, params)
    if draws < 2:
        raise ValueError(f"draws must be at least 2, or there is no interval; got {draws}")
    flat, back = _vector(params)
    signs = [_gaussian(flat, seed, f"signs {k}").sign() for k in range(draws)]
    times = products(loss, params)
    values = torch.stack([z @ _vector(times(back(z)))[0] for z in signs])
    mean, error = values.mean().item(), values.std().item() / math.sqrt(draws)
    return Estimate(mean, (mean - 1.96 * error, mean + 1.96 * error))


@checked_arguments
def curvature_along(loss: Loss, params: Params, direction: Params) -> float:
    r"""The second derivative of the loss along a direction of any length, :math:`v^\top H v/|v|^2`.

    Parameters
    ----------
    loss, params
        As for `sharpness`.
    direction
        v, by the names of `params`.

    Returns
    -------
    float
        The curvature.

    Raises
    ------
    ValueError
        If the loss is not one number, or the direction is 0 or has other names.

    Examples
    --------
    >>> def loss(p):
    ...     return p["w"][0] ** 2 + 3 * p["w"][1] ** 2
    >>> [curvature_along(loss, {"w": torch.ones(2)}, {"w": 5 * v}) for v in torch.eye(2)]
    [2.0, 6.0]
    """
    _one_number(loss, params)
    if direction.keys() != params.keys():
        raise ValueError(f"direction must name the parameters {', '.join(params)}; got {', '.join(direction)}")
    v, _ = _vector({name: direction[name] for name in params})
    if not v.any():
        raise ValueError("direction must not be 0")
    return (v @ _vector(products(loss, params)(direction))[0] / (v @ v)).item()


def _vector(params: Params) -> tuple[Tensor, Callable[[Tensor], Params]]:
    """Parameters as one vector, and the way back."""
    sizes = [p.numel() for p in params.values()]

    def back(flat: Tensor) -> Params:
        return {name: part.reshape(p.shape) for (name, p), part in
                zip(params.items(), flat.split(sizes), strict=True)}  # fmt: skip

    return torch.cat([p.reshape(-1) for p in params.values()]), back


def _gaussian(like: Tensor, seed: int, role: str) -> Tensor:
    """Standard normal numbers of the shape, dtype and place of a tensor."""
    return rng.normal(tuple(like.shape), seed, role).to(like)


def _one_number(loss: Loss, params: Params) -> None:
    """Refuse a loss that is no number."""
    value = loss(params)
    if value.numel() != 1:
        raise ValueError(f"loss must return one number; got shape {tuple(value.shape)}")
