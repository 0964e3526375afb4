"""Test-time training on a prompt, chunk by chunk."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.domains import Checked, Count, Positive
from flbook.shapes import Context


@dataclass(frozen=True)
class ChunkedDescent(Checked):
    r"""One gradient step for each chunk of b examples, on the chunk's mean squared error, from :math:`\hat\beta = 0`.

    .. math:: \hat\beta \leftarrow \hat\beta + \frac\eta b\sum_{l \in \mathrm{chunk}}
              (y_l - \langle\hat\beta, x_l\rangle)\,x_l

    One example to a chunk is the delta rule, the whole prompt in one chunk linear attention. A last chunk may be
    shorter; its sum, too, is divided by b.

    Parameters
    ----------
    eta
        The step size.
    chunk
        b.

    Raises
    ------
    ValueError
        If a number is outside its domain.

    Examples
    --------
    >>> x, y = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([2.0, 4.0])
    >>> ChunkedDescent(1.0, chunk=2)(Context(x, y), torch.tensor([[1.0, 1.0]]))  # the mean of y x is (1, 2)
    tensor([3.])
    """

    eta: Positive
    chunk: Count = 1

    def __call__(self, context: Context, query: Float[Tensor, "*#E q d"]) -> Float[Tensor, "*E q"]:
        """Predictions at the queries."""
        weights = torch.zeros_like(context.x[..., :1, :].sum(-2))
        for x, y in zip(context.x.split(self.chunk, -2), context.y.split(self.chunk, -1), strict=True):
            residual = y - torch.einsum("...nd,...d->...n", x, weights)
            weights = weights + self.eta / self.chunk * torch.einsum("...n,...nd->...d", residual, x)
        return torch.einsum("...d,...qd->...q", weights, query)
