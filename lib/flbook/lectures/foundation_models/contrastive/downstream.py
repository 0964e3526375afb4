"""Downstream: a logistic regression on features, and how often it is right about fresh ones."""

import torch
from jaxtyping import Float
from torch import Tensor


def logistic_regression(
    h: Float[Tensor, "*E n k"], y: Float[Tensor, "*#E n"], ridge: float = 1.0, steps: int = 12
) -> Float[Tensor, "*E l"]:
    r"""Weights, and an intercept behind them, that minimise :math:`\sum_i\log(1+e^{-y_if_i}) + \frac\lambda2\|w\|^2`.

    Newton's method, in float64. ridge: :math:`\lambda`; 1 is what scikit-learn takes unless told otherwise.

    Examples
    --------
    >>> h = torch.tensor([[1.0], [2.0], [-1.0], [-2.0]])
    >>> bool(logistic_regression(h, torch.tensor([1.0, 1.0, -1.0, -1.0]))[0] > 0)
    True
    """
    x, y = _with_intercept(h), y.double()
    shrink = torch.ones_like(x[..., 0, :])
    shrink[..., -1] = 1e-9  # the intercept is free, but a step is defined where all samples are alike
    w = torch.zeros_like(shrink * ridge)
    for _ in range(steps):
        slope = torch.sigmoid(-y * torch.einsum("...k,...nk->...n", w, x))
        gradient = ridge * shrink * w - torch.einsum("...n,...nk->...k", y * slope, x)
        curvature = x.mT @ ((slope * (1 - slope))[..., None] * x) + ridge * torch.diag_embed(shrink)
        w = w - torch.linalg.solve(curvature, gradient)
    return w


def accuracy(w: Float[Tensor, "*E l"], plus: Tensor, minus: Tensor) -> Float[Tensor, "*E"]:
    """The share of features ``(*E, points, k)`` of label +1 and of label -1 that the regression gets right."""
    right = [(sign * torch.einsum("...k,...nk->...n", w, _with_intercept(h)) > 0).double().mean(-1)
             for sign, h in ((1, plus), (-1, minus))]
    return (right[0] + right[1]) / 2


def _with_intercept(h: Tensor) -> Tensor:
    return torch.cat([h, torch.ones_like(h[..., :1])], -1).double()
