"""Linear attention on learned features: the model of the nonparametric theory of in-context learning."""

from collections.abc import Callable
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook import rng
from flbook.models.activations import relu
from flbook.shapes import Context


class FeatureAttention(nn.Module):
    r"""A network makes N features, linear attention combines them.

    .. math:: \hat y = \frac1n \sum_{i=1}^n y_i\, \phi(x_i)^\top \Gamma\, \phi(x_q)

    widths: inputs d, hidden layers, features N. Inputs in [0, 1] are moved to [-1, 1]. He's start, biases uniform so
    that the kinks of the first layer lie inside the cube; :math:`\Gamma` starts as :math:`I/(2\sqrt N)`.
    frozen: the features stay at their random start and only :math:`\Gamma` is trained. Every parameter leads with one
    axis of seeds if `seed` is a tuple; prompts are then of shape ``(*S, batch, n, d)``.

    Raises ValueError if widths are fewer than two, or one is below 1.
    Source: Kim, Nakamaki and Suzuki (2024), Section 2 and the sizes of Section 5.
    """

    def __init__(
        self,
        widths: tuple[int, ...] = (8, 32, 32, 32),
        frozen: bool = False,
        activation: Callable[[Tensor], Tensor] = relu,
        seed: int | tuple[int, ...] = 0,
        dtype: torch.dtype = torch.float32,
    ):
        super().__init__()
        if len(widths) < 2 or min(widths) < 1:
            raise ValueError(f"widths must hold at least inputs and features, each at least 1; got {widths}")
        self.activation, self.layers = activation, len(widths) - 1
        for k, (ins, outs) in enumerate(pairwise(widths)):
            weights = rng.normal((ins, outs), seed, f"features, layer {k}") * (2 / ins) ** 0.5
            spread = rng.normal((outs,), seed, f"features, offsets {k}") * (0.5 if k == 0 else 0.0)
            for name, start in ((f"weights_{k}", weights), (f"offsets_{k}", spread)):
                self.register_parameter(name, nn.Parameter(start.to(dtype), requires_grad=not frozen))
        eye = torch.eye(widths[-1], dtype=dtype) / (2 * widths[-1] ** 0.5)
        self.gamma = nn.Parameter(eye.expand(*weights.shape[:-2], *eye.shape).clone())

    def features(self, x: Float[Tensor, "*E n d"]) -> Float[Tensor, "*E n N"]:
        r"""What the attention reads: :math:`\phi(x)`."""
        h = 2 * x - 1
        for k in range(self.layers):
            weights, offsets = getattr(self, f"weights_{k}"), getattr(self, f"offsets_{k}")
            lead = weights.shape[:-2]
            h = h.flatten(len(lead), -2) @ weights + offsets[..., None, :]
            h = h.reshape(*x.shape[:-1], weights.shape[-1])
            h = self.activation(h) if k < self.layers - 1 else h
        return h

    def forward(self, context: Context, query: Float[Tensor, "*E q d"]) -> Float[Tensor, "*E q"]:
        """Predictions at the queries."""
        n = context.y.shape[-1]
        if n < 1:
            raise ValueError(f"context must hold at least one example; its labels have shape {tuple(context.y.shape)}")
        means = torch.einsum("...n,...nk->...k", context.y, self.features(context.x)) / n
        read = torch.einsum("...bk,...kl->...bl", means, self.gamma)
        return torch.einsum("...bl,...bql->...bq", read, self.features(query))
