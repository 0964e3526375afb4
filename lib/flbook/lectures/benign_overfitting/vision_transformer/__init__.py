r"""Benign and harmful overfitting in a vision transformer: one layer of softmax attention, two orthogonal signals.

Claim (Jiang et al. 2024, Theorems 4.1 and 4.2): trained to a small loss, the transformer attends to the signal and its
test loss is small if :math:`n\,\mathrm{SNR}^2` is above a constant; it attends to noise and its test loss is a constant
if it is below another.

The rival, mean pooling, is the same network with attention frozen at uniform: a linear classifier on the mean token.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Literal

import torch
import xarray as xr

from flbook import devices, measures, rng
from flbook.data.signal_noise import alternating_labels
from flbook.domains import Count, Natural, NonNegative, Positive, Range
from flbook.lectures.benign_overfitting.shared.pooled_tokens import PooledTraining
from flbook.lectures.benign_overfitting.vision_transformer.token_span import SpanTraining, check_room, draw_atoms
from flbook.runs import Experiment, Grid, axis, single_precision
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

GIVES = {
    "test_loss": ("test loss", "nats"),
    "test_error": ("test error", "fraction"),
    "train_loss": ("training loss", "nats"),
    "gamma": ("value of the signal ⟨v,μ⟩", "1"),
    "rho": ("value of the noise ⟨v,ξ⟩", "1"),
    "signal_train": ("attention on the signal, training signals", "fraction"),
    "noise_train": ("attention on the signal, training noise", "fraction"),
    "signal_fresh": ("attention on the signal, fresh signals", "fraction"),
    "noise_fresh": ("attention on the signal, fresh noise", "fraction"),
}


def lattice(low: float, steps: int) -> tuple[float, ...]:
    """Numbers that grow by 2^(1/4): where n doubles, n SNR^2 takes the same values two places further."""
    return tuple(float(f"{low * 2 ** (k / 4):.5g}") for k in range(steps))


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: three sample sizes, ten signal strengths."""

    model: tuple[Literal["transformer", "pooling"], ...] = axis(["transformer", "pooling"], "model")
    d: tuple[Count, ...] = axis([1200], "token dimension d")
    n: tuple[Count, ...] = axis([4, 8, 16], "samples n")
    snr: tuple[Positive, ...] = axis(lattice(0.29730, 10), "SNR = |μ|/(σ_ξ√d)")  # |mu|, over a noise token's length
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    tokens: Annotated[int, Range(2)] = 16  # L, the signal and some noise
    h: Count = 4  # width of queries and keys
    sigma_0: NonNegative = 0.01  # standard deviation of the initial queries and keys
    sigma_v: NonNegative = 0.001  # standard deviation of the initial value vector
    rate: Positive = 0.6  # step size in units of n L, the time that memorising takes
    steps: Natural = 400
    points: Count = 64  # fresh samples of either label

    def check(self) -> None:
        """Refuse cells in which vectors are too short."""
        for d, n in product(self.d, self.n):
            check_room(n * (self.tokens - 1), self.h, d)


experiment = Experiment(
    Setting, version=1, loops=("model", "d", "n"), left=("seed", "snr"), chunk={"n": 1, "seed": 3}, gives=GIVES,
    stored="longer",
    presets={
        "tiny": ("Either side of the boundary in a blink", dict(
            d=(120, 400), n=(4, 6), snr=(0.3, 3.0), seed=(0, 1), tokens=6, h=2, steps=60, points=16)),
        "dimensions": ("One sample size in dimensions that its 120 noise tokens do not fill", dict(
            d=(1200, 19200, 307200), n=(8,), snr=lattice(0.35355, 8))),
        "many_tokens": ("Twice the tokens, few dimensions, on the transformer's benign side: pooling must fail", dict(
            d=(640,), n=(16,), snr=(math.sqrt(0.5),), tokens=32)),
        "sides": ("One sample size, a signal on either side of the boundary", dict(n=(16,), snr=(0.35355, 0.70711))),
        "longer": ("Sample sizes from 4 to 64, in a dimension that 960 tokens do not fill", dict(
            d=(10**6,), n=(4, 6, 8, 12, 16, 24, 32, 48, 64), snr=lattice(0.14865, 14))),
    },
)
experiment.kept(single_precision)


