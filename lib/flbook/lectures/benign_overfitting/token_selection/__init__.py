r"""Token selection: a trained query in front of a fixed head that knows the signals, on labels of which some are wrong.

Claim (this lecture): fresh samples select the relevant token as one ratio R says, which a least-norm problem gives in
closed form (`selection`); training on only hardens the choice. Sakamoto and Sato (2025) report three regimes.

Trained by gradient flow of the query, over a logarithmic clock, in token coordinates.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
import xarray as xr

from flbook import devices, measures
from flbook.data.signal_noise import flipped_labels
from flbook.domains import Count, FlipProbability, Fraction, Natural, Positive, Range
from flbook.lectures.benign_overfitting.shared.pooled_tokens import PooledTraining
from flbook.lectures.benign_overfitting.shared.token_gram import TokenGram, TokenTraining, gradient_flow
from flbook.lectures.benign_overfitting.shared.tokens import RELEVANT, TokenSelection
from flbook.lectures.benign_overfitting.token_selection.fresh_samples import fresh_samples
from flbook.lectures.benign_overfitting.token_selection.selection_rivals import spectral_error
from flbook.runs import Experiment, Grid, axis, labelled, single_precision
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent
from flbook.training.problem import Params


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    n: tuple[Count, ...] = axis([20], "training samples n")
    d: tuple[Annotated[int, Range(2)], ...] = axis([500, 1000, 2000, 4500], "token dimension d")
    flip_prob: tuple[FlipProbability, ...] = axis([0.2], "share of wrong labels p")  # exactly pn of them
    mu: tuple[Positive, ...] = axis([5.0, 10.0], "signal strength |μ|", "σ_ξ")
    seed: tuple[Natural, ...] = axis(range(20), "seed")
    tokens: Annotated[int, Range(4)] = 8  # L: one relevant, two hints, at least one irrelevant
    varrho: Fraction = 0.1  # share of the signal in a hint
    last: Annotated[int, Range(-7)] = 20  # training ends at the time e^last
    delta: Positive = 0.2  # no score moves by more in a step of the flow
    points: Count = 1024  # fresh samples of either label

    @property
    def times(self) -> list[float]:
        """When the query is looked at, in units of step size times steps: one e-fold apart."""
        return np.exp(np.arange(-7.0, self.last + 1)).tolist()


SHARE, TIMED = "fraction", ("n", "d", "flip_prob", "seed", "mu", "time")
BY_TOKEN = (*TIMED, "token")
experiment = Experiment(
    Setting, version=2, loops=("n", "d", "flip_prob"), left=("seed", "mu"), chunk={"d": 1, "seed": 5}, stored="longer",
    gives={
        "test_error": ("test error", SHARE, TIMED),
        "fitted_flips": ("flipped labels fitted", SHARE, TIMED),
        "selected": ("fresh samples that select the relevant token", SHARE, TIMED),
        "clean": ("attention, samples with right labels", SHARE, BY_TOKEN),
        "flipped": ("attention, samples with wrong labels", SHARE, BY_TOKEN),
        "fresh": ("attention, fresh samples", SHARE, BY_TOKEN),
        "pull": ("pull of the signal ⟨u,μ⟩", "1", TIMED),
        "length": ("response to noise |u|", "1", TIMED),
    },
    beside={
        "time": (lambda setting: setting.times, "training time ηt", "1"),
        "token": (lambda setting: list(range(1, setting.tokens + 1)), "token ℓ", "1"),
    },
    missing=("flipped", "fitted_flips"),  # where no label is wrong
    presets={
        "tiny": ("A few networks in a blink", dict(
            n=(10,), d=(60, 120), mu=(4.0, 10.0), seed=(0, 1), last=0, points=128)),
        "labels": ("From no wrong label to nearly one half of them", dict(
            d=(4000,), flip_prob=(0.0, 0.1, 0.2, 0.3, 0.45), mu=(10.0,))),
        "strengths": ("Signals from where the head alone errs to where nothing with it does", dict(
            d=(2000,), mu=(3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0), seed=tuple(range(10)))),
        "longer": ("Sample sizes from 10 to 40, dimensions to 45 000, few and many wrong labels", dict(
            n=(10, 20, 40), d=(4500, 14000, 45000), flip_prob=(0.1, 0.3), mu=(5.0, 10.0, 14.0),
            seed=tuple(range(25)), points=256)),
    },
)  # fmt: skip


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train at one n, d and p."""
    training = problem(s, s.n, s.d, s.flip_prob, device)
    standard = measures.sobol_normal(s.points, s.tokens)
    path = [seen(training, params, standard) for params in gradient_flow(training, s.times, s.delta)]
    return {name: torch.stack([at[name] for at in path], 2) for name in experiment.gives}


