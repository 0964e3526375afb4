r"""Training a two-layer network on samples of one patch in coefficients on the samples, at a cost free of d.

Every gradient of :math:`f(x) = \sum_k a_k \sigma(\langle w_k, x\rangle)` lies in the span of the samples, so

.. math:: w_k(t) = w_k(0) + \sum_i c_{k,i}(t)\, x_i

and the coefficients c are the state. `flbook.dynamics.gram` does the same where signal and noise are separate patches.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.data.signal_noise import noise_preactivations
from flbook.dynamics.fresh import outputs_on_noise
from flbook.dynamics.inner_products import Gram, joint_gram
from flbook.models.activations import LeakyReLU, identity, tangent
from flbook.models.cnn import TwoLayerCNN
from flbook.shapes import signs
from flbook.training.losses import check_labels, hinge
from flbook.training.problem import EmpiricalProblem, Params, convert


class SampleGram(NamedTuple):
    """Inner products of the samples, the signal and the initial filters."""

    x_x: Float[Tensor, "*#E n n"]
    w_x: Float[Tensor, "*#E k n"]
    w_w: Float[Tensor, "*#E k k"]
    x_mu: Float[Tensor, "*#E n"]
    w_mu: Float[Tensor, "*#E k"]
    mu_mu: Float[Tensor, "*#E"]

    @classmethod
    def of(cls, x: Float[Tensor, "*E n d"], mu: Float[Tensor, " d"], w: Float[Tensor, "*E k D"]) -> "SampleGram":
        """From given data and filters."""
        if x.shape[-1] != w.shape[-1]:
            raise ValueError(f"samples of shape {tuple(x.shape)} and filters of shape {tuple(w.shape)} differ in d")
        x_x, w_x, w_w = (torch.einsum(f"...{rows}d,...{columns}d->...{rows}{columns}", left, right)
                         for rows, columns, left, right in (("n", "p", x, x), ("k", "n", w, x), ("k", "l", w, w)))
        return cls(x_x, w_x, w_w, x @ mu, w @ mu, (mu @ mu).expand(x.shape[:-2]))

    @classmethod
    def added(cls, gram: Gram, y: Float[Tensor, "*#E n"]) -> "SampleGram":
        """Signal and noise added up to one patch, :math:`x_i = y_i\\mu + \\xi_i`."""
        y = y.to(gram.w_w)
        cross = y[..., :, None] * gram.mu_xi[..., None, :]
        x_x = gram.mu_mu[..., None, None] * y[..., :, None] * y[..., None, :] + cross + cross.mT + gram.xi_xi
        w_x = gram.w_mu[..., :, None] * y[..., None, :] + gram.w_xi
        return cls(x_x, w_x, gram.w_w, y * gram.mu_mu[..., None] + gram.mu_xi, gram.w_mu, gram.mu_mu)


@dataclass(frozen=True)
class SinglePatchTraining(EmpiricalProblem):
    """The training problem of a two-layer network with fixed output weights, in coefficients on the samples.

    Parameters are ``{"x": (*E, k, n)}``; the weights they stand for are ``w(0) + params["x"] x`` exactly, as direct
    training has them: the network is a `TwoLayerCNN` that meets one patch.
    """

    coefficients = True

    gram: SampleGram
    observed: Float[Tensor, "*#E n"]
    scale: float = 1.0  # weight of a filter in the output
    activation: Callable[[Tensor], Tensor] = LeakyReLU(0.1)
    loss: Any = hinge
    sigma_xi: float | Float[Tensor, "*#E"] = 1.0  # standard deviation of a fresh noise coordinate
    orthogonal: bool = False  # fresh noise without a component along the signal

    def __post_init__(self):
        check_labels(self.observed)
        if self.observed.shape[-1] != self.gram.x_x.shape[-1]:
            raise ValueError(f"labels of shape {tuple(self.observed.shape)} do not fit the Gram matrix of "
                             f"n = {self.gram.x_x.shape[-1]} samples")

    @classmethod
    def of(cls, data: Any, sample: Any, cnn: TwoLayerCNN, loss: Any = hinge) -> "SinglePatchTraining":
        """The same problem as ``Training(cnn, sample.x[..., None, :], sample.observed, loss)``, for a `Mixture`."""
        w = cnn.w.detach().flatten(-3, -2)
        gram = SampleGram.of(sample.x.to(w), sample.mu.to(w), w)
        return cls(gram, sample.observed.to(w), cnn.scale, cnn.activation, loss, data.sigma_xi, orthogonal=True)

    def to(self, *where: Any) -> "SinglePatchTraining":
        """On another device or in another dtype."""
        sigma_xi = self.sigma_xi.to(*where) if isinstance(self.sigma_xi, Tensor) else self.sigma_xi
        gram = SampleGram(*(part.to(*where) for part in self.gram))
        return replace(self, gram=gram, observed=self.observed.to(*where), sigma_xi=sigma_xi)

    @cached_property
    def members(self) -> torch.Size:
        """The ensemble's shape."""
        g = self.gram
        return torch.broadcast_shapes(g.w_x.shape[:-2], g.x_x.shape[:-2], self.observed.shape[:-1])

    def select(self, index: Tensor) -> "SinglePatchTraining":
        """Some members, by their place in the flattened ensemble, along one ensemble axis."""
        def pick(part: Tensor, own: int) -> Tensor:
            flat = part.expand(*self.members, *part.shape[part.ndim - own :]).flatten(0, len(self.members) - 1)
            return flat[index] if self.members else part[None][index]

        gram = SampleGram(*(pick(part, own) for part, own in zip(self.gram, (2, 2, 2, 1, 1, 0), strict=True)))
        sigma_xi = pick(self.sigma_xi, 0) if isinstance(self.sigma_xi, Tensor) else self.sigma_xi
        return replace(self, gram=gram, observed=pick(self.observed, 1), sigma_xi=sigma_xi)

    @cached_property
    def a(self) -> Float[Tensor, " k"]:
        """Output weights: `scale` for the first half of the filters, minus `scale` for the second."""
        return self.scale * signs(self.gram.w_w.shape[-1], self.gram.w_w)

    def start(self) -> Params:
        """Coefficients before training: zero."""
        return {"x": self.gram.w_x.new_zeros(*self.members, *self.gram.w_x.shape[-2:])}

    def preactivations(self, params: Params) -> Float[Tensor, "*E k n"]:
        r"""What the filters see of the training samples, :math:`\langle w_k, x_i\rangle`."""
        return self.gram.w_x + params["x"] @ self.gram.x_x

    def respond(self, z: Tensor, patch: str) -> Tensor:
        """What a filter makes of a pre-activation of ``"train"`` or ``"fresh"`` samples; a rival may differ by it."""
        return self.activation(z)

    def slope(self, z: Tensor, columns: Tensor | None = None) -> Tensor:
        """The derivative of `respond` on training samples: all of them, or those whose `columns` z holds."""
        return self.activation.slope(z)

    def vjp(self, upstream: Tensor, z: Tensor) -> Tensor:
        """`upstream` times `slope`, on all training samples."""
        return self.activation.vjp(upstream, z)

    def respond_all(self, z: Float[Tensor, "*E k n"]) -> Float[Tensor, "*E n"]:
        """Outputs from the filters' pre-activations on the training samples."""
        return self.a @ self.respond(z, "train")

    def outputs(self, params: Params) -> Float[Tensor, "*E n"]:
        """Outputs on the training samples."""
        return self.respond_all(self.preactivations(params))

    def gradient_at(self, params: Params, observed: Tensor) -> Params:
        """The coefficients of the gradient of the mean loss."""
        z = self.preactivations(params)
        return self.gradient_from(z, self.respond_all(z), observed)

    def gradient_from(self, z: Tensor, f: Tensor, observed: Tensor) -> Params:
        """The same, where pre-activations and outputs are known already."""
        slope_of_loss = self.loss.slope(f, observed) / f.shape[-1]
        return {"x": self.vjp(self.a[:, None] * slope_of_loss[..., None, :], z)}

    def norm(self, direction: Params) -> Float[Tensor, "*E"]:
        """Euclidean length of the weights that a direction in coefficients stands for."""
        c = direction["x"]
        return (c @ self.gram.x_x * c).sum((-2, -1)).sqrt()

    def in_float64(self, params: Params) -> tuple["SinglePatchTraining", Params]:
        """Problem and parameters in float64."""
        return self.to(torch.float64), {name: p.double() for name, p in params.items()}

    def weight_gram(self, params: Params) -> Float[Tensor, "*E k k"]:
        r"""Inner products :math:`\langle w_k(t), w_l(t)\rangle` of the trained filters, in float64."""
        exact, c = self.in_float64(params)
        half = c["x"] @ (exact.gram.w_x + c["x"] @ exact.gram.x_x / 2).mT
        return exact.gram.w_w + half + half.mT

    def on_signal(self, params: Params) -> Float[Tensor, "*E k"]:
        r"""What the filters see of the signal, :math:`\langle w_k, \mu\rangle`."""
        return self.gram.w_mu + torch.einsum("...n,...kn->...k", self.gram.x_mu, params["x"])

    def test_filters(self, params: Params) -> tuple[Float[Tensor, "*E K K"], Float[Tensor, "*E K"]]:
        """Inner products of the filters that fresh samples meet, with each other and with the signal, in float64."""
        exact, c = self.in_float64(params)
        return exact.weight_gram(c), exact.on_signal(c)

    def test_outputs(self, params: Params, standard: Float[Tensor, "points K"]) -> tuple[Tensor, Tensor]:
        """Outputs ``(*E, points)`` on fresh samples of label +1 and of -1, exactly distributed, the noise shared."""
        w_w, w_mu = self.test_filters(params)
        eye = torch.eye(w_w.shape[-1], dtype=w_w.dtype, device=w_w.device)
        root = noise_preactivations(w_w, w_mu, self.gram.mu_mu.double(), eye, orthogonal=self.orthogonal)
        root = root * (self.sigma_xi[..., None, None] if isinstance(self.sigma_xi, Tensor) else self.sigma_xi)
        respond = partial(self.respond, patch="fresh")
        return tuple(outputs_on_noise(respond, root, self.a, standard, sign * w_mu) for sign in (1, -1))

    @property
    def test_directions(self) -> int:
        """How many Gaussian numbers a fresh sample takes."""
        return self.gram.w_w.shape[-1]

    def linear(self) -> "SinglePatchTraining":
        """The network with its activation taken away: a linear classifier."""
        return replace(self, activation=identity)

    def lazy(self) -> "LazySinglePatchTraining":
        """The network's first-order expansion about its start."""
        return convert(self, LazySinglePatchTraining)


