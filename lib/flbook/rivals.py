"""Rivals: the same experiment by models that learn no feature.

Many impressive curves are also produced by a model whose features never move. Each function here takes a training
problem and returns the rival's, on the same data from the same draw, for `flbook.train.fit` to train:

    linear   no activation: a linear classifier on the sum of the patches
    lazy     the network's first-order expansion about its start: a kernel method, features fixed at their gradients
    scaled   the network itself, held close to its start by a large output scale, or driven away by a small one
    frozen   first layer fixed, only the output weights train: random features
"""

from dataclasses import replace
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook.dynamics.gram import GramTraining, Params
from flbook.dynamics.graph import GraphTraining
from flbook.dynamics.random_features import FrozenGramTraining, FrozenXorTraining
from flbook.dynamics.single_patch import LazySinglePatchTraining, SinglePatchTraining
from flbook.dynamics.xor import XorGramTraining
from flbook.models.activations import identity
from flbook.models.cnn import TwoLayerCNN
from flbook.shapes import per_member, signs
from flbook.train import Training


def linear(problem: GramTraining | SinglePatchTraining | XorGramTraining):
    """The network with its activation taken away: a linear classifier, of the sum of the patches if there are two."""
    return replace(problem, activation=identity)


class LazyGramTraining(GramTraining):
    r"""Filters respond as :math:`\sigma(z_0) + \sigma'(z_0)(z - z_0)`, with :math:`z_0` what they saw at the start."""

    @cached_property
    def reference(self) -> dict[str, Tensor]:
        """Pre-activations of all training patches before training."""
        return self.patches(self.start())

    def respond(self, z: Tensor, patch: str) -> Tensor:
        """First-order response."""
        z, z_0 = (z.split(z.shape[-1] // 2, dim=-1)) if patch == "fresh" else (z, self.reference[patch])
        return self.activation(z_0) + self.activation.slope(z_0) * (z - z_0)

    def slope(self, z: Tensor, patch: str) -> Tensor:
        """Its slope, the same at every step."""
        return self.activation.slope(self.reference[patch])

    def fresh(self, params: Params, standard: Float[Tensor, "points K"]) -> Float[Tensor, "*E points K"]:
        """Fresh noise as the trained and as the initial filters see it, side by side: K = 2 k, jointly Gaussian."""
        start = self.start()
        now, cross = self.weight_gram(params), self._cross(params)
        before = self.gram.w_w.double().expand_as(now)
        both = torch.cat([torch.cat([now, cross], -1), torch.cat([cross.mT, before], -1)], -2)
        exact, c = self.exact(params)
        on_mu = torch.cat([exact.preactivations(c)[0], exact.gram.w_mu.expand_as(c["mu"])], -1)
        z = self.law(both, on_mu, exact.gram.mu_mu, standard).to(params["mu"])
        return z + torch.cat([params["b"], start["b"]], -1)[..., None, :] if self.bias else z

    def training_noise(self, params: Params) -> Float[Tensor, "*E n K"]:
        """Training noise as the trained and as the initial filters see it, side by side."""
        now = super().training_noise(params)
        return torch.cat([now, self.reference["noise"].mT.expand_as(now)], -1)

    def _cross(self, params: Params) -> Tensor:
        """Inner products of trained with initial filters."""
        g = self.gram.to(torch.float64)
        moved = params["mu"].double()[..., None] * g.w_mu[..., None, :]
        return g.w_w + moved + torch.einsum("...kn,...ln->...kl", params["xi"].double(), g.w_xi)

    @property
    def test_directions(self) -> int:
        """Trained and initial filters."""
        return 2 * super().test_directions


class LazyGraphTraining(LazyGramTraining, GraphTraining):
    """The same on a graph."""

    def fresh_signal(self, params: Params) -> Float[Tensor, "*E K"]:
        """What the trained and what the initial filters see of the signal, side by side."""
        on_mu = self.preactivations(params)[0]
        return torch.cat([on_mu, self.gram.w_mu.expand_as(on_mu)], -1)


def lazy(problem: GramTraining | SinglePatchTraining | XorGramTraining | Training):
    """The problem of the network's first-order expansion about its initial weights."""
    if isinstance(problem, XorGramTraining):
        return replace(problem, tangent=True)
    if isinstance(problem, SinglePatchTraining):
        return LazySinglePatchTraining(**{name: getattr(problem, name) for name in problem.__dataclass_fields__})
    if isinstance(problem, GramTraining):
        kind = LazyGraphTraining if isinstance(problem, GraphTraining) else LazyGramTraining
        return kind(**{name: getattr(problem, name) for name in problem.__dataclass_fields__})
    if isinstance(problem, ScaledTraining):
        return LazyScaledTraining(problem.model, problem.x, problem.observed, problem.loss, problem.alpha)
    return LazyTraining(problem.model, problem.x, problem.observed, problem.loss)


class LazyTraining(Training):
    r"""Train :math:`f(w_0, x) + \langle \nabla f(w_0, x), w - w_0\rangle` instead of the network."""

    def predict(self, params: Params, x: Tensor | None = None) -> Tensor:
        """The network's tangent at its start, by one forward-mode derivative."""
        start = self.start()
        moved = {name: params[name] - start[name] for name in start}
        f_0, df = torch.func.jvp(lambda p: super(LazyTraining, self).predict(p, x), (start,), (moved,))
        return f_0 + df


class ScaledTraining(Training):
    r"""Train :math:`F = \alpha (f(w, x) - f(w_0, x))`: one dial from features that move to features that stay.

    A large :math:`\alpha` lets F fit the data while the weights hardly move, and training is that of `LazyTraining`; a
    small one asks the weights to grow. With a step size divided by :math:`\alpha^2`, the first steps of F are the same
    for every :math:`\alpha`. It may be one number a member.

    Source: Chizat et al. (2019), Section 1.
    """

    def __init__(self, model: nn.Module, x: Tensor, observed: Tensor, loss, alpha: float | Tensor):
        if not bool((torch.as_tensor(alpha) > 0).all()):
            raise ValueError(f"alpha must be positive, the factor of the output; got {alpha}")
        self.alpha, self.f_0 = alpha, None
        super().__init__(model, x, observed, loss)
        self.f_0 = super().predict(self.start()).detach()

    def predict(self, params: Params, x: Tensor | None = None) -> Tensor:
        """How far the outputs have moved from those before training, times alpha."""
        f = super().predict(params, x)
        if self.f_0 is None:  # being made: only the shape counts
            return f
        f_0 = self.f_0 if x is None else super().predict(self.start(), x)
        return per_member(self.alpha, f) * (f - f_0)


class LazyScaledTraining(LazyTraining, ScaledTraining):
    """The tangent of `ScaledTraining`, the limit that it has as alpha grows."""


def frozen(problem: GramTraining | XorGramTraining) -> FrozenGramTraining:
    """Random features: the initial filters stay, the output weights train."""
    return (FrozenXorTraining if isinstance(problem, XorGramTraining) else FrozenGramTraining)(problem)


class FrozenCNN(nn.Module):
    """Random features for given images: the filters of a network stay as they are, its output weights train."""

    def __init__(self, cnn: TwoLayerCNN, x: Float[Tensor, "*E n 2 d"]):
        super().__init__()
        self.w, self.activation = cnn.w.detach().flatten(-3, -2), cnn.activation
        self.size = 1.0
        self.size = self.features(x).square().mean((-2, -1), keepdim=True).sqrt()  # so that any sigma_0 gives one rule
        self.a = nn.Parameter(cnn.scale * signs(self.w.shape[-2], self.w).expand(self.w.shape[:-1]).clone())

    def features(self, x: Float[Tensor, "*#E n P d"]) -> Float[Tensor, "*E n k"]:
        """Responses of the filters, summed over patches."""
        return self.activation(torch.einsum("...npd,...kd->...npk", x, self.w)).sum(-2) / self.size

    def forward(self, x: Float[Tensor, "*#E n P d"]) -> Float[Tensor, "*E n"]:
        """Outputs for n samples."""
        return torch.einsum("...nk,...k->...n", self.features(x), self.a)


class LinearModel(nn.Module):
    """Logistic regression on all coordinates of all patches, started at zero: the linear rival for given images."""

    def __init__(self, like: Tensor):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(like.shape[-2] * like.shape[-1], dtype=like.dtype))
        self.b = nn.Parameter(torch.zeros((), dtype=like.dtype))

    def forward(self, x: Tensor) -> Tensor:
        """Outputs ``(n,)``."""
        return x.flatten(-2) @ self.w + self.b
