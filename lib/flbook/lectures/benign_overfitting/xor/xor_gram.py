r"""Exclusive or, trained in coefficients: two coordinates in the plane of the clusters, one number a noise patch.

With noise orthogonal to the plane of u and v, every gradient of a two-layer CNN lies in that plane plus the span of the
:math:`\xi_i`, so the weights stay in

.. math:: w_k(t) = w_k(0) + \Pi\,(w_k(t) - w_k(0)) + \sum_i c_{k,i}(t)\,\xi_i

with :math:`\Pi` the projection on the plane. The state is :math:`\Pi w_k`, two numbers, and c. As in
`flbook.dynamics.gram` nothing depends on d, and the weights are those of direct training.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook import rng
from flbook.data.signal_noise import check_noise, covariance_factor
from flbook.dynamics.fresh import outputs_on_noise
from flbook.dynamics.frozen import FrozenGramTraining
from flbook.dynamics.inner_products import joint_gram
from flbook.dynamics.wishart import bartlett, check_room
from flbook.lectures.benign_overfitting.xor.clusters import XorSample
from flbook.models.activations import identity, relu, tangent
from flbook.models.cnn import TwoLayerCNN, check_start
from flbook.shapes import signs
from flbook.training.losses import check_labels, logistic
from flbook.training.problem import EmpiricalProblem, Params


class XorGram(NamedTuple):
    """The clusters in their plane, the initial filters there, and inner products of everything outside of it."""

    signals: Float[Tensor, "*#E 2 2"]  # u and v
    plane: Float[Tensor, "*#E k 2"]  # initial filters
    xi_xi: Float[Tensor, "*#E n n"]
    w_xi: Float[Tensor, "*#E k n"]
    w_w: Float[Tensor, "*#E k k"]  # of the initial filters, outside the plane

    @classmethod
    def of(cls, sample: XorSample, w: Float[Tensor, "*E k d"]) -> "XorGram":
        """From given data, whose plane is that of the first two coordinates, and filters."""
        rest = w[..., 2:]
        return cls(
            signals=sample.signals[:, :2].to(w), plane=w[..., :2],
            xi_xi=torch.einsum("...nd,...pd->...np", sample.xi, sample.xi).to(w),
            w_xi=torch.einsum("...kd,...nd->...kn", w, sample.xi.to(w)),
            w_w=torch.einsum("...kd,...ld->...kl", rest, rest),
        )

    def with_signals(self, signals: Float[Tensor, "mu 2 2"]) -> "XorGram":
        """A new last ensemble axis of clusters: other lengths, other angles, the same noise and filters."""
        return XorGram(signals.to(self.w_w), *(part.unsqueeze(-3) for part in self[1:]))

    def to(self, *where: Any) -> "XorGram":
        """On another device or in another dtype."""
        return XorGram(*(part.to(*where) for part in self))


def draw_xor_gram(
    n: int, k: int, d: int, *, sigma_0: float, sigma_xi: float = 1.0, seed: int | tuple[int, ...] = 0
) -> XorGram:
    """The same for Gaussian filters and noise, drawn without a d-dimensional vector, beside clusters of length 1 at
    right angles; a tuple of seeds gives one leading ensemble axis. Use ``.with_signals`` for other clusters.

    Raises ValueError if d cannot hold n + k independent vectors beside the plane.
    """
    check_noise(sigma_xi)
    check_start(sigma_0)
    check_room(n, k, d - 1)

    def one(seed: int) -> Tensor:
        return bartlett(n + k, np.array([d - 2]), seed)[0]

    size = torch.cat([torch.full((n,), sigma_xi), torch.full((k,), sigma_0)]).double()
    factor = size[:, None] * rng.over_seeds(one, seed)
    full = factor @ factor.mT
    plane = sigma_0 * rng.normal((k, 2), seed, "weights in the plane")
    signals = torch.eye(2, dtype=torch.float64)
    return XorGram(signals, plane, full[..., :n, :n], full[..., n:, :n], full[..., n:, n:])


@dataclass(frozen=True)
class XorGramTraining(EmpiricalProblem):
    """The training problem of a two-layer CNN on `clusters`, in coefficients.

    Parameters are ``{"plane": (*E, k, 2), "xi": (*E, k, n)}``: the filters' coordinates in the plane of the clusters,
    and their coefficients on the noise patches. With ``tangent=True`` filters respond to first order about the start,
    which makes it the lazy rival; with the activation `flbook.models.identity` it is the linear one.
    """

    coefficients = True

    gram: XorGram
    cluster: Int[Tensor, " n"]  # 0, 1, 2, 3 for +u, +v, -u, -v
    observed: Float[Tensor, "*#E n"]  # labels of the loss
    scale: float  # weight of a filter in the output, 1/m for the mean over filters
    activation: Callable[[Tensor], Tensor] = relu
    loss: Any = logistic
    sigma_xi: float = 1.0  # of fresh noise
    tangent: bool = False

    def __post_init__(self):
        check_labels(self.observed)
        n = self.gram.xi_xi.shape[-1]
        if self.cluster.shape[-1] != n or self.observed.shape[-1] != n:
            raise ValueError(f"clusters of shape {tuple(self.cluster.shape)} and labels of shape "
                             f"{tuple(self.observed.shape)} do not fit the Gram matrix of n = {n} noise patches")

    @classmethod
    def of(cls, sample: XorSample, cnn: TwoLayerCNN, sigma_xi: float = 1.0) -> "XorGramTraining":
        """The same problem as ``Training(cnn, sample.x, sample.observed)``; members share the places of clusters."""
        gram = XorGram.of(sample, cnn.w.detach().flatten(-3, -2))
        cluster = sample.cluster.flatten(0, -2)[0] if sample.cluster.ndim > 1 else sample.cluster
        return cls(gram, cluster, sample.observed.to(gram.w_w), cnn.scale, cnn.activation, sigma_xi=sigma_xi)

    def to(self, *where: Any) -> "XorGramTraining":
        """On another device or in another dtype."""
        device = torch.empty(0).to(*where).device
        return replace(self, gram=self.gram.to(*where), observed=self.observed.to(*where),
                       cluster=self.cluster.to(device))

    @property
    def a(self) -> Float[Tensor, " k"]:
        """Output weights: `scale` for the filters of +1, minus `scale` for those of -1."""
        return self.scale * signs(self.gram.w_w.shape[-1], self.gram.w_w)

    @property
    def y(self) -> Float[Tensor, " n"]:
        """True labels."""
        return 1 - 2 * (self.cluster % 2).to(self.observed)

    def start(self) -> Params:
        """The initial filters in the plane, and no noise."""
        g = self.gram
        members = torch.broadcast_shapes(*(part.shape[:-2] for part in g), self.observed.shape[:-1])
        k, n = g.w_xi.shape[-2:]
        return {"plane": g.plane.expand(*members, k, 2).clone(), "xi": g.w_xi.new_zeros(*members, k, n)}

    def patches(self, params: Params) -> dict[str, Tensor]:
        """Pre-activations of every patch there is: the four clusters ``(*E, k, 4)``, the noise ``(*E, k, n)``."""
        on = torch.einsum("...kp,...sp->...ks", params["plane"], self.gram.signals)
        noise = self.gram.w_xi + torch.einsum("...kn,...np->...kp", params["xi"], self.gram.xi_xi)
        return {"clusters": torch.cat([on, -on], -1), "noise": noise}

    @cached_property
    def reference(self) -> dict[str, Tensor]:
        """Pre-activations of all training patches before training."""
        return self.patches(self.start())

    def respond(self, z: Tensor, patch: str) -> Tensor:
        """What a filter makes of a patch's pre-activation."""
        if not self.tangent:
            return self.activation(z)
        z, z_0 = z.chunk(2, -1) if patch == "fresh" else (z, self.reference[patch])
        return tangent(self.activation, z, z_0)

    def slope(self, z: Tensor, patch: str) -> Tensor:
        """The derivative of `respond`."""
        return self.activation.slope(self.reference[patch] if self.tangent else z)

    def vjp(self, upstream: Tensor, z: Tensor, patch: str) -> Tensor:
        """`upstream` times `slope`."""
        return self.activation.vjp(upstream, self.reference[patch] if self.tangent else z)

    def outputs(self, params: Params) -> Float[Tensor, "*E n"]:
        """Outputs on the training samples."""
        return self._outputs(self.patches(params))

    def on_clusters(self, params: Params) -> Float[Tensor, "*E 4"]:
        """Outputs on +u, +v, -u and -v alone."""
        return torch.einsum("k,...kc->...c", self.a, self.respond(self.patches(params)["clusters"], "clusters"))

    def _outputs(self, z: dict[str, Tensor]) -> Tensor:
        alone = {patch: self.a @ self.respond(value, patch) for patch, value in z.items()}
        return alone["clusters"][..., self.cluster] + alone["noise"]

    def gradient_at(self, params: Params, observed: Tensor) -> Params:
        r"""Gradient in the plane, and the gradient's own coefficients on the :math:`\xi_i`; not the derivative in c."""
        z = self.patches(params)
        loss_derivative = self.loss.slope(self._outputs(z), observed) / self.cluster.shape[-1]
        member = torch.nn.functional.one_hot(self.cluster, 4).to(loss_derivative)
        moved = self.vjp(self.a[:, None] * (loss_derivative @ member)[..., None, :], z["clusters"], "clusters")
        u_v = moved[..., :2] - moved[..., 2:]  # coefficients on u and v
        plane = torch.einsum("...ks,...sp->...kp", u_v, self.gram.signals)
        xi = self.vjp(self.a[:, None] * loss_derivative[..., None, :], z["noise"], "noise")
        return {"plane": plane, "xi": xi}

    def norm(self, direction: Params) -> Float[Tensor, "*E"]:
        """Euclidean length of the weights that a direction in coefficients stands for."""
        outside = torch.einsum("...kn,...np,...kp->...k", direction["xi"], self.gram.xi_xi, direction["xi"])
        return (direction["plane"].square().sum(-1) + outside).sum(-1).sqrt()

    def fresh_root(self, params: Params) -> Float[Tensor, "*E K K"]:
        """The root of the law of what fresh noise shows the filters, in float64; K = 2 k if `tangent`."""
        g, c = self.gram.to(torch.float64), params["xi"].double()
        cross = torch.einsum("...kn,...ln->...kl", c, g.w_xi)
        now = g.w_w + cross + cross.mT + torch.einsum("...kn,...np,...lp->...kl", c, g.xi_xi, c)
        if self.tangent:
            now = joint_gram(now, g.w_w + cross, g.w_w)
        return self.sigma_xi * covariance_factor(now).mT

    def fresh(self, params: Params, standard: Float[Tensor, "points K"]) -> Float[Tensor, "*E points K"]:
        """Pre-activations of fresh noise patches, exactly distributed; trained and initial filters if `tangent`."""
        return (standard.double() @ self.fresh_root(params)).to(params["xi"])

    def fresh_outputs(self, params: Params, standard: Float[Tensor, "points K"], a: Tensor | None = None) -> Tensor:
        """Outputs on fresh noise patches alone, ``(*E, points)``; with output weights of the member's own if given."""
        a = self.a if a is None else a
        return outputs_on_noise(partial(self.respond, patch="fresh"), self.fresh_root(params), a, standard)

    def test_outputs(self, params: Params, standard: Float[Tensor, "points K"]) -> tuple[Tensor, Tensor]:
        """Outputs ``(*E, 2 points)`` on fresh samples of label +1 (from +u, then from -u) and of label -1."""
        return _on_samples(self.on_clusters(params), self.fresh_outputs(params, standard))

    @property
    def test_directions(self) -> int:
        """How many Gaussian numbers one fresh noise patch takes."""
        return self.gram.w_w.shape[-1] * (2 if self.tangent else 1)

    def linear(self) -> "XorGramTraining":
        """The network with its activation taken away: a linear classifier of the sum of the patches."""
        return replace(self, activation=identity)

    def lazy(self) -> "XorGramTraining":
        """The network's first-order expansion about its start."""
        return replace(self, tangent=True)

    def frozen(self) -> "FrozenXorTraining":
        """Random features."""
        return FrozenXorTraining(self)


