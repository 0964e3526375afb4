r"""Benign overfitting in token selection: attention in front of a head that knows the signals.

Claim (Sakamoto and Sato 2025): trained on labels of which a fifth is flipped, attention fits all of them and loses
nothing on fresh data, or is harmed, or does not fit the flipped ones, by the ratio of signal to noise.

Settings: the query alone is trained (the theory), or query and W (the published code). All in token coordinates.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import torch
import xarray as xr

from flbook import devices, measures
from flbook.data.signal_noise import flipped_labels
from flbook.domains import Count, FlipProbability, Fraction, Natural, Positive, Range
from flbook.lectures.benign_overfitting.shared.pooled_tokens import PooledTraining
from flbook.lectures.benign_overfitting.shared.token_gram import TokenGram, TokenTraining, gradient_flow
from flbook.lectures.benign_overfitting.shared.tokens import OPPOSED, RELEVANT, TokenSelection
from flbook.models.cnn import initial_weights
from flbook.runs import Experiment, Grid, axis, labelled
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

KEYS = 1 / 3  # W W^T is a third of the identity on average, for W uniform in 1/sqrt(d): one step of the code's query


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: a coarse grid around the three cells that the authors report.
    """

    d: tuple[Annotated[int, Range(2)], ...] = axis([500, 1000, 2000, 4500], "token dimension d")
    mu: tuple[Positive, ...] = axis([5.0, 10.0, 20.0, 40.0], "signal strength |μ|", "σ_ξ")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    n: Count = 20  # training samples
    tokens: Annotated[int, Range(4)] = 8  # L: one relevant, two hints, at least one irrelevant
    varrho: Fraction = 0.1  # share of the signal in a weakly relevant token
    flip_prob: FlipProbability = 0.2  # p, exactly pn labels flipped
    train_keys: bool = False  # train W, too, from PyTorch's default start; else W is the identity, and lr a third
    lr: Positive = 5e-3
    steps: Natural = 1000
    points: Count = 1024  # fresh samples of either label

    @classmethod
    def cell(cls, d: int, mu: float, **change) -> "Setting":
        """One cell of the grid."""
        return cls(d=(d,), mu=(mu,), **change)


CELLS = {"benign": (2000, 20.0), "harmful": (4500, 5.0), "no overfitting": (1000, 80.0)}  # as the paper calls them


experiment = Experiment(
    Setting, version=1, loops=("d",), left=("seed", "mu"), chunk={"d": 2}, stored="longer",
    presets={
        "tiny": ("A few networks in a blink", dict(
            d=(60, 120), mu=(4.0, 10.0), seed=(0, 1), n=10, steps=60, points=128)),
        "longer": ("The signal strengths of the authors' sweep in ten dimensions, the query alone trained", dict(
            d=tuple(range(500, 5001, 500)), mu=tuple(5.0 * k for k in range(1, 21)))),
    },
)


@experiment.cell
def cell(s: Setting, device: str) -> xr.Dataset:
    """Train at one dimension; dimensions (seed, mu), and token where attention is resolved."""
    training = problem(s, s.d, device)
    params = fit(training, rule(s), s.steps).params
    watched = quantities(training, s.points)
    columns = [q.of(params) for q in watched]
    return labelled(variables(("seed", "mu"), watched, columns), s.coordinates("seed", "mu") | token(s))


run = experiment.run


def variables(axes: tuple[str, ...], watched: list[Quantity], columns: Iterable) -> dict[str, tuple]:
    """Quantities over some axes as the variables of a Dataset."""
    return {q.name: ((*axes, *q.dims), values, q.long_name, q.units)
            for q, values in zip(watched, columns, strict=True)}


def token(setting: Setting) -> dict[str, tuple]:
    """The places of a sample's tokens, as a coordinate."""
    return {"token": ("token", list(range(1, setting.tokens + 1)), {"long_name": "token ℓ", "units": "1"})}


def data(setting: Setting, d: int, mu: float = 1.0) -> TokenSelection:
    """The data model of one cell."""
    return TokenSelection(setting.n, d, mu, setting.varrho, setting.tokens, setting.flip_prob)


def problem(setting: Setting, d: int, device: str = "cpu") -> TokenTraining:
    """The training problems of all (seed, mu) at one dimension, in that order of ensemble axes."""
    model = data(setting, d)
    y, observed = flipped_labels(setting.n, setting.flip_prob, setting.seed[0])
    if setting.train_keys:
        gram = with_keys(setting, d)
    else:
        noise = model.noise(setting.n, setting.seed, "noise")
        gram = TokenGram.with_signals(noise, model.pattern(y), torch.tensor(setting.mu, dtype=torch.float64))
    pattern = model.pattern(torch.tensor([1.0, -1.0], dtype=torch.float64))
    return TokenTraining(gram, observed, pattern, setting.train_keys).to(devices.device(device))


