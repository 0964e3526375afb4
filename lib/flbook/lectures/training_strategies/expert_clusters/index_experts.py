r"""Two experts of cubic neurons, and the router between them, trained together on fresh batches.

.. math:: f(x) = \pi(x) f_1(x) + (1 - \pi(x)) f_2(x), \quad f_e(x) = \sum_{j=1}^J a_{ej}h_3(\langle w_{ej}, x\rangle),
          \quad \pi(x) = \frac1{1 + e^{-\langle\theta_1, x\rangle}} .

With the residual :math:`R = y - f`, a step moves along the batch means of

.. math:: \mathrm{sgn}(a_{ej})\,R\,\pi_e h_3'(\langle w_{ej}, x\rangle)\,x_\perp, \qquad R\,\pi_e h_3, \qquad
          R\,(f_1 - f_2)\,\pi(1 - \pi)\,x

for weights, which return to length one, second layer and router. Directions move at the pace of a neuron with
second-layer weight one. With the router held at zero this is one plain network of 2J neurons.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import hermite, rng
from flbook.domains import Checked, Count, NonNegative, Positive, Seeds, checked_arguments
from flbook.lectures.training_strategies.expert_clusters.index_clusters import CENTRE, IndexSample

SLOPE = hermite.he(3).derivative()


class IndexExperts(NamedTuple):
    """The parameters."""

    w: Float[Tensor, "*E 2 J d"]  # directions
    a: Float[Tensor, "*E 2 J"]  # second layer
    r: Float[Tensor, "*E d"]  # router's vector, theta_1

    def outputs(self, x: Float[Tensor, "*E n d"]) -> tuple[Float[Tensor, "*E 2 J n"], Float[Tensor, "*E 2 n"]]:
        """The neurons' inputs, and what either expert puts out."""
        u = (self.w.flatten(-3, -2) @ x.mT).unflatten(-2, self.w.shape[-3:-1])
        return u, (self.a[..., None] * hermite.polynomial(3, u)).sum(-2)

    def routed(self, x: Float[Tensor, "*E n d"]) -> Float[Tensor, "*E 2 n"]:
        """The weights of both experts."""
        first = torch.sigmoid((x @ self.r[..., None]).squeeze(-1))
        return torch.stack([first, 1 - first], -2)

    def predict(self, x: Float[Tensor, "*E n d"]) -> Float[Tensor, "*E n"]:
        """The network's output."""
        return (self.routed(x) * self.outputs(x)[1]).sum(-2)

    def carried(self) -> Float[Tensor, "*E 2 d"]:
        r"""Of either expert :math:`\sum_j a_{ej}m_j^3`, its correlation with h_3 of each other coordinate."""
        return (self.a[..., None] * self.w**3).sum(-2)

    def cosine(self) -> Float[Tensor, "*E"]:
        """Absolute cosine of the router with the centres; 0 for a router at zero."""
        return (self.r[..., CENTRE] / self.r.norm(dim=-1).clamp(min=1e-12)).abs()


@dataclass(frozen=True)
class Together(Checked):
    """The rule that trains experts and router together.

    Parameters
    ----------
    lr, lr_second, lr_router
        Step sizes of directions, second layer and router; 0 for the last holds the router.
    longest
        A gradient of a direction longer than this is cut to it: a cube has heavy tails.
    """

    lr: Positive = 0.01
    lr_second: Positive = 0.01
    lr_router: NonNegative = 0.05
    longest: Positive = 10.0

    def step(self, net: IndexExperts, sample: IndexSample) -> IndexExperts:
        """One step on one batch."""
        x, n = sample.x, sample.x.shape[-2]
        (u, out), gate = net.outputs(x), net.routed(x)
        residual = sample.y - (gate * out).sum(-2)
        seen = (residual[..., None, :] * gate)[..., None, :]  # (*E, 2, 1, n)
        pull = ((seen * SLOPE(u)).flatten(-3, -2) @ x).unflatten(-2, net.a.shape[-2:]) / n * net.a.sign()[..., None]
        pull = pull - (pull * net.w).sum(-1, keepdim=True) * net.w
        length = pull.norm(dim=-1, keepdim=True)
        w = net.w + self.lr * pull * (self.longest / length.clamp(min=self.longest))
        a = net.a + self.lr_second * (seen * hermite.polynomial(3, u)).mean(-1)
        blame = residual * (out[..., 0, :] - out[..., 1, :]) * gate.prod(-2)
        r = net.r + self.lr_router * (blame[..., None, :] @ x).squeeze(-2) / n
        return IndexExperts(w / w.norm(dim=-1, keepdim=True), a, r)


@checked_arguments
def start(
    d: Count, neurons: Count, seed: Seeds, router: float = 0.0, device: str | torch.device = "cpu"
) -> IndexExperts:
    """Random directions, second-layer weights 0.1, and a router of the given length in a random direction."""
    w = rng.normal((2, neurons, d), seed, "directions", device)
    r = rng.normal((d,), seed, "router", device)
    a = torch.full_like(w[..., 0], 0.1)
    return IndexExperts(w / w.norm(dim=-1, keepdim=True), a, router * r / r.norm(dim=-1, keepdim=True))
