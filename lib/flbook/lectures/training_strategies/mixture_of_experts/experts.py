r"""A mixture of experts: a linear router sends each sample to one small network, and both train together."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from flbook import rng
from flbook.domains import Count, Positive, Seeds, checked_arguments
from flbook.models.activations import cube, identity
from flbook.training.losses import logistic


@dataclass(frozen=True)
class DoubleSoftmax:
    r"""Cross entropy of probabilities taken for logits: :math:`\ell(f, y) = \log(1 + e^{-\tanh(yf/2)})`.

    Two logits of difference f have probabilities whose difference is :math:`\tanh(f/2)`; a library's cross entropy,
    given these, takes the softmax once more. The loss cannot fall below :math:`\log(1 + 1/e) = 0.3133`.
    """

    def __call__(self, f: Tensor, y: Tensor) -> Tensor:
        """The loss of each output."""
        return logistic(torch.tanh(f / 2), y)

    def slope(self, f: Tensor, y: Tensor) -> Tensor:
        """The derivative in f."""
        p = torch.tanh(f / 2)
        return logistic.slope(p, y) * (1 - p.square()) / 2


class Experts(nn.Module):
    r"""M small networks, and a router that asks one of them about each sample.

    .. math:: h_m = \sum_p \langle\theta_m, x^{(p)}\rangle, \qquad F = g\, f_{m^*}(x), \quad m^* = \arg\max_m h_m,
              \qquad f_m = \sum_p\sum_{j=1}^{J} \big[\sigma(\langle w_{m,+,j}, x^{(p)}\rangle + b_{m,+,j})
              - \sigma(\langle w_{m,-,j}, x^{(p)}\rangle + b_{m,-,j})\big]

    The gate g is :math:`h_{m^*}` itself ("logit", as in the official code) or the share of expert m* in the softmax of
    all h ("softmax", as in the paper). Parameters: ``theta`` of shape ``(*E, M, d)``, zero at the start, ``w`` of shape
    ``(*E, M, 2, J, d)`` and ``b`` of shape ``(*E, M, 2, J)``.

    Parameters
    ----------
    d, experts, filters
        Dimension of a patch; experts M; filters J of either sign in an expert.
    activation
        :math:`\sigma`.
    gate
        See above.
    shrink
        The experts start from PyTorch's convolution default, uniform in :math:`\pm 1/\sqrt d`, times this.
    seed
        One seed is one network; a tuple of seeds is an ensemble with one leading axis.
    dtype
        Of the parameters.
    start
        If given, ``w`` and ``b`` of the start in place of drawn ones, in the shapes above.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or a given start has other shapes.

    Source: Chen et al. (2022), Section 3.

    Examples
    --------
    >>> Experts(d=50, seed=(0, 1, 2))(torch.zeros(20, 4, 50)).shape
    torch.Size([3, 20])
    """

    sample_axes = 2  # patches, coordinates

    @checked_arguments
    def __init__(
        self,
        d: Count,
        experts: Count = 8,
        filters: Count = 8,
        activation: Callable[[Tensor], Tensor] = cube,
        gate: Literal["logit", "softmax"] = "logit",
        shrink: Positive = 1e-3,
        seed: Seeds = 0,
        dtype: torch.dtype = torch.float32,
        start: tuple[Tensor, Tensor] | None = None,
    ):
        super().__init__()
        self.activation, self.gate, self.experts = activation, gate, experts

        def uniform(one: int) -> Tensor:
            stream = rng.generator(one, "experts")
            unit = torch.rand((experts, 2, filters, d + 1), generator=stream, dtype=torch.float64)
            return shrink * (2 * unit - 1) / d**0.5

        drawn = rng.over_seeds(uniform, seed).to(dtype)
        w, b = (drawn[..., :d], drawn[..., d]) if start is None else start
        if start is not None and (w.shape, b.shape) != (drawn.shape[:-1] + (d,), drawn.shape[:-1]):
            wanted = (*drawn.shape[:-1], d), tuple(drawn.shape[:-1])
            raise ValueError(f"start must have the shapes {wanted}; got {tuple(w.shape), tuple(b.shape)}")
        self.theta = nn.Parameter(drawn.new_zeros((*drawn.shape[:-3], d)))
        self.w, self.b = nn.Parameter(w.to(dtype).clone()), nn.Parameter(b.to(dtype).clone())

    def logits(self, x: Float[Tensor, "*#E n P d"]) -> Float[Tensor, "*E n M"]:
        """What the router says of n samples."""
        return torch.einsum("...nd,...md->...nm", x.sum(-2), self.theta)

    def answers(self, x: Float[Tensor, "*#E n P d"], expert: Int[Tensor, "*E n"]) -> Float[Tensor, "*E n"]:
        """What the expert of this number says of each sample."""
        b = self.b.flatten(-2)
        if self.activation == identity:  # a linear expert sees the sum of the patches only: a quarter of the work
            x, b = x.sum(-2, keepdim=True), x.shape[-2] * b
        z = torch.einsum("...npd,...kd->...npk", x, self.w.flatten(-4, -2)).unflatten(-1, b.shape[-2:])
        z = z.take_along_dim(expert[..., None, None, None], -2)[..., 0, :]  # then every expert, of which one answers
        b = b.expand(*expert.shape[:-1], *b.shape[-2:])[..., None, :, :].take_along_dim(expert[..., None, None], -2)
        f = self.activation(z + b)
        f = f.sum(-2).unflatten(-1, (2, -1)).sum(-1)
        return f[..., 0] - f[..., 1]

    def forward(
        self, x: Float[Tensor, "*#E n P d"], noise: Tensor | float = 0.0, route: Tensor | None = None
    ) -> Float[Tensor, "*E n"]:
        """Outputs for n samples. noise: added to the router's logits. route: experts from elsewhere, with gate 1."""
        if route is not None:
            return self.answers(x, route.expand(*self.w.shape[:-4], -1))
        h = self.logits(x) + noise
        expert = h.argmax(-1)
        share = torch.softmax(h, -1) if self.gate == "softmax" else h
        return share.take_along_dim(expert[..., None], -1)[..., 0] * self.answers(x, expert)
