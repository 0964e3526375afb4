"""Estimators that read a prompt once, one example after the other."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.shapes import Context


@dataclass(frozen=True)
class LeastMeanSquares:
    r"""Online gradient descent, the least-mean-squares rule of adaptive filters, from :math:`\hat\beta_0 = 0`.

    .. math:: \hat\beta_l = \hat\beta_{l-1} + \eta_l\,(y_l - \langle\hat\beta_{l-1}, x_l\rangle)\,x_l

    eta: the step size; :math:`1/(d + 2)` shrinks the error of noiseless Gaussian inputs fastest. falling: a step
    :math:`\eta_l = 1/(1/\eta + l - 1)` that falls, so that label noise averages out in the end.

    Raises ValueError if eta is not positive. Source: Widrow and Hoff (1960).
    """

    eta: float
    falling: bool = False

    def __post_init__(self):
        if not 0 < self.eta < float("inf"):
            raise ValueError(f"eta must be positive and finite, a step size; got {self.eta}")

    def __call__(self, context: Context, query: Float[Tensor, "*#E q d"]) -> Float[Tensor, "*E q"]:
        """Predictions at the queries."""
        weights = torch.zeros_like(context.x[..., :1, :].sum(-2))
        for step, (x, y) in enumerate(zip(context.x.unbind(-2), context.y.unbind(-1), strict=True)):
            eta = 1 / (1 / self.eta + step) if self.falling else self.eta
            residual = y - torch.einsum("...d,...d->...", x, weights)
            weights = weights + eta * residual[..., None] * x
        return torch.einsum("...qd,...d->...q", query, weights)
