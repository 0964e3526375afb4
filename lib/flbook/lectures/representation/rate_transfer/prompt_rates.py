r"""The best rate of Adam for a transformer of one block that learns linear regression in context, over its width.

The prompt holds pairs (x_j, w.x_j) with fresh w, and a query x. With r(h) = h/|h| sqrt(n) (RMS norm), E the embedding,
s the scale of attention and a_j the weights of the softmax over the pairs,

.. math::
   h_j = E\,(x_j, w \cdot x_j), \quad h = E\,(x, 0), \quad a = \mathrm{softmax}_j\, s\, (Q r(h)) \cdot (K r(h_j)), \\
   h' = h + O V \sum_j a_j\, r(h_j), \qquad h'' = h' + D\,\sigma(U r(h')), \qquad f = R\, r(h'') .

Claims (derived here for the first steps of Adam, each of the size of the rate): they move R r by eta n, the hidden
layers' outputs by eta n a coordinate, and Q r . K r by eta n^2 once both are aligned, times s. In the standard
parametrisation s = n^(-1/2), so attention and hidden layers allow a rate of the order n^(-3/2), the readout n^(-1).
Under maximal update hidden and readout rates are eta/m, the readout starts m^(-1) times as large, and s = 1/n: all of
these moves are of order 1, and the best rate stays; with s = n^(-1/2) scores still grow like sqrt(n).
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from flbook import rng
from flbook.domains import Count, Natural
from flbook.lectures.representation.rate_transfer.three_layers import adam
from flbook.lectures.representation.rate_transfer.tuned_rates import DIVERGED, around
from flbook.runs import Experiment, Grid, among, axis, single_precision
from flbook.training.parametrisation import KINDS, MAXIMAL_UPDATE, STANDARD, Parametrisation


class AttentionScaling(NamedTuple):
    """A parametrisation with its scale of attention, and how the window of rates moves with the width."""

    parametrisation: Parametrisation
    attention: float  # exponent of the width in the scale of attention
    slope: float  # of the window's log2


SERIES = {
    "standard": AttentionScaling(STANDARD, -0.5, -1.5),
    "maximal": AttentionScaling(MAXIMAL_UPDATE, -1.0, 0.0),
    "maximal, attention 1/sqrt(N)": AttentionScaling(MAXIMAL_UPDATE, -0.5, 0.0),
}
AT_BASE = -7.5  # log2 of the rate in the middle of the window at the base width
MATRICES = ("embed", "query", "key", "value", "out", "up", "down", "read")
LAYERS = ("input", *["hidden"] * 6, "output")  # their kinds


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on."""

    series: tuple[str, ...] = axis(("standard", "maximal"), "parametrisation")
    width: tuple[Count, ...] = axis([16, 32], "width N of the states")
    seed: tuple[Natural, ...] = axis(range(2), "seed")
    octave: tuple[float, ...] = axis([k / 2 for k in range(-5, 6)], "octave of the window")
    d: Count = 3
    pairs: Count = 10
    batch: Count = 64  # fresh prompts a step, the same at all widths and rates
    steps: Count = 200
    base: Count = 32  # width at which all series are one network

    def check(self) -> None:
        """Refuse parametrisations that are not known."""
        among("series", self.series, SERIES)


experiment = Experiment(
    Setting, version=1, loops=("series", "width", "seed"), stored="longer",
    gives={"loss": ("error on fresh prompts in the last fifth of the steps, 1 is that of predicting 0", "1",
                    ("series", "width", "seed", "octave")),
           "rate": ("rate η at the base width", "1", ("series", "width", "octave"))},
    presets={
        "tiny": ("Two narrow networks, a few steps", dict(
            width=(4, 8), octave=(-1.0, 0.0, 1.0), pairs=4, batch=8, steps=5, base=4)),
        "longer": ("Four widths and two scales of attention, sixteen seeds", dict(
            series=tuple(SERIES), width=(16, 32, 64, 128), seed=tuple(range(16)))),
    },
)
experiment.kept(single_precision)


