"""The lazy rival in coefficients: features that stay where they started, a kernel method."""

from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.dynamics.gram import GramTraining, side_by_side
from flbook.models.activations import tangent
from flbook.training.problem import Params


class LazyGramTraining(GramTraining):
    r"""Filters respond as :math:`\sigma(z_0) + \sigma'(z_0)(z - z_0)`, with :math:`z_0` what they saw at the start."""

    @cached_property
    def reference(self) -> dict[str, Tensor]:
        """Pre-activations of all training patches before training."""
        return self.patches(self.start())

    def respond(self, z: Tensor, patch: str) -> Tensor:
        """First-order response."""
        z, z_0 = z.chunk(2, -1) if patch == "fresh" else (z, self.reference[patch])
        return tangent(self.activation, z, z_0)

    def bends_at(self, z: Tensor, patch: str) -> Tensor:
        """Where the slope was before training, the same at every step."""
        return self.reference[patch]

    def meets(self, params: Params) -> tuple[Float[Tensor, "*E K K"], Float[Tensor, "*E K"], Tensor | None]:
        """Trained and initial filters side by side, K = 2 k: fresh noise is jointly Gaussian to them."""
        w_w, w_mu, b = super().meets(params)
        both = side_by_side(w_w, self._cross(params), self.gram.w_w.double())
        on_mu = torch.cat([w_mu, self.gram.w_mu.double().expand_as(w_mu)], -1)
        return both, on_mu, b if b is None else torch.cat([b, self.start()["b"]], -1)

    def training_noise(self, params: Params) -> Float[Tensor, "*E n K"]:
        """Training noise as the trained and as the initial filters see it, side by side."""
        now = super().training_noise(params)
        return torch.cat([now, self.reference["noise"].mT.expand_as(now)], -1)

    def _cross(self, params: Params) -> Tensor:
        """Inner products of trained with initial filters."""
        g = self.gram.to(torch.float64)
        start = params["start"].double()[..., None, None] * g.w_w if "start" in params else g.w_w
        moved = params["mu"].double()[..., None] * g.w_mu[..., None, :]
        return start + moved + torch.einsum("...kn,...ln->...kl", params["xi"].double(), g.w_xi)

    @property
    def test_directions(self) -> int:
        """Trained and initial filters."""
        return 2 * super().test_directions