@dataclass(frozen=True)
class FrozenXorTraining(FrozenGramTraining):
    """Random features of `XorGramTraining`: the initial filters stay, the output weights train."""

    problem: XorGramTraining

    @cached_property
    def _summed(self) -> Tensor:
        """Features of the training samples, both patches summed."""
        return (self.features["clusters"][..., self.problem.cluster] + self.features["noise"]).mT

    def on_clusters(self, params: Params) -> Float[Tensor, "*E 4"]:
        """Outputs on +u, +v, -u and -v alone."""
        return torch.einsum("...k,...kc->...c", params["a"] / self.size, self.features["clusters"])

    def test_outputs(self, params: Params, standard: Float[Tensor, "points k"]) -> tuple[Tensor, Tensor]:
        """Outputs ``(*E, 2 points)`` on fresh samples of label +1 (from +u, then from -u) and of label -1."""
        return _on_samples(self.on_clusters(params), self.fresh_outputs(params, standard))


def _on_samples(alone: Float[Tensor, "*E 4"], noise: Float[Tensor, "*E points"]) -> tuple[Tensor, Tensor]:
    """Outputs on samples of label +1 and of label -1, from those on the clusters and on noise."""
    each = alone[..., :, None] + noise[..., None, :]
    return each[..., [0, 2], :].flatten(-2), each[..., [1, 3], :].flatten(-2)
