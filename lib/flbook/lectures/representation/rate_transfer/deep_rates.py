r"""The best rate of residual networks on digits, over their depth, for branches scaled by a power of the depth.

.. math:: h_0 = U x, \qquad h_l = h_{l-1} + D^{-\alpha} W_l \tanh h_{l-1}, \qquad f = V h_D - f_0(x).

Claims: the exponent of the best rate in D. One step of gradient descent moves the output through the D branches by
eta D^(1 - 2 alpha), Adam's first step by eta D^(1 - alpha); the first and the last layer allow a rate of order 1. So
gradient descent has min(0, 2 alpha - 1), and Adam alpha - 1 (derived here for the first step, wherever the signal
stays of order 1, so for alpha >= 1/2).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from flbook import rng
from flbook.data.ten_digits import ten_digits
from flbook.domains import Count, Natural, NonNegative
from flbook.lectures.representation.rate_transfer.three_layers import ThreeLayers, adam
from flbook.lectures.representation.rate_transfer.tuned_rates import DIVERGED, around
from flbook.runs import Experiment, Grid, among, axis, single_precision
from flbook.training.parametrisation import STANDARD

RULES = {"gradient descent": -6.5, "Adam": -9.0}  # and where the window of rates lies at the base depth, log2


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on."""

    rule: tuple[str, ...] = axis(tuple(RULES), "rule")
    alpha: tuple[NonNegative, ...] = axis([0.5, 1.0], "exponent α of the branches")
    depth: tuple[Count, ...] = axis([2, 4, 8], "branches D")
    seed: tuple[Natural, ...] = axis(range(2), "seed")
    octave: tuple[float, ...] = axis([k / 2 for k in range(-4, 5)], "octave of the window")
    width: Count = 64
    samples: Count = 100
    steps: Count = 40
    base: Count = 2  # depth at which the windows of all alpha are one

    def check(self) -> None:
        """Refuse rules that are not known, and more samples than there are."""
        among("rule", self.rule, RULES)
        if self.samples > 1796:
            raise ValueError(f"samples must be at most 1796, the digits that there are; got {self.samples}")


experiment = Experiment(
    Setting, version=1, loops=("rule", "alpha", "depth", "seed"), stored="longer",
    gives={"loss": ("training loss at the end", "1", ("rule", "alpha", "depth", "seed", "octave")),
           "rate": ("rate η", "1", ("rule", "alpha", "depth", "octave")),
           "progress": ("first decrease of the loss over the rate", "1", ("rule", "alpha", "depth", "seed"))},
    presets={
        "book": ("Three depths, two seeds", {}),
        "tiny": ("Two narrow networks, a few steps", dict(
            depth=(1, 2), seed=(0, 1), octave=(-1.0, 0.0, 1.0), width=8, samples=20, steps=3)),
        "longer": ("Four depths, three scales of the branches, ten seeds", dict(
            alpha=(0.0, 0.5, 1.0), depth=(2, 4, 8, 16), seed=tuple(range(10)))),
    },
)
experiment.kept(single_precision)


def exponent(rule: str, alpha: float) -> float:
    """The exponent in the depth of the largest rate at which the first step moves the output by order 1."""
    return alpha - 1 if rule == "Adam" else min(0.0, 2 * alpha - 1)


def window(s: Setting, rule: str, alpha: float, depth: int) -> Tensor:
    """The rates tried at one depth: around the best at the base depth, moved by the exponent that is expected."""
    return around(s.octave, RULES[rule], exponent(rule, alpha), depth / s.base)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Train one depth at all rates of its window."""
    digits = ten_digits(s.samples, s.seed)
    x, classes = digits.x.flatten(1).float().to(device), digits.y.to(device)
    begin = [w.to(device) for w in start(s.width, s.depth, x.shape[-1], 10, s.seed)]
    lr, scale, loss = window(s, s.rule, s.alpha, s.depth), s.depth**-s.alpha, ThreeLayers(s.width, STANDARD)
    weights = trained(begin, scale, x, classes, s.rule, lr.float().to(device), s.steps)
    *h, f_0 = forward(begin, scale, x)
    slopes = gradients(begin, scale, x, h, loss.residual(0 * f_0, classes))
    progress = sum((slope.abs() if s.rule == "Adam" else slope**2).sum() for slope in slopes)
    reached = loss.value(forward(weights, scale, x)[-1] - f_0, classes)
    return {"loss": reached.clamp(max=DIVERGED), "rate": lr, "progress": progress}


run = experiment.run


def start(width: int, depth: int, d: int, classes: int, seed: int) -> list[Tensor]:
    """U, W_1 to W_D and V, in float32: variances 2/d, 1/n and 1/n."""
    shapes = [(width, d), *[(width, width)] * depth, (classes, width)]
    sizes = [(2 / d) ** 0.5, *[width**-0.5] * (depth + 1)]
    return [(rng.normal(shape, seed, f"residual {k} of {depth}") * size).float()
            for k, (shape, size) in enumerate(zip(shapes, sizes, strict=True))]


def forward(weights: list[Tensor], scale: float, x: Tensor) -> list[Tensor]:
    """The states h_0 to h_D and the output, shapes (R, B, ...); `x` has shape (B, d)."""
    first, *blocks, last = weights
    h = [x @ first.mT]
    for W in blocks:
        h.append(h[-1] + scale * h[-1].tanh() @ W.mT)
    return [*h, h[-1] @ last.mT]


def gradients(weights: list[Tensor], scale: float, x: Tensor, h: list[Tensor], residual: Tensor) -> list[Tensor]:
    """The gradient of every layer, from the states and the derivative by the outputs."""
    _, *blocks, last = weights
    found, back = [residual.mT @ h[-1]], residual @ last  # the derivative by h_D
    for W, state in zip(reversed(blocks), reversed(h[:-1]), strict=True):
        signal = state.tanh()
        found.append(scale * back.mT @ signal)
        back = back + scale * (back @ W) * (1 - signal**2)
    return [*reversed([*found, back.mT @ x])]


def trained(begin: list[Tensor], scale: float, x: Tensor, classes: Tensor, rule: str, lr: Tensor, steps: int
            ) -> list[Tensor]:
    """The weights at the end, one set for each of the rates, shape (R, ...); every step sees all samples.

    The squared loss is that of `ThreeLayers`, of the output less that at the start.
    """
    loss, f_0 = ThreeLayers(begin[0].shape[0], STANDARD), forward(begin, scale, x)[-1]
    weights = [w.repeat(len(lr), 1, 1) for w in begin]
    memory = [(torch.zeros_like(w), torch.zeros_like(w)) for w in weights] if rule == "Adam" else []
    for now in range(1, steps + 1):
        *h, f = forward(weights, scale, x)
        slopes = gradients(weights, scale, x, h, loss.residual(f - f_0, classes))
        if memory:
            slopes = [adam(*kept, slope, now) for kept, slope in zip(memory, slopes, strict=True)]
        for w, slope in zip(weights, slopes, strict=True):
            w -= lr[:, None, None] * slope
    return weights
