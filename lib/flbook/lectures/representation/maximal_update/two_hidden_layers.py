r"""A network of two hidden layers whose start and rates depend on its width, trained by hand-written gradients.

.. math:: f(x) = V\tanh(z_2), \qquad z_2 = W\tanh(z_1), \qquad z_1 = Ux
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.training.parametrisation import Parametrisation, Rule

LAYERS = ("z1", "z2", "f")
BETAS, EPSILON = (0.9, 0.999), 1e-16  # of Adam: epsilon stays below gradients, which shrink with the width


class Weights(NamedTuple):
    """Weights, or one number a layer; axes of an ensemble stand in front."""

    U: Tensor  # (*E, n, d)
    W: Tensor  # (*E, n, n)
    V: Tensor  # (*E, n)


class Outputs(NamedTuple):
    """What the layers say about N inputs."""

    z1: Float[Tensor, "*E N n"]
    z2: Float[Tensor, "*E N n"]
    f: Float[Tensor, "*E N"]


def start(width: int, base: int, x: Tensor, seed: int, parametrisations: list[Parametrisation]) -> Weights:
    """Weights of the size of each parametrisation, from the same draws; V has their axis, U and W serve all of them.

    At the base width all are the same network: z1 and z2 have variance of order 1, and so has f.
    """
    length = x.square().sum(-1).mean().sqrt()
    U, W, V = (rng.normal(shape, seed, f"weights {name}").to(x)
               for name, shape in (("U", (width, x.shape[-1])), ("W", (width, width)), ("V", (width,))))
    sizes = [base**-0.5 * (width / base) ** p.size[2] for p in parametrisations]
    return Weights(U / length, W / width**0.5, torch.stack([size * V for size in sizes]))


def rates(width: int, base: int, lr: float, parametrisations: list[Parametrisation], rule: Rule) -> Weights:
    """Step sizes of the three layers, shape (parametrisation,) each; all are `lr` at the base width."""
    powers = [[(width / base) ** power for power in p.rates(rule)] for p in parametrisations]
    return Weights(*(lr * torch.tensor(powers, dtype=torch.float64).mT))


def outputs(w: Weights, x: Tensor) -> Outputs:
    """One pass forward."""
    z1 = x @ w.U.mT
    z2 = torch.tanh(z1) @ w.W.mT
    return Outputs(z1, z2, (torch.tanh(z2) * w.V[..., None, :]).sum(-1))


def gradients(w: Weights, x: Tensor, target: Tensor) -> Weights:
    """Of half the mean squared error, by the chain rule."""
    z = outputs(w, x)
    h1, h2 = torch.tanh(z.z1), torch.tanh(z.z2)
    residual = (z.f - target) / len(x)
    delta2 = residual[..., None] * w.V[..., None, :] * (1 - h2**2)
    delta1 = (delta2 @ w.W) * (1 - h1**2)
    return Weights(delta1.mT @ x, delta2.mT @ h1, (residual[..., None] * h2).sum(-2))


def descend(w: Weights, x: Tensor, target: Tensor, lr: Weights, rule: Rule = "gradient descent") -> Iterator[Weights]:
    """Weights after one step, after two, and so on; each of the rates has the axes of the ensemble."""
    lr = Weights(lr.U[..., None, None], lr.W[..., None, None], lr.V[..., None])
    mean, square, t = (torch.zeros(()),) * 3, (torch.zeros(()),) * 3, 0
    while True:
        g, t = gradients(w, x, target), t + 1
        if rule == "Adam":
            mean = tuple(BETAS[0] * m + (1 - BETAS[0]) * one for m, one in zip(mean, g, strict=True))
            square = tuple(BETAS[1] * s + (1 - BETAS[1]) * one**2 for s, one in zip(square, g, strict=True))
            first, second = (1 - beta**t for beta in BETAS)
            g = (m / first / ((s / second).sqrt() + EPSILON) for m, s in zip(mean, square, strict=True))
        w = Weights(*(one - step * move for one, step, move in zip(w, lr, g, strict=True)))
        yield w


def moved(w: Weights, x: Tensor, y: Tensor, lr: Weights, steps: tuple[int, ...],
          rule: Rule = "gradient descent") -> Float[Tensor, "3 *E step"]:
    """Root mean square change of the outputs of each layer on the training inputs, after some numbers of steps.

    The function that the start computes is subtracted: what is trained is f - f_0.
    """
    before, found = outputs(w, x), {}
    for t, now in enumerate(descend(w, x, y + before.f, lr, rule), 1):
        if t in steps:
            pairs = zip(outputs(now, x), before, strict=True)
            found[t] = torch.stack([_rms(after - old, lr.V.ndim) for after, old in pairs])
        if t == max(steps):
            return torch.stack([found[t] for t in steps], -1)
    raise AssertionError("descend has no end")


def _rms(change: Tensor, axes: int) -> Tensor:
    """Over all axes but the first ones."""
    return change.square().flatten(axes).mean(-1).sqrt()
