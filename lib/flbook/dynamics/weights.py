r"""A two-layer CNN on signal-noise data, in weights: what is measured in coefficients is measured here, too.

Whatever rule moved them, weights have one decomposition

.. math:: w_k(t) - w_k(0) = c_k\,\mu + \sum_i c_{k,i}\,\xi_i + r_k, \qquad r_k \perp \mu, \xi_1, \dots, \xi_n ,

since signal and noise patches are independent if d > n. Rules that are linear in gradients have r = 0, and then
`GramTraining` is the same problem at a cost that does not depend on d; sign descent and Adam do not.

Source: Cao et al. (2022), Definition 5.1 (signal-noise decomposition).
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.data.signal_noise import Sample
from flbook.models.cnn import TwoLayerCNN
from flbook.rivals import FrozenCNN, LinearModel
from flbook.shapes import signs
from flbook.training.losses import logistic
from flbook.training.network import Training
from flbook.training.problem import Params


class WeightTraining(Training):
    """`Training` of a `TwoLayerCNN` on a sample of `SignalNoise`, which knows the signal, the noise and its law.

    Parameters
    ----------
    data, sample
        The data model, whose ``test_law`` is that of fresh noise, and what it drew.
    cnn
        The network before training; its parameters carry the ensemble axes.
    loss
        One of `flbook.training.losses`.
    """

    def __init__(self, data: Any, sample: Sample, cnn: TwoLayerCNN, loss: Any = logistic):
        super().__init__(cnn, sample.x, sample.observed, loss)
        self.data, self.sample, self.y, self.law = data, sample, sample.y.to(self.x), data.test_law
        self.mu, self.xi = sample.mu.to(self.x), sample.xi.to(self.x)

    @classmethod
    def of(cls, data: Any, sample: Sample, cnn: TwoLayerCNN) -> "WeightTraining":
        """The same problem as ``GramTraining.of(data, sample, cnn)``."""
        return cls(data, sample, cnn)

    def moved(self, params: Params) -> Float[Tensor, "*E k d"]:
        """How far each filter is from its start, the filters of +1 first."""
        return (params["w"] - self.start()["w"]).flatten(-3, -2)

    def coefficients_of(self, params: Params) -> tuple[Float[Tensor, "*E k"], Float[Tensor, "*E k n"]]:
        r"""The coefficients c of the move on :math:`\mu` and on each :math:`\xi_i`, in float64."""
        xi, moved = self.xi.double(), self.moved(params).double()
        basis = torch.cat([self.mu.double().expand(*xi.shape[:-2], 1, -1), xi], -2)
        inner = torch.einsum("...ad,...bd->...ab", basis, basis)
        c = torch.linalg.solve(inner, torch.einsum("...ad,...kd->...ak", basis, moved)).mT
        return c[..., 0], c[..., 1:]

    def signal_learned(self, params: Params) -> Float[Tensor, "*E 2 m"]:
        r""":math:`\gamma_{j,r} = j\|\mu\|^2 c_{j,r}`."""
        on_mu = self.coefficients_of(params)[0].to(self.x)
        return (signs(on_mu.shape[-1], on_mu) * (self.mu @ self.mu) * on_mu).unflatten(-1, (2, -1))

    def noise_memorised(self, params: Params) -> Float[Tensor, "*E 2 m n"]:
        r""":math:`\rho_{j,r,i} = \|\xi_i\|^2 c_{j,r,i}`."""
        on_xi = self.coefficients_of(params)[1].to(self.x)
        return (on_xi * self.xi.square().sum(-1)[..., None, :]).unflatten(-2, (2, -1))

    def outside_span(self, params: Params) -> Float[Tensor, "*E"]:
        """Share of the squared move that no signal and no noise patch explains: 0 for rules linear in gradients."""
        (on_mu, on_xi), moved = self.coefficients_of(params), self.moved(params).double()
        inside = on_mu[..., None] * self.mu.double() + torch.einsum("...kn,...nd->...kd", on_xi, self.xi.double())
        whole = moved.square().sum((-2, -1))
        left = (moved - inside).square().sum((-2, -1)) / whole.clamp(min=torch.finfo(whole.dtype).tiny)
        return left.to(self.x)

    def test_outputs(self, params: Params, standard: Float[Tensor, "points k"]) -> tuple[Tensor, Tensor]:
        """Outputs ``(*E, points)`` on fresh samples of label +1 and of label -1, exactly distributed."""
        w, mu = params["w"].flatten(-3, -2).double(), self.mu.double()
        on_mu, bias = torch.einsum("...kd,d->...k", w, mu), params.get("b")
        bias = torch.zeros_like(on_mu) if bias is None else bias.flatten(-2).double()
        noise = self.law(torch.einsum("...kd,...ld->...kl", w, w), on_mu, mu @ mu, standard.double())
        a = self.model.scale * signs(w.shape[-2], w)
        on_noise = self.model.activation(noise + bias[..., None, :]) @ a
        both = ((self.model.activation(bias + sign * on_mu) @ a)[..., None] + on_noise for sign in (1, -1))
        return tuple(output.to(self.x) for output in both)

    @property
    def test_directions(self) -> int:
        """How many Gaussian numbers one fresh noise patch takes."""
        return self.model.w.shape[-3] * self.model.w.shape[-2]

    def linear(self) -> Training:
        """Logistic regression on all coordinates of both patches, started at zero; for a single network."""
        return Training(LinearModel(self.x), self.x, self.observed, self.loss)

    def frozen(self) -> Training:
        """Random features: the initial filters stay, the output weights train."""
        return Training(FrozenCNN(self.model, self.x), self.x, self.observed, self.loss)
