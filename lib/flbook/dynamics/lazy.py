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

    def slope(self, z: Tensor, patch: str) -> Tensor:
        """Its slope, the same at every step."""
        return self.activation.slope(self.reference[patch])

    def fresh(self, params: Params, standard: Float[Tensor, "points K"]) -> Float[Tensor, "*E points K"]:
        """Fresh noise as the trained and as the initial filters see it, side by side: K = 2 k, jointly Gaussian."""
        both = side_by_side(self.weight_gram(params), self._cross(params), self.gram.w_w.double())
        exact, c = self.exact(params)
        on_mu = torch.cat([exact.preactivations(c)[0], exact.gram.w_mu.expand_as(c["mu"])], -1)
        z = self.law(both, on_mu, exact.gram.mu_mu, standard).to(params["mu"])
        return z + torch.cat([params["b"], self.start()["b"]], -1)[..., None, :] if self.bias else z

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
