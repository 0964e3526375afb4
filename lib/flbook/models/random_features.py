"""The two-layer network whose first layer is drawn at random, and moved by one gradient step."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.models.activations import tanh
from flbook.shapes import per_member


@dataclass(frozen=True)
class RandomFeatures:
    r"""A two-layer network, its output divided by the square root of its width N.

    .. math:: f(x) = \frac{1}{\sqrt N} \sum_{j=1}^N a_j\, \sigma(\langle w_j, x\rangle), \qquad
              w_j \sim N(0, I_d / d), \quad a_j \sim N(0, 1/N)

    With `w` as drawn its features are random features. Every method takes leading ensemble axes.

    Source: Ba et al. (2022), Section 2.
    """

    w: Float[Tensor, "*E N d"]  # first layer, a neuron a row
    a: Float[Tensor, "*E N"]  # second layer
    activation: Callable[[Tensor], Tensor] = tanh  # with its slope: `flbook.models.activations`

    @classmethod
    def draw(
        cls, d: int, width: int, activation: Callable[[Tensor], Tensor] = tanh, seed: int | tuple[int, ...] = 0
    ) -> "RandomFeatures":
        """A network before training, in float64; a tuple of seeds gives one leading ensemble axis."""
        if d < 1 or width < 1:
            raise ValueError(f"d and width must be at least 1: input dimension and neurons; got d={d}, width={width}")
        w = rng.normal((width, d), seed, "weights") / math.sqrt(d)
        return cls(w, rng.normal((width,), seed, "second layer") / math.sqrt(width), activation)

    @property
    def width(self) -> int:
        """Neurons N."""
        return self.w.shape[-2]

    def features(self, x: Float[Tensor, "*#E n d"]) -> Float[Tensor, "*E n N"]:
        r"""What the second layer sees: :math:`N^{-1/2}\sigma(\langle w_j, x_i\rangle)`."""
        return self.activation(self._inner(x)) / math.sqrt(self.width)

    def __call__(self, x: Float[Tensor, "*#E n d"]) -> Float[Tensor, "*E n"]:
        """Outputs for n samples."""
        return torch.einsum("...nk,...k->...n", self.features(x), self.a)

    def gradient(self, x: Float[Tensor, "*#E n d"], y: Float[Tensor, "*#E n"]) -> Float[Tensor, "*E N d"]:
        r"""Gradient of :math:`\frac{1}{2n}\sum_i (f(x_i) - y_i)^2` in the first layer.

        .. math:: \frac{1}{n\sqrt N} \sum_i (f(x_i) - y_i)\, a_j\, \sigma'(\langle w_j, x_i\rangle)\, x_i
        """
        z = self._inner(x)
        residual = torch.einsum("...nk,...k->...n", self.activation(z), self.a) / math.sqrt(self.width) - y
        pull = residual[..., :, None] * self.activation.slope(z) * self.a[..., None, :]
        return torch.einsum("...nk,...nd->...kd", pull, x) / (x.shape[-2] * math.sqrt(self.width))

    def moved(self, gradient: Float[Tensor, "*#E N d"], lr: float | Tensor) -> "RandomFeatures":
        r"""The network after :math:`W \leftarrow W - \eta\sqrt N\,\nabla_W L`; `lr` is :math:`\eta`, or one a member.

        The factor :math:`\sqrt N` makes up for the one in the output: at :math:`\eta = \Theta(1)` the step is as large
        as the start in operator norm, at :math:`\eta = \Theta(\sqrt N)` in Frobenius norm.
        """
        return replace(self, w=self.w - math.sqrt(self.width) * per_member(lr, self.w) * gradient)

    def step(self, x: Float[Tensor, "*#E n d"], y: Float[Tensor, "*#E n"], lr: float | Tensor) -> "RandomFeatures":
        r"""One gradient step on the first layer; `lr` is :math:`\eta` in :math:`\eta\sqrt N`."""
        return self.moved(self.gradient(x, y), lr)

    def spectrum(self, direction: Float[Tensor, " d"]) -> tuple[Float[Tensor, "*E d"], Float[Tensor, "*E d"]]:
        """Squared singular values of W, ascending, and squared cosines of `direction` with their input directions."""
        values, vectors = torch.linalg.eigh(torch.einsum("...kd,...ke->...de", self.w, self.w))
        return values.clamp(min=0), torch.einsum("...ds,d->...s", vectors, direction).square()

    def _inner(self, x: Float[Tensor, "*#E n d"]) -> Float[Tensor, "*E n N"]:
        if x.shape[-1] != self.w.shape[-1]:
            raise ValueError(f"samples of shape {tuple(x.shape)} do not fit neurons of shape {tuple(self.w.shape)}")
        return torch.einsum("...nd,...kd->...nk", x, self.w)
