r"""One layer of linear attention on features: a map that all prompts share, and a step on the loss of each prompt."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook import rng
from flbook.data.prompts import Prompts
from flbook.domains import Count, Seeds, checked_arguments
from flbook.lectures.in_context_learning.learning_with_representations.feature_map import MEAN, SPREAD
from flbook.shapes import Context

# Fourth moment of a feature: of |z| - m, from E|z|^k = 1, m, 1, 2m, 3 for k = 0 to 4, over its variance squared.
FOURTH = (3 - 4 * MEAN * 2 * MEAN + 6 * MEAN**2 - 4 * MEAN**3 * MEAN + MEAN**4) / SPREAD**4


class AttentionOnFeatures(nn.Module):
    r"""Attention with learned features, :math:`\hat y = \frac\eta n\sum_i y_i\langle\phi_U(x_i), \phi_U(x_q)\rangle`.

    The map has the form of the true one, :math:`\phi_U(x)_j = (|\langle u_j, x\rangle| - m)/s`, with free rows
    :math:`u_j`, which start as Gaussians of variance 1/d. With the rows of the truth it is one gradient step on the
    true features.

    Parameters
    ----------
    d
        Dimension of an input.
    k
        Number of learned features.
    seed
        A tuple of seeds gives an ensemble, whose axis leads.
    """

    @checked_arguments
    def __init__(self, d: Count, k: Count, seed: Seeds = 0):
        super().__init__()
        rows = rng.normal((k, d), seed, "rows of the feature map") / d**0.5
        self.rows = nn.Parameter(rows)
        self.eta = nn.Parameter(d / (2 * k) * torch.ones_like(rows[..., 0, 0]))

    @classmethod
    def with_start(cls, rows: Float[Tensor, "*S k d"], eta: float) -> "AttentionOnFeatures":
        """A layer with these rows and this step."""
        layer = cls(rows.shape[-1], rows.shape[-2])
        layer.rows = nn.Parameter(rows.clone())
        layer.eta = nn.Parameter(eta * torch.ones_like(rows[..., 0, 0]))
        return layer

    def map(self, x: Float[Tensor, "*S b n d"]) -> Float[Tensor, "*S b n k"]:
        """The learned features."""
        return ((x @ self.rows[..., None, :, :].mT).abs() - MEAN) / SPREAD

    def forward(self, context: Context, query: Float[Tensor, "*S b q d"]) -> Float[Tensor, "*S b q"]:
        """Predictions at the queries."""
        memory = torch.einsum("...n,...nd->...d", context.y, self.map(context.x)) / context.x.shape[-2]
        return self.eta[..., None, None] * torch.einsum("...qd,...d->...q", self.map(query), memory)


class SamePrompts(NamedTuple):
    """The same prompts at every step of a training."""

    prompts: Prompts

    def draw(self, batch: int, seed: int, step: int = 0, device="cpu") -> Prompts:
        """All of them."""
        return self.prompts


def best_step(n: int, d: int, noise: float) -> float:
    """The step at which one gradient step on the true features has the least risk."""
    return n / (n + surplus(d, noise))


def surplus(d: int, noise: float) -> float:
    r""":math:`B = m_4 + d - 2 + d\,\sigma_y^2` of `rung`, with the fourth moment m_4 of a feature."""
    return FOURTH + d - 2 + d * noise**2


def rung(found: int, n: int, d: int, noise: float) -> float:
    r"""Least risk of a layer that reads `found` of the d features: :math:`1 - \frac\nu d\,\frac n{n+B}`."""
    return 1 - found / d * best_step(n, d, noise)
