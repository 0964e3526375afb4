r"""Benign and harmful overfitting in a vision transformer: one layer of softmax attention, two orthogonal signals.

Claim (this lecture): from a small start attention turns to the signal if :math:`n\,\mathrm{SNR}^2 > 2`, and takes it
over where `first_stage.border` says; wrong labels can turn it to the noise. Jiang et al. (2024) report both sides.

The rival, mean pooling, is the same network with attention frozen at uniform: a linear classifier on the mean token.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Literal

import torch
import xarray as xr

from flbook import devices, measures, rng
from flbook.data.signal_noise import flipped_labels
from flbook.domains import Count, FlipProbability, Natural, NonNegative, Positive, Range
from flbook.lectures.benign_overfitting.shared.pooled_tokens import PooledTraining
from flbook.lectures.benign_overfitting.vision_transformer.token_span import (
    SpanTraining,
    TokenSpan,
    check_room,
    draw_atoms,
)
from flbook.runs import Experiment, Grid, axis, single_precision
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

GIVES = {
    "test_loss": ("test loss", "nats"),
    "test_error": ("test error", "fraction"),
    "train_loss": ("training loss", "nats"),
    "train_error": ("training error", "fraction"),
    "gamma": ("value of the signal ⟨v,μ⟩", "1"),
    "rho": ("value of the noise ⟨v,ξ⟩", "1"),
    "gap": ("score of the signal less that of the noise", "1"),
    "signal_train": ("attention on the signal, training signals", "fraction"),
    "noise_train": ("attention on the signal, training noise", "fraction"),
    "signal_fresh": ("attention on the signal, fresh signals", "fraction"),
    "noise_fresh": ("attention on the signal, fresh noise", "fraction"),
}
ON_THE_WAY = {
    "noise_right": ("attention on the signal, noise of right labels", "fraction"),
    "noise_wrong": ("attention on the signal, noise of wrong labels", "fraction"),
    "pull_wrong": ("share of the gradient from wrong labels", "fraction"),
}
EIGHTH = 1 / 8


def around(middle: float, places: int, step: float) -> tuple[float, ...]:
    """Numbers in a constant ratio of 2^step, this many on either side of the middle one."""
    return tuple(float(f"{middle * 2 ** (k * step):.5g}") for k in range(-places, places + 1))


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: one sample size, from a weak signal to a strong one."""

    model: tuple[Literal["transformer", "pooling"], ...] = axis(["transformer", "pooling"], "model")
    d: tuple[Count, ...] = axis([100000], "token dimension d")
    n: tuple[Count, ...] = axis([16], "samples n")
    n_snr2: tuple[Positive, ...] = axis([1.0, 2.0, 4.0, 5.0, 6.0, 8.0, 12.0, 16.0, 32.0], "n SNR²")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    flip_prob: FlipProbability = 0.0  # p, exactly pn labels wrong
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
    Setting, version=2, loops=("model", "d", "n"), left=("seed", "n_snr2"), chunk={"n": 1, "seed": 3}, gives=GIVES,
    stored="longer",
    presets={
        "tiny": ("Either side of the border in a blink", dict(
            d=(120, 400), n=(4, 6), n_snr2=(0.5, 40.0), seed=(0, 1), tokens=6, h=2, steps=60, points=16)),
        "wrong_labels": ("The same with one label in eight wrong", dict(flip_prob=EIGHTH)),
        "dimensions": ("One sample size in dimensions that its 60 noise tokens do not fill", dict(
            model=("transformer",), d=(1200, 19200, 307200), n=(4,), n_snr2=around(4.0, 4, 1 / 8))),
        "large_start": ("Initial queries and keys a hundred times as large", dict(
            d=(10000,), n=(8,), sigma_0=1.0, n_snr2=(1.0, 2.0, 4.0, 8.0, 16.0))),
        "longer": ("Sample sizes from 4 to 64 near the border, in a dimension that 960 tokens do not fill", dict(
            model=("transformer",), d=(10**6,), n=(4, 8, 16, 32, 64), n_snr2=around(4.4, 5, 1 / 16),
            seed=tuple(range(30)))),
    },
)  # fmt: skip
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


def atoms(setting: Setting, d: int, n: int) -> torch.Tensor:
    """Inner products of all (seed, n_snr2), in that order of ensemble axes; no d-dimensional array is kept."""
    snr = (torch.tensor(setting.n_snr2, dtype=torch.float64) / n) ** 0.5
    start = (setting.sigma_0, setting.sigma_v)
    return draw_atoms(n * (setting.tokens - 1), setting.h, d, snr, *start, setting.seed)


