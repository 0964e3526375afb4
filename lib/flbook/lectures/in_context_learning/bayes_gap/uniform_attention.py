"""Uniform attention: a network that reads a prompt through the mean of a feature of its examples, and nothing else."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook.domains import Count, Seeds, checked_arguments
from flbook.models.layers import MLP
from flbook.shapes import Context


class UniformAttention(nn.Module):
    r"""A feature network, a mean over the examples, and a decoder.

    .. math:: M(P^k, x) = \rho\Big(\frac1k \sum_{i \le k} \phi(x_i, y_i),\ x,\ [k]\Big)

    Both networks have one hidden layer of tanh neurons.

    Parameters
    ----------
    d
        Coordinates of an input.
    features
        Outputs of :math:`\phi`.
    width
        Neurons of either hidden layer.
    told
        Does the decoder get k beside the mean (as its logarithm)?
    seed
        A tuple of seeds gives one leading axis of parameters; prompts are then of shape ``(*S, batch, n, d)``.
    dtype
        Of the parameters.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    Source: the model of Wakayama and Suzuki (2025), as reported.

    Examples
    --------
    >>> UniformAttention(d=1)(Context(torch.ones(5, 4, 1), torch.ones(5, 4)), torch.ones(5, 1, 1)).shape
    torch.Size([5, 1])
    """

    @checked_arguments
    def __init__(self, d: Count = 1, features: Count = 8, width: Count = 24, told: bool = True,
                 seed: Seeds = 0, dtype: torch.dtype = torch.float32):
        super().__init__()
        self.told = told
        self.phi = MLP((d + 1, width, features), torch.tanh, spread=1.0, seed=seed, role="phi", dtype=dtype)
        self.rho = MLP((features + d + told, width, 1), torch.tanh, spread=1.0, seed=seed, role="rho", dtype=dtype)

    def every(self, context: Context, query: Float[Tensor, "*E p d"]) -> Float[Tensor, "*E p"]:
        """Predictions for p queries, the k-th from the first k examples."""
        p = context.y.shape[-1]
        one = self.phi(torch.cat([context.x, context.y[..., None]], -1))
        count = torch.arange(1, p + 1, dtype=one.dtype, device=one.device)[:, None]
        parts = [one.cumsum(-2) / count, query]
        if self.told:
            parts.append(count.log().expand(*query.shape[:-1], 1))
        return self.rho(torch.cat(parts, -1))[..., 0]

    def forward(self, context: Context, query: Float[Tensor, "*E q d"]) -> Float[Tensor, "*E q"]:
        """Predictions at the queries from all examples."""
        k = context.y.shape[-1]
        if k < 1:
            raise ValueError(f"context must hold at least one example; its labels have shape {tuple(context.y.shape)}")
        mean = self.phi(torch.cat([context.x, context.y[..., None]], -1)).mean(-2, keepdim=True)
        parts = [mean.expand(*query.shape[:-1], mean.shape[-1]), query]
        if self.told:
            parts.append(torch.full_like(query[..., :1], math.log(k)))
        return self.rho(torch.cat(parts, -1))[..., 0]