run = experiment.run


def problem(setting: Setting, n: int, d: int, flip_prob: float, device: str = "cpu") -> TokenTraining:
    """The training problems of all (seed, mu) at one n, d and p, in that order of ensemble axes."""
    model = TokenSelection(n, d, 1.0, setting.varrho, setting.tokens, flip_prob)
    y, labels = flipped_labels(n, flip_prob, setting.seed[0])
    strengths = torch.tensor(setting.mu, dtype=torch.float64)
    gram = TokenGram.with_signals(model.noise(n, setting.seed, "noise"), model.pattern(y), strengths)
    pattern = model.pattern(torch.tensor([1.0, -1.0], dtype=torch.float64))
    return TokenTraining(gram, labels, pattern).to(devices.device(device))


def flipped(problem: TokenTraining) -> torch.Tensor:
    """Which samples have a wrong label: the true classes alternate, +1, -1, +1, ..."""
    index = torch.arange(problem.observed.shape[-1], device=problem.observed.device)
    return problem.observed != 1.0 - 2.0 * (index % 2)


def fitted_flips(problem: TokenTraining, params: Params) -> torch.Tensor:
    """Share of the wrong labels that are fitted; nan if there are none."""
    return (problem.predict(params) * problem.observed > 0).double()[..., flipped(problem)].mean(-1)


def seen(problem: TokenTraining, params: Params, standard: torch.Tensor) -> dict[str, torch.Tensor]:
    """All that the experiment gives, at one time."""
    weight, error = fresh_samples(problem, params, standard)
    attention, wrong = problem.attention(params), flipped(problem)
    signal, square = problem.direction(params)
    return {
        "test_error": error,
        "fitted_flips": fitted_flips(problem, params),
        "selected": (weight.argmax(-1) == RELEVANT).double().mean((-2, -1)),
        "clean": attention[..., ~wrong, :].mean(-2),
        "flipped": attention[..., wrong, :].mean(-2),
        "fresh": weight.mean((-3, -2)),
        "pull": signal.mean(-1),
        "length": square.sqrt(),
    }


@experiment.also
def rivals(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """What does without the head: logistic regression on the mean token, a spectral method; over (d, seed, mu)."""
    rows = {"pooled": [], "spectral": []}
    (n,), (p,) = setting.n, setting.flip_prob
    for d in setting.d:
        training = problem(setting, n, d, p, device)
        pooled, steps = PooledTraining.of(training), 1000
        rule = GradientDescent(2 * n * setting.tokens / d)  # of the order of the inverse curvature
        params = fit(pooled, rule, steps).params
        rows["pooled"].append(measures.test_error(pooled, params, setting.points))
        rows["spectral"].append(spectral_error(training, d, p, setting.points))
    dims = ("d", "seed", "mu")
    words = {"pooled": "logistic regression on the mean token", "spectral": "spectral method"}
    given = {name: (dims, rows[name], f"test error, {words[name]}", "fraction") for name in rows}
    return labelled(given, setting.coordinates("d", "seed", "mu"))


@experiment.kept
def kept(dataset: xr.Dataset) -> xr.Dataset:
    """What the package keeps: start and end, without the attention by token, in single precision."""
    late = dataset.drop_dims("token").isel(time=[0, -1])
    return single_precision(late)
