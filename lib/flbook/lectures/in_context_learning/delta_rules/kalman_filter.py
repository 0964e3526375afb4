"""The best rule for a linear task that drifts, whatever it may remember."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.domains import Checked, Positive, Probability
from flbook.shapes import Context


@dataclass(frozen=True)
class KalmanFilter(Checked):
    r"""Bayes' rule for `DriftingPrompts`: the mean of the task and its covariance P, example by example.

    .. math:: k_l = \frac{P x_l}{x_l^\top P x_l + \sigma_y^2}, \qquad
              \hat\beta \leftarrow \rho\,\big(\hat\beta + (y_l - \langle\hat\beta, x_l\rangle)\,k_l\big), \qquad
              P \leftarrow \rho^2(P - k_l x_l^\top P) + (1 - \rho^2)I

    At :math:`\rho = 1` this is recursive least squares, and its end is ridge regression.

    Parameters
    ----------
    memory
        :math:`\rho`.
    noise
        Standard deviation :math:`\sigma_y`.

    Raises
    ------
    ValueError
        If the noise is no number above 0, or the memory no number from 0 to 1.

    Source: Kalman (1960).

    Examples
    --------
    >>> x, y = torch.eye(2), torch.tensor([2.0, 4.0])
    >>> KalmanFilter(1.0, 1.0)(Context(x, y), torch.ones(1, 2))  # half of each label
    tensor([3.])
    """

    memory: Probability
    noise: Positive

    def steps(self, context: Context) -> Iterator[tuple[Float[Tensor, "*E d"], Float[Tensor, "*E d d"]]]:
        """Mean and covariance of the task before every example, and after the last."""
        d = context.x.shape[-1]
        spread = torch.eye(d, dtype=context.x.dtype, device=context.x.device).expand(*context.y.shape[:-1], d, d)
        fresh, mean = (1 - self.memory**2) * spread, torch.zeros_like(context.x[..., :1, :].sum(-2))
        yield mean, spread
        for x, y in zip(context.x.unbind(-2), context.y.unbind(-1), strict=True):
            along = torch.einsum("...de,...e->...d", spread, x)
            gain = along / ((along * x).sum(-1) + self.noise**2)[..., None]
            mean = self.memory * (mean + (y - (mean * x).sum(-1))[..., None] * gain)
            spread = self.memory**2 * (spread - gain[..., :, None] * along[..., None, :]) + fresh
            yield mean, spread

    def __call__(self, context: Context, query: Float[Tensor, "*#E q d"]) -> Float[Tensor, "*E q"]:
        """Predictions at the queries."""
        ((mean, _),) = deque(self.steps(context), maxlen=1)  # the last step
        return torch.einsum("...d,...qd->...q", mean, query)
