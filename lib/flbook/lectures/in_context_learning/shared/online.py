"""Estimators that read a prompt once, one example after the other."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.domains import Checked, Positive
from flbook.shapes import Context


@dataclass(frozen=True)
class LeastMeanSquares(Checked):
    r"""Online gradient descent, the least-mean-squares rule of adaptive filters, from :math:`\hat\beta_0 = 0`.

    .. math:: \hat\beta_l = \hat\beta_{l-1} + \eta_l\,(y_l - \langle\hat\beta_{l-1}, x_l\rangle)\,x_l

    Parameters
    ----------
    eta
        The step size; :math:`1/(d + 2)` shrinks the error of noiseless Gaussian inputs fastest.
    falling
        A step :math:`\eta_l = 1/(1/\eta + l - 1)` that falls, so that label noise averages out in the end.

    Raises
    ------
    ValueError
        If the step size is no number above 0.

    Source: Widrow and Hoff (1960).

    Examples
    --------
    >>> x, y = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([2.0, 4.0])
    >>> LeastMeanSquares(0.5)(Context(x, y), torch.tensor([[1.0, 1.0]]))  # the weights are (1, 2)
    tensor([3.])
    """

    eta: Positive
    falling: bool = False

    def __call__(self, context: Context, query: Float[Tensor, "*#E q d"]) -> Float[Tensor, "*E q"]:
        """Predictions at the queries."""
        weights = torch.zeros_like(context.x[..., :1, :].sum(-2))
        for step, (x, y) in enumerate(zip(context.x.unbind(-2), context.y.unbind(-1), strict=True)):
            eta = 1 / (1 / self.eta + step) if self.falling else self.eta
            residual = y - torch.einsum("...d,...d->...", x, weights)
            weights = weights + eta * residual[..., None] * x
        return torch.einsum("...d,...qd->...q", weights, query)