def problem(setting: Setting, d: int, n: int, device: str = "cpu") -> SpanTraining:
    """The training problems of all (seed, n_snr2)."""
    y, observed = flipped_labels(n, setting.flip_prob, 0)
    training = SpanTraining(atoms(setting, d, n), observed, y, setting.tokens, d**-0.5)
    return training.to(devices.device(device)).to(torch.float32)


def pooling(training: TokenSpan) -> tuple[PooledTraining, torch.Tensor]:
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
    """What the lecture follows: losses and errors, who attends to the signal, and what the values have learned."""
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
        quantity("gap", training.score_gap),
        quantity("signal_train", lambda p: train(p, signal)),
        quantity("noise_train", lambda p: train(p, noise)),
        quantity("signal_fresh", lambda p: fresh(p, signal)),
        quantity("noise_fresh", lambda p: fresh(p, noise)),
    ]


def pooled_quantities(rival: PooledTraining, side: torch.Tensor, training: SpanTraining, points: int) -> list[Quantity]:
    """The same of the rival, whose attention is 1/L and whose scores are equal by definition."""
    standard = measures.sobol_normal(8 * points, 1)

    def outputs(params):
        return torch.stack(rival.test_outputs(params, standard), -2)

    def value(params):
        return torch.einsum("...n,...mn->...m", params["head"], side)

    def uniform(params):
        return torch.full_like(params["head"][..., 0], 1 / training.tokens)

    names = ("signal_train", "noise_train", "signal_fresh", "noise_fresh")
    equal = quantity("gap", lambda p: torch.zeros_like(p["head"][..., 0]))
    return [*shared(rival, outputs, value, training), equal, *(quantity(name, uniform) for name in names)]


def shared(model, outputs, value, training: SpanTraining) -> list[Quantity]:
    """Losses, errors and values: `outputs` on fresh samples of either label, `value` of every different token."""
    label = torch.tensor([1.0, -1.0])[:, None].to(training.gram)

    def margin(params):
        return label * outputs(params)

    def gamma(params):
        return (value(params)[..., 0] - value(params)[..., 1]) / 2

    def rho(params):
        noise = value(params)[..., 2:].unflatten(-1, (-1, training.tokens - 1))
        return (training.observed[:, None] * noise).mean((-2, -1))

    return [
        quantity("test_loss", lambda p: model.loss(margin(p), torch.ones_like(label)).mean((-2, -1))),
        quantity("test_error", lambda p: (margin(p) <= 0).to(label).mean((-2, -1))),
        quantity("train_loss", model.train_loss),
        quantity("train_error", lambda p: measures.train_error(model, p)),
        quantity("gamma", gamma),
        quantity("rho", rho),
    ]


def on_the_way(training: SpanTraining) -> list[Quantity]:
    """Noise tokens of samples with right and with wrong labels, and how much of the gradient the wrong ones make."""
    wrong = training.y != training.observed

    def noise(params, which):
        return training.attention(params)[..., which, 1:, 0].mean((-2, -1))

    def pull(params):
        size = training.loss.slope(training.outputs(params), training.observed).abs()
        return size[..., wrong].sum(-1) / size.sum(-1)

    return [
        quantity("noise_right", lambda p: noise(p, ~wrong)),
        quantity("noise_wrong", lambda p: noise(p, wrong)),
        quantity("pull_wrong", pull),
    ]


def quantity(name: str, value: Callable) -> Quantity:
    """A number for each member, under the label that the experiment has for it."""
    return Quantity(name, value, (), *(GIVES | ON_THE_WAY)[name])


def race(
    setting: Setting, device: str = "cpu", names: tuple[str, ...] | None = None, at: list[int] | None = None
) -> xr.Dataset:
    """Quantities step by step, for the transformer at the first d and n; dimensions (step, seed, n_snr2).

    names: which, all by default; those of `ON_THE_WAY` where labels are wrong. at: the steps, all by default.
    """
    n = setting.n[0]
    training = problem(setting, setting.d[0], n, device)
    watched = quantities(training, setting.points) + (on_the_way(training) if setting.flip_prob else [])
    some = [q for q in watched if names is None or q.name in names]
    history = fit(training, rule(setting, n), setting.steps, some, ("seed", "n_snr2"), at=at).history
    return history.assign_coords(setting.coordinates("seed", "n_snr2"))


def starts(setting: Setting) -> tuple[xr.DataArray, xr.DataArray]:
    """u and w of `first_stage.score_gap` before training, over (seed, n_snr2, label, component)."""
    training = problem(setting, setting.d[0], setting.n[0])
    dims = ("seed", "n_snr2", "label", "component")
    coordinates = setting.coordinates("seed", "n_snr2")
    both = training.class_means(training.start())
    return tuple(xr.DataArray(part.cpu().numpy(), dims=dims, coords=coordinates) for part in both)
