r"""Who finds the signal among many noise tokens in few dimensions? The transformer and those that know no attention.

Rivals: mean pooling, that is a linear classifier; a two-layer network with ReLU or its square; and selection without a
network, which averages each class's best tokens and chooses again.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch

from flbook import devices, rng
from flbook.data.signal_noise import flipped_labels
from flbook.domains import Count, FlipProbability, Natural, NonNegative, Positive, Range
from flbook.lectures.benign_overfitting.vision_transformer.chosen_tokens import ChosenTokens
from flbook.lectures.benign_overfitting.vision_transformer.token_filters import FilterTraining
from flbook.lectures.benign_overfitting.vision_transformer.token_span import SpanTraining, TokenSpan, draw_atoms
from flbook.runs import Experiment, Grid, axis, single_precision
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

Rival = Literal["transformer", "pooling", "ReLU network", "ReLU² network", "selection"]


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: a glance at a weak and a strong signal."""

    model: tuple[Rival, ...] = axis(Rival.__args__, "model")
    n_snr2: tuple[Positive, ...] = axis([2.0, 8.0], "n SNR²")
    seed: tuple[Natural, ...] = axis(range(2), "seed")
    n: Count = 16  # samples
    d: Count = 640  # token dimension
    tokens: Annotated[int, Range(2)] = 32  # L
    flip_prob: FlipProbability = 0.0  # p
    h: Count = 4  # width of queries and keys
    m: Count = 10  # filters for either label
    sigma_0: NonNegative = 0.01  # standard deviation of initial queries, keys and filters
    rate: Positive = 0.6  # step size of transformer and pooling in units of n L
    lr: Positive = 0.5  # step size of the filters in units of n m
    steps: Natural = 400
    rounds: Natural = 5  # of selection
    points: Count = 256  # fresh samples of either label


experiment = Experiment(
    Setting, version=1, loops=("model",), left=("seed", "n_snr2"), chunk={"seed": 4}, stored="longer",
    gives={"test_error": ("test error", "fraction"), "test_loss": ("test loss", "nats"),
           "train_error": ("training error", "fraction")},
    presets={
        "tiny": ("All models in a blink", dict(
            n_snr2=(1.0, 20.0), seed=(0, 1), n=4, d=120, tokens=4, steps=40, m=2, points=16)),
        "longer": ("Nine signal strengths, twenty data sets", dict(
            n_snr2=(0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0), seed=tuple(range(20)))),
    },
)  # fmt: skip
experiment.kept(single_precision)


@experiment.shared()
def drawn(s: Setting, device: str) -> torch.Tensor:
    """Inner products of tokens and initial columns, of all (seed, n_snr2): every model has the same data."""
    snr = (torch.tensor(s.n_snr2, dtype=torch.float64) / s.n) ** 0.5
    gram = draw_atoms(s.n * (s.tokens - 1), max(s.h, s.m), s.d, snr, s.sigma_0, 0.001, s.seed)
    return gram.to(devices.device(device)).to(torch.float32)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train one model, or choose tokens, and ask it for fresh samples."""
    problem = problem_of(s, drawn(s, device))
    standard = rng.normal((s.points, s.tokens - 1, problem.width), 0, "test tokens")
    if isinstance(problem, ChosenTokens):
        params = problem.chosen(s.rounds)
    else:
        scale = s.lr * s.n * s.m if isinstance(problem, FilterTraining) else s.rate * s.n * s.tokens
        params = fit(problem, GradientDescent(scale), s.steps).params
    fresh = problem.test(params, standard)
    fresh = fresh[1] if isinstance(problem, SpanTraining) else fresh
    label = torch.tensor([1.0, -1.0])[:, None].to(fresh)
    return {"test_error": (label * fresh <= 0).to(fresh).mean((-2, -1)),
            "test_loss": problem.loss(label * fresh, torch.ones_like(label)).mean((-2, -1)),
            "train_error": (problem.observed * problem.outputs(params) <= 0).to(fresh).mean(-1)}  # fmt: skip


run = experiment.run


def problem_of(s: Setting, gram: torch.Tensor) -> TokenSpan:
    """The model's problem: all tokens, and those of the initial columns that it has."""
    y, observed = (part.to(gram) for part in flipped_labels(s.n, s.flip_prob, 0))
    first, last = 2 + s.n * (s.tokens - 1), gram.shape[-1] - 1
    columns = {
        "transformer": [*range(first, first + 2 * s.h), last],
        "pooling": [*range(first, first + 2 * s.h), last],
        "selection": [],
    }.get(s.model, [*range(first, first + 2 * s.m)])
    atoms = torch.tensor([*range(first), *columns], device=gram.device)
    common = (gram[..., atoms, :][..., atoms], observed, y, s.tokens, s.d**-0.5)
    if s.model == "selection":
        return ChosenTokens.on(*common)
    if s.model in ("transformer", "pooling"):
        return SpanTraining(*common, fixed_attention=s.model == "pooling")
    return FilterTraining(*common, power=2.0 if s.model == "ReLU² network" else 1.0)
