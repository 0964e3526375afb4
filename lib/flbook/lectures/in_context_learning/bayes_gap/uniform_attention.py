"""Uniform attention: a network that reads a prompt through the mean of a feature of its examples, and nothing else."""

import math
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook import rng
from flbook.shapes import Context


class UniformAttention(nn.Module):
    r"""A feature network, a mean over the examples, and a decoder.

    .. math:: M(P^k, x) = \rho\Big(\frac1k \sum_{i \le k} \phi(x_i, y_i),\ x,\ [k]\Big)

    told: whether the decoder gets k beside the mean (as its logarithm). Both networks have one hidden layer of
    `width` tanh neurons; :math:`\phi` has `features` outputs. frozen: :math:`\phi` stays at its random start.
    A tuple of seeds gives one leading axis of parameters; prompts are then of shape ``(*S, batch, n, d)``.

    Raises ValueError if a size is below 1.
    Source: the model of Wakayama and Suzuki (2025), as reported.
    """

    def __init__(self, d: int = 1, features: int = 8, width: int = 24, told: bool = True,
                 frozen: bool = False, seed: int | tuple[int, ...] = 0, dtype: torch.dtype = torch.float32):
        super().__init__()
        if min(d, features, width) < 1:
            raise ValueError(f"d, features and width must be at least 1; got d={d}, features={features}, "
                             f"width={width}")
        self.told = told
        sizes = {"phi": (d + 1, width, features), "rho": (features + d + int(told), width, 1)}
        for name, widths in sizes.items():
            for k, (ins, outs) in enumerate(pairwise(widths)):
                weights = rng.normal((ins, outs), seed, f"{name}, layer {k}") / ins**0.5
                offsets = rng.normal((outs,), seed, f"{name}, offsets {k}") * (1.0 if k == 0 else 0.0)
                train = not (frozen and name == "phi")
                self.register_parameter(f"{name}_weights_{k}", nn.Parameter(weights.to(dtype), requires_grad=train))
                self.register_parameter(f"{name}_offsets_{k}", nn.Parameter(offsets.to(dtype), requires_grad=train))

    def _through(self, name: str, h: Tensor) -> Tensor:
        for k in range(2):
            weights, offsets = getattr(self, f"{name}_weights_{k}"), getattr(self, f"{name}_offsets_{k}")
            lead = weights.ndim - 2
            shape = (*h.shape[:-1], weights.shape[-1])
            h = (h.flatten(lead, -2) @ weights + offsets[..., None, :]).reshape(shape)
            h = torch.tanh(h) if k == 0 else h
        return h

    def every(self, context: Context, query: Float[Tensor, "*E p d"]) -> Float[Tensor, "*E p"]:
        """Predictions for p queries, the k-th from the first k examples."""
        p = context.y.shape[-1]
        one = self._through("phi", torch.cat([context.x, context.y[..., None]], -1))
        count = torch.arange(1, p + 1, dtype=one.dtype, device=one.device)[:, None]
        parts = [one.cumsum(-2) / count, query]
        if self.told:
            parts.append(count.log().expand(*query.shape[:-1], 1))
        return self._through("rho", torch.cat(parts, -1))[..., 0]

    def forward(self, context: Context, query: Float[Tensor, "*E q d"]) -> Float[Tensor, "*E q"]:
        """Predictions at the queries from all examples."""
        k = context.y.shape[-1]
        if k < 1:
            raise ValueError(f"context must hold at least one example; its labels have shape {tuple(context.y.shape)}")
        mean = self._through("phi", torch.cat([context.x, context.y[..., None]], -1)).mean(-2, keepdim=True)
        parts = [mean.expand(*query.shape[:-1], mean.shape[-1]), query]
        if self.told:
            parts.append(torch.full_like(query[..., :1], math.log(k)))
        return self._through("rho", torch.cat(parts, -1))[..., 0]