def window(s: Setting, name: str, width: int) -> Tensor:
    """The rates tried at one width: around the best at the base width, moved by the slope that is expected."""
    return around(s.octave, AT_BASE, SERIES[name].slope, width / s.base)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Train one width at all rates of its window."""
    lr, tokens = window(s, s.series, s.width), prompts(s)
    begin = [w.to(device) for w in start(s.width, s.d, SERIES[s.series].parametrisation, s.base, s.seed)]
    errors = trained(begin, tokens.to(device), lr.float().to(device), SERIES[s.series], s.base)
    loss = errors[-max(1, s.steps // 5):].mean(0) / s.d  # w.x has the variance d
    return {"loss": loss.nan_to_num(nan=DIVERGED).clamp(max=DIVERGED), "rate": lr}


run = experiment.run


def prompts(s: Setting) -> Tensor:
    """All prompts of a run, float32, shape (steps, batch, pairs + 1, d + 1); each token is x and w.x."""
    x = rng.normal((s.steps, s.batch, s.pairs + 1, s.d), s.seed, "inputs of prompts").float()
    w = rng.normal((s.steps, s.batch, s.d, 1), s.seed, "tasks of prompts").float()
    return torch.cat([x, x @ w], -1)


def start(width: int, d: int, parametrisation: Parametrisation, base: int, seed: int) -> list[Tensor]:
    """The matrices in the order of `MATRICES`, float32: at the base width entries have the variance 1/inputs."""
    shapes = [(width, d + 1), *[(width, width)] * 6, (1, width)]
    inputs, ratio = [d + 1, *[base] * 7], width / base
    powers = [parametrisation.size[KINDS.index(kind)] for kind in LAYERS]
    return [(rng.normal(shape, seed, f"{name} {width}") * size**-0.5 * ratio**power).float()
            for name, shape, size, power in zip(MATRICES, shapes, inputs, powers, strict=True)]


def predict(weights: list[Tensor], tokens: Tensor, scale: float) -> Tensor:
    """What the network says at the query, shape (R, B); `tokens` (B, pairs + 1, d + 1), weights (R, ...).

    Only the query is read and there is one block, so keys and values are never formed: K is applied to the query and V
    to the mean that attention takes. States E t of tokens t have the mean square t.(E'E/n) t, so their RMS norm takes
    numbers of the prompt alone, not of the width.
    """
    embed, query, key, value, out, up, down, read = weights
    pairs, asks = tokens[:, :-1], tokens[:, -1] * tokens.new_tensor([1.0] * (tokens.shape[-1] - 1) + [0.0])
    gram = embed.mT @ embed / embed.shape[-2]
    pairs = pairs * _inverse(((pairs.flatten(0, 1) @ gram).unflatten(1, pairs.shape[:2]) * pairs).sum(-1, keepdim=True))
    state = asks @ embed.mT  # (R, B, n)
    asked = rms(state) @ query.mT @ key @ embed  # (R, B, d + 1)
    share = (scale * (pairs * asked[..., None, :]).sum(-1, keepdim=True)).softmax(-2)
    state = state + (share * pairs).sum(-2) @ embed.mT @ value.mT @ out.mT
    state = state + (rms(state) @ up.mT).relu() @ down.mT
    return (rms(state) @ read.mT)[..., 0]


def rms(h: Tensor) -> Tensor:
    """The last axis scaled to the mean square 1."""
    return h * _inverse(h.square().mean(-1, keepdim=True))


def _inverse(square: Tensor) -> Tensor:
    """What brings a mean square to 1."""
    return (square + 1e-6).rsqrt()


def trained(begin: list[Tensor], tokens: Tensor, lr: Tensor, scaling: AttentionScaling, base: int) -> Tensor:
    """The squared error on every batch just before the step on it, shape (steps, R), for the rates `lr` of shape (R,).

    A member's loss does not hang on the others' weights, so the gradient of the sum holds that of each.
    """
    width = len(begin[0])
    scale = base**-0.5 * (width / base) ** scaling.attention
    powers = [scaling.parametrisation.adam[KINDS.index(kind)] for kind in LAYERS]
    rates = [lr[:, None, None] * (width / base) ** power for power in powers]
    weights = [w.repeat(len(lr), 1, 1).requires_grad_() for w in begin]
    memory, errors = [(torch.zeros_like(w), torch.zeros_like(w)) for w in weights], []
    for now, batch in enumerate(tokens, 1):
        loss = (predict(weights, batch, scale) - batch[:, -1, -1]).square().mean(-1)
        errors.append(loss.detach())
        slopes = torch.autograd.grad(loss.sum(), weights)
        with torch.no_grad():
            for w, rate, kept, slope in zip(weights, rates, memory, slopes, strict=True):
                w -= rate * adam(*kept, slope, now)
    return torch.stack(errors)