def with_keys(setting: Setting, d: int) -> TokenGram:
    """Inner products through an initial W, one (seed, mu) at a time: W is the one large thing here."""
    members = []
    for seed in setting.seed:
        w = initial_weights(d, d, None, seed)
        members.append([TokenGram.of(data(setting, d, mu).draw(seed), w) for mu in setting.mu])
    rows = [[torch.stack(parts) for parts in zip(*row, strict=True)] for row in members]
    return TokenGram(*(torch.stack(parts) for parts in zip(*rows, strict=True)))


def rule(setting: Setting) -> GradientDescent:
    """Gradient descent with the step size of the published code, or with what it amounts to if W is the identity."""
    return GradientDescent(setting.lr if setting.train_keys else KEYS * setting.lr)


def pooled_rule(setting: Setting, d: int) -> GradientDescent:
    """A step size for the pooled rival of the order of its curvature: a pooled sample has length sigma sqrt(d/L)."""
    return GradientDescent(2 * setting.n * setting.tokens / d)


def quantities(problem: TokenTraining, points: int) -> list[Quantity]:
    """What the lecture follows: errors, fitted flips, attention by token of clean, flipped and fresh samples, u."""
    y = problem.observed * flips(problem)
    standard = measures.sobol_normal(points, problem.test_directions).to(problem.observed)

    def attention(params, of_flipped):
        return problem.attention(params)[..., (y != problem.observed) == of_flipped, :].mean(-2)

    def fresh(params):
        return problem.fresh(params, standard)[0].mean((-3, -2))

    def test_error(params):
        plus, minus = problem.test_outputs(params, standard)
        return (measures.error_rate(plus) + measures.error_rate(-minus)) / 2

    def fitted(params):
        right = (problem.predict(params) * problem.observed > 0).double()
        return right[..., y != problem.observed].mean(-1)

    def pull(params):
        return problem.direction(params)[0].mean(-1)

    def length(params):
        return problem.direction(params)[1].sqrt()

    return [
        Quantity("train_error", lambda params: measures.train_error(problem, params), (), "training error", "fraction"),
        Quantity("test_error", test_error, (), "test error", "fraction"),
        Quantity("fitted_flips", fitted, (), "flipped labels fitted", "fraction"),
        Quantity("clean", partial(attention, of_flipped=False), ("token",), "attention, clean samples", "fraction"),
        Quantity("flipped", partial(attention, of_flipped=True), ("token",), "attention, flipped samples", "fraction"),
        Quantity("fresh", fresh, ("token",), "attention, fresh samples", "fraction"),
        Quantity("pull", pull, (), "pull of the signal ⟨u,μ⟩"),
        Quantity("length", length, (), "response to noise |u|"),
    ]


def flips(problem: TokenTraining) -> torch.Tensor:
    """-1 where the label is flipped: the classes alternate, so the true labels are +1, -1, +1, ..."""
    index = torch.arange(problem.observed.shape[-1], device=problem.observed.device)
    return problem.observed * (1.0 - 2.0 * (index % 2))


def race(setting: Setting, device: str = "cpu", at: list[int] | None = None) -> xr.Dataset:
    """Everything of `quantities` step by step at one d; dimensions (step, seed, mu) and token."""
    training = problem(setting, setting.d[0], device)
    watched = quantities(training, setting.points)
    history = fit(training, rule(setting), setting.steps, watched, ("seed", "mu"), at).history
    return history.assign_coords(setting.coordinates("seed", "mu") | token(setting))


def flow(setting: Setting, times: list[float], device: str = "cpu") -> xr.Dataset:
    """The same along gradient flow, over the logarithmic clock of `gradient_flow`; dimensions (time, seed, mu)."""
    training = problem(setting, setting.d[0], device)
    watched = quantities(training, setting.points)
    path = gradient_flow(training, times)
    columns = [[q.of(params) for params in path] for q in watched]
    axes = {"time": ("time", list(times), "time ηt"), **setting.coordinates("seed", "mu")}
    return labelled(variables(tuple(axes), watched, columns), axes | token(setting))


@experiment.also
def pooled(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """The rival that selects nothing and trains its head, at every cell: errors over (d, seed, mu)."""
    rows = []
    for d in setting.d:
        rival = PooledTraining.of(problem(setting, d, device))
        params = fit(rival, pooled_rule(setting, d), setting.steps).params
        rows.append([measures.train_error(rival, params), measures.test_error(rival, params, setting.points)])
    dims, (train, test) = ("d", "seed", "mu"), zip(*rows, strict=True)
    return labelled({"train_error": (dims, train, "training error", "fraction"),
                     "test_error": (dims, test, "test error", "fraction")}, setting.coordinates())


@experiment.kept
def kept(dataset: xr.Dataset) -> xr.Dataset:
    """What the package keeps: all but the attention of irrelevant tokens one by one, in single precision."""
    mean = dataset.sel(token=[RELEVANT + 1, OPPOSED + 1]).mean("seed", keep_attrs=True)
    for name in ("test_error", "fitted_flips"):
        mean[name] = dataset[name]
    return mean.astype("float32", keep_attrs=True)
