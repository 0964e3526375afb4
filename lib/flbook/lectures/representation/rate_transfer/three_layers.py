r"""A ReLU network of two hidden layers, trained at many rates at once with its gradients written out.

.. math:: f(x) = V\,\sigma(W\,\sigma(U x)) - f_0(x),

with :math:`f_0` the output at the start: training begins at 0. At the base width all parametrisations are one network;
at m times the base width the start of a layer is :math:`m^s` times, its rate :math:`m^r` times as large.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from flbook import rng
from flbook.training.parametrisation import KINDS, Parametrisation, Rule

Loss = Literal["squared", "cross-entropy"]
_BETA_1, _BETA_2, _EPS = 0.9, 0.999, 1e-12  # of Adam; eps below gradients of order 1/n


@dataclass(frozen=True)
class ThreeLayers:
    """A network of one width, and how it is trained."""

    width: int
    parametrisation: Parametrisation
    rule: Rule = "gradient descent"
    loss: Loss = "squared"
    base: int = 64
    orthogonal: bool = False
    label: float = 0.3  # size of a centred one-hot label under squared loss

    @property
    def ratio(self) -> float:
        """The width over the base width."""
        return self.width / self.base

    def start(self, d: int, classes: int, seed: int) -> list[Tensor]:
        """U, W and V, in float32: variances 2/d, 2/n and 1/n at the base width."""
        n, sizes = self.width, self.parametrisation.size
        shapes = ((n, d), (n, n), (classes, n))
        weights = [rng.normal(shape, seed, f"layer {kind} {n}") for shape, kind in zip(shapes, KINDS, strict=True)]
        if self.orthogonal:  # rows or columns of one length at right angles
            weights = [_orthogonal(w) for w in weights]
        first = ((2 / d) ** 0.5, (2 / self.base) ** 0.5, self.base**-0.5)
        return [(w * size * self.ratio**power).float() for w, size, power in zip(weights, first, sizes, strict=True)]

    def trained(self, start: list[Tensor], x: Tensor, classes: Tensor, lr: Tensor, steps: int) -> list[Tensor]:
        """The weights at the end, one set for each rate, shape (R, ...); every step sees all samples.

        `lr` are the rates at the base width, shape (R,).
        """
        one_by_one = self.width > 300  # large matrices of one rate stay in the cache
        parts = [self._descend(start, x, classes, part, steps) for part in (lr.split(1) if one_by_one else (lr,))]
        return [torch.cat(layer) for layer in zip(*parts, strict=True)]

    def _descend(self, start: list[Tensor], x: Tensor, classes: Tensor, lr: Tensor, steps: int) -> list[Tensor]:
        weights, f_0 = [w.repeat(len(lr), 1, 1) for w in start], self.outputs(start, x)
        rates = [lr[:, None, None] * self.ratio**r for r in self.parametrisation.rates(self.rule)]
        memory = [(torch.zeros_like(w), torch.zeros_like(w)) for w in weights] if self.rule == "Adam" else []
        for now in range(1, steps + 1):
            h = [x, *forward(weights, x)]
            slopes = backward(weights, h, self.residual(h.pop() - f_0, classes))
            for k, (w, slope, layer) in enumerate(zip(weights, slopes, h, strict=True)):
                if memory:
                    w -= rates[k] * adam(*memory[k], slope.mT @ layer, now)
                else:
                    w.baddbmm_((-rates[k] * slope).mT, layer.expand(len(lr), -1, -1))
        return weights

    @staticmethod
    def outputs(weights: list[Tensor], x: Tensor) -> Tensor:
        """The network's outputs, before those at the start are taken off; weights with leading axes or without."""
        return forward(weights, x)[-1]

    def residual(self, f: Tensor, classes: Tensor) -> Tensor:
        """The derivative by the outputs of what descent lowers, `descended`."""
        wanted = self._targets(classes, f)
        return ((f if self.loss == "squared" else f.softmax(-1)) - wanted) / len(classes)

    def descended(self, f: Tensor, classes: Tensor) -> Tensor:
        """What descent lowers: half the squared error, summed over the outputs, or the cross-entropy; a mean."""
        wanted = self._targets(classes, f)
        if self.loss == "squared":
            return (f - wanted).square().sum(-1).mean(-1) / 2
        return -(f.log_softmax(-1) * wanted).sum(-1).mean(-1)

    def value(self, f: Tensor, classes: Tensor) -> Tensor:
        """The loss that is reported, squared loss over that of predicting 0; inf where training diverged."""
        loss = self.descended(f, classes)
        if self.loss == "squared":
            loss = loss / self.descended(torch.zeros_like(f), classes)
        return loss.nan_to_num(nan=torch.inf)

    def _targets(self, classes: Tensor, like: Tensor) -> Tensor:
        one = one_hot(classes, like.shape[-1]).to(like)
        return self.label * (one - 1 / one.shape[-1]) * one.shape[-1] ** 0.5 if self.loss == "squared" else one


def forward(weights: list[Tensor], x: Tensor) -> list[Tensor]:
    """Both hidden layers and the output, shapes (R, B, ...); `x` has shape (B, d)."""
    U, W, V = weights
    first = (x @ U.mT).relu()
    second = (first @ W.mT).relu()
    return [first, second, second @ V.mT]


def backward(weights: list[Tensor], h: list[Tensor], residual: Tensor) -> list[Tensor]:
    """Derivatives by what enters each layer's activation; the gradient of a layer is its transpose times the inputs."""
    _, W, V = weights
    second = (residual @ V) * (h[2] > 0)
    return [(second @ W) * (h[1] > 0), second, residual]


def adam(mean: Tensor, square: Tensor, gradient: Tensor, now: int) -> Tensor:
    """The direction of Adam's step number `now`; the memory is changed in place."""
    mean.lerp_(gradient, 1 - _BETA_1)
    square.lerp_(gradient.square_(), 1 - _BETA_2)
    return (mean / (1 - _BETA_1**now)) / ((square / (1 - _BETA_2**now)).sqrt_() + _EPS)


def _orthogonal(w: Tensor) -> Tensor:
    """The nearest matrix whose rows, or columns, are orthogonal, with entries of mean square 1."""
    left, _, right = torch.linalg.svd(w, full_matrices=False)
    return left @ right * max(w.shape) ** 0.5
