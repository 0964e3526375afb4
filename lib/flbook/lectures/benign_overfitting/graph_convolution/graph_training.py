r"""Training a graph convolutional network in coefficients.

The convolution of `graphs` is linear in the patches, so a convolved noise patch is a combination of the
:math:`\xi_i`, and all that training asks for are the Gram matrices :math:`M \Xi\Xi^\top M^\top` and
:math:`W_0\Xi^\top M^\top`. A convolved signal patch is :math:`\alpha_i y_i\mu` with a share of its own at every node.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.dynamics.gram import GramTraining, LazyGramTraining
from flbook.dynamics.inner_products import Gram
from flbook.lectures.benign_overfitting.graph_convolution.graphs import Neighbourhoods
from flbook.training.problem import Params, convert


def convolved(gram: Gram, matrix: Float[Tensor, "*#E n n"]) -> Gram:
    """The Gram matrices of the noise patches after a convolution M, shape ``(*E, n, n)``."""
    return gram._replace(
        mu_xi=torch.einsum("...k,...ik->...i", gram.mu_xi, matrix),
        xi_xi=matrix @ gram.xi_xi @ matrix.mT,
        w_xi=gram.w_xi @ matrix.mT,
    )


@dataclass(frozen=True)
class GraphTraining(GramTraining):
    r"""A two-layer CNN on the convolved patches :math:`[\alpha_i y_i\mu, \tilde\xi_i]`, without bias.

    ``gram`` is that of the convolved noise. Fresh nodes belong to a fresh graph of the same kind.
    """

    share: Float[Tensor, "*#E n"] | None = None  # alpha_i y_i, signed: what is left of the signal at each node
    nodes: Neighbourhoods | None = None  # of fresh nodes; as many as there are test points

    def __post_init__(self):
        super().__post_init__()
        if self.share is None or self.nodes is None:
            raise ValueError("share and nodes must be given: what is left of the signal at each node, and fresh nodes")
        if self.bias:
            raise ValueError("bias must be False on a graph")

    def to(self, *where: Any) -> "GraphTraining":
        """On another device or in another dtype."""
        parts = {name: getattr(self, name).to(*where) for name in ("gram", "y", "observed", "share")}
        return replace(self, nodes=Neighbourhoods(*(part.to(*where) for part in self.nodes)), **parts)

    def patches(self, params: Params) -> dict[str, Tensor]:
        """Pre-activations of the convolved patches: signal and noise of every node, both ``(*E, k, n)``."""
        on_mu, on_xi = self.preactivations(params)
        return {"signal": on_mu[..., None] * self.share[..., None, :], "noise": on_xi}

    def _outputs(self, z: dict[str, Tensor]) -> Tensor:
        total = sum(self.respond(z[patch], patch) for patch in ("signal", "noise"))
        return self.a @ total

    def gradient_at(self, params: Params, observed: Tensor) -> Params:
        r"""The gradient's own coefficients on :math:`\mu` and the convolved noise patches."""
        z = self.patches(params)
        slope_of_loss = self.loss.slope(self._outputs(z), observed) / self.y.shape[-1]
        signal = torch.einsum("...n,...kn->...k", slope_of_loss * self.share, self.slope(z["signal"], "signal"))
        noise = self.vjp(self.a[:, None] * slope_of_loss[..., None, :], z["noise"], "noise")
        return self.with_start({"mu": self.a * signal, "xi": noise}, params)

    def fresh_signal(self, params: Params) -> Float[Tensor, "*E K"]:
        """What the filters see of the signal itself; the lazy rival adds what they saw at the start."""
        return self.preactivations(params)[0]

    def test_outputs(self, params: Params, standard: Float[Tensor, "points k"]) -> tuple[Tensor, Tensor]:
        """Outputs ``(*E, points)`` on fresh nodes of label +1 and of label -1, with the same noise and neighbours."""
        share, size = (part[..., None] for part in self.nodes)
        if share.shape[-2] != standard.shape[0]:
            raise ValueError(f"there are {share.shape[-2]} fresh nodes, but {standard.shape[0]} test points")
        noise = self.respond(self.fresh(params, standard) / size.sqrt(), "fresh") @ self.a
        signal = share * self.fresh_signal(params)[..., None, :]
        return tuple(self.respond(sign * signal, "fresh") @ self.a + noise for sign in (1, -1))

    def lazy(self) -> "LazyGraphTraining":
        """The network's first-order expansion about its start."""
        return convert(self, LazyGraphTraining)


class LazyGraphTraining(LazyGramTraining, GraphTraining):
    """The lazy rival on a graph."""

    def fresh_signal(self, params: Params) -> Float[Tensor, "*E K"]:
        """What the trained and what the initial filters see of the signal, side by side."""
        on_mu = self.preactivations(params)[0]
        return torch.cat([on_mu, self.gram.w_mu.expand_as(on_mu)], -1)