class LazySinglePatchTraining(SinglePatchTraining):
    r"""The network's first-order expansion about its start: filters keep the slopes that they had."""

    def respond(self, z: Tensor, patch: str) -> Tensor:
        """First-order response; of fresh samples both pre-activations come, trained and initial."""
        z, z_0 = z.chunk(2, -1) if patch == "fresh" else (z, self.gram.w_x)
        return tangent(self.activation, z, z_0)

    def slope(self, z: Tensor, columns: Tensor | None = None) -> Tensor:
        """Its slope, the same at every step."""
        reference = self.gram.w_x.expand(*self.members, *self.gram.w_x.shape[-2:])
        return self.activation.slope(reference if columns is None else reference.gather(-1, columns))

    def vjp(self, upstream: Tensor, z: Tensor) -> Tensor:
        """`upstream` times `slope`."""
        return self.activation.vjp(upstream, self.gram.w_x)

    def test_filters(self, params: Params) -> tuple[Float[Tensor, "*E K K"], Float[Tensor, "*E K"]]:
        """Trained and initial filters side by side: fresh samples meet both."""
        exact, c = self.in_float64(params)
        cross = exact.gram.w_w + c["x"] @ exact.gram.w_x.mT
        on_mu = exact.on_signal(c)
        both = joint_gram(exact.weight_gram(c), cross, exact.gram.w_w)
        return both, torch.cat([on_mu, exact.gram.w_mu.expand_as(on_mu)], -1)

    @property
    def test_directions(self) -> int:
        """Trained and initial filters."""
        return 2 * super().test_directions