@experiment.shared("d", "n")
def drawn(s: Setting, device: str) -> SpanTraining:
    """The problems that both models train."""
    return problem(s, s.d, s.n, device)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train one model to the end."""
    training = drawn(s, device)
    trained, watched = training, quantities(training, s.points)
    if s.model == "pooling":
        trained, side = pooling(training)
        watched = pooled_quantities(trained, side, training, s.points)
    params = fit(trained, rule(s, s.n), s.steps).params
    return {q.name: q.of(params) for q in watched}


run = experiment.run


def problem(setting: Setting, d: int, n: int, device: str = "cpu") -> SpanTraining:
    """The training problems of all (seed, snr), in that order of ensemble axes; no d-dimensional array is kept."""
    snr = torch.tensor(setting.snr, dtype=torch.float64)
    start = (setting.sigma_0, setting.sigma_v)
    gram = draw_atoms(n * (setting.tokens - 1), setting.h, d, snr, *start, setting.seed)
    y = alternating_labels(n)
    training = SpanTraining(gram, y, y, setting.tokens, d**-0.5)
    return training.to(devices.device(device)).to(torch.float32)


def pooling(training: SpanTraining) -> tuple[PooledTraining, torch.Tensor]:
    """The rival on the same data, in n coordinates, and what each token shows to each coordinate, (*E, M, n)."""
    n, tokens = len(training.y), training.tokens
    plus = (training.y > 0).to(training.gram)
    own = torch.eye(n).to(plus).repeat_interleave(tokens - 1, dim=1)
    mean = torch.cat([plus[:, None], 1 - plus[:, None], own], 1) / tokens  # (n, M)
    side = training.gram[..., : training.span, : training.span] @ mean.T
    pattern = torch.zeros(2, tokens, 2).to(plus)
    pattern[0, 0, 0] = pattern[1, 0, 1] = 1
    return PooledTraining(mean @ side, side[..., :2, :], training.observed, pattern, training.sigma_xi), side


def rule(setting: Setting, n: int) -> GradientDescent:
    """A step size in which memorising a sample takes the same number of steps at every n and L."""
    return GradientDescent(setting.rate * n * setting.tokens)


def quantities(training: SpanTraining, points: int) -> list[Quantity]:
    """What the lecture follows: losses and error, who attends to the signal, and what the value vector has learned."""
    standard = rng.normal((points, training.tokens - 1, training.width), 0, "test tokens")

    def outputs(params):
        return training.test(params, standard)[1]

    def value(params):
        return training.responses(params)[..., -1]

    def train(params, query):
        return training.attention(params)[..., query, 0].mean((-2, -1))

    def fresh(params, query):
        return training.test(params, standard)[0][..., query, 0].mean((-3, -2, -1))

    signal, noise = slice(0, 1), slice(1, None)
    return [
        *shared(training, outputs, value, training),
        quantity("signal_train", lambda p: train(p, signal)),
        quantity("noise_train", lambda p: train(p, noise)),
        quantity("signal_fresh", lambda p: fresh(p, signal)),
        quantity("noise_fresh", lambda p: fresh(p, noise)),
    ]


def pooled_quantities(rival: PooledTraining, side: torch.Tensor, training: SpanTraining, points: int) -> list[Quantity]:
    """The same of the rival, whose attention is 1/L by definition."""
    standard = measures.sobol_normal(8 * points, 1)

    def outputs(params):
        return torch.stack(rival.test_outputs(params, standard), -2)

    def value(params):
        return torch.einsum("...n,...mn->...m", params["head"], side)

    def uniform(params):
        return torch.full_like(params["head"][..., 0], 1 / training.tokens)

    names = ("signal_train", "noise_train", "signal_fresh", "noise_fresh")
    return [*shared(rival, outputs, value, training), *(quantity(name, uniform) for name in names)]


def shared(model, outputs, value, training: SpanTraining) -> list[Quantity]:
    """Losses, error and values: `outputs` on fresh samples of either label, `value` of every different token."""
    label = torch.tensor([1.0, -1.0])[:, None].to(training.gram)

    def margin(params):
        return label * outputs(params)

    def gamma(params):
        return (value(params)[..., 0] - value(params)[..., 1]) / 2

    def rho(params):
        return (training.y[:, None] * value(params)[..., 2:].unflatten(-1, (-1, training.tokens - 1))).mean((-2, -1))

    return [
        quantity("test_loss", lambda p: model.loss(margin(p), torch.ones_like(label)).mean((-2, -1))),
        quantity("test_error", lambda p: (margin(p) <= 0).to(label).mean((-2, -1))),
        quantity("train_loss", model.train_loss),
        quantity("gamma", gamma),
        quantity("rho", rho),
    ]


def quantity(name: str, value: Callable) -> Quantity:
    """A number for each member, under the label that the experiment has for it."""
    return Quantity(name, value, (), *GIVES[name])


@experiment.also
def race(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Everything of `quantities` step by step, for the transformer at the first d and n; (step, seed, snr)."""
    n = setting.n[0]
    training = problem(setting, setting.d[0], n, device)
    watched = quantities(training, setting.points)
    history = fit(training, rule(setting, n), setting.steps, watched, ("seed", "snr")).history
    return history.assign_coords(setting.coordinates("seed", "snr"))


def maps(setting: Setting, device: str = "cpu") -> xr.DataArray:
    """Who looks at whom on fresh data, averaged over samples and seeds: dimensions (snr, query, key)."""
    n = setting.n[0]
    training = problem(setting, setting.d[0], n, device)
    params = fit(training, rule(setting, n), setting.steps).params
    standard = rng.normal((setting.points, training.tokens - 1, training.width), 0, "test tokens")
    mean = training.test(params, standard)[0].mean((0, 2, 3)).cpu().numpy()
    tokens = list(range(1, setting.tokens + 1))
    return xr.DataArray(
        mean, dims=("snr", "query", "key"), attrs={"long_name": "attention", "units": "fraction"},
        coords={**setting.coordinates("snr"),
                "query": ("query", tokens, {"long_name": "token that asks", "units": "1"}),
                "key": ("key", tokens, {"long_name": "token looked at", "units": "1"})},
    )
