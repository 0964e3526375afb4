r"""The three cells that the paper reports, step by step, with the query alone trained or keys and query as published.

Claim (Sakamoto and Sato 2025, their published code): after 1000 steps the cells are benign, harmful, and one where
wrong labels are not fitted. Here: which of it holds for which training, and what it was before the first step.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
import xarray as xr

from flbook import devices, measures
from flbook.domains import Count, Natural, Positive
from flbook.lectures.benign_overfitting import token_selection
from flbook.lectures.benign_overfitting.shared.token_gram import TokenGram, TokenTraining
from flbook.lectures.benign_overfitting.shared.tokens import TokenSelection
from flbook.lectures.benign_overfitting.token_selection.fresh_samples import fresh_samples
from flbook.models.cnn import initial_weights
from flbook.runs import Experiment, Grid, axis, single_precision
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

CELLS = {"benign": (2000, 20.0), "harmful": (4500, 5.0), "no overfitting": (1000, 80.0)}  # (d, |mu|), in their words
KEYS = 1 / 3  # W W^T is a third of the identity on average, for W uniform in 1/sqrt(d): one step of the code's query


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    trained: tuple[Literal["query", "query and keys"], ...] = axis(["query"], "what is trained")
    cell: tuple[Literal["benign", "harmful", "no overfitting"], ...] = axis(list(CELLS), "cell as reported")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    n: Count = 20  # training samples
    lr: Positive = 5e-3  # of the published code; for the query alone, with W the identity, a third of it
    steps: Natural = 4000
    points: Count = 1024  # fresh samples of either label


STEPS = (0, 30, 100, 300, 1000, 2000, 4000)  # at which errors are read

experiment = Experiment(
    Setting, version=1, loops=("trained", "cell"), chunk={"seed": 5}, stored="published",
    presets={
        "tiny": ("Thirty steps in the smallest cell", dict(
            trained=("query", "query and keys"), cell=("no overfitting",), seed=(0, 1), steps=30, points=64)),
        "published": ("All three cells, with the query alone trained, and with the keys trained too as published", dict(
            trained=("query", "query and keys"))),
    },
)  # fmt: skip
experiment.kept(single_precision)


@experiment.cell
def cell(s: Setting, device: str) -> xr.Dataset:
    """Train in one cell; dimensions (seed, step)."""
    training = problem(s, device)
    standard, fitted = measures.sobol_normal(s.points, training.tokens), partial(token_selection.fitted_flips, training)
    watched = [Quantity("test_error", lambda params: fresh_samples(training, params, standard)[1], (), "test error",
                        "fraction"),
               Quantity("fitted_flips", fitted, (), "flipped labels fitted", "fraction")]  # fmt: skip
    rule = GradientDescent(s.lr if training.train_keys else KEYS * s.lr)
    at = [step for step in STEPS if step <= s.steps]
    history = fit(training, rule, s.steps, watched, ("seed",), at).history
    return history.transpose("seed", "step").assign_coords(s.coordinates("seed"))


run = experiment.run


def problem(setting: Setting, device: str = "cpu") -> TokenTraining:
    """The training problems of all seeds in one cell."""
    d, mu = CELLS[setting.cell]
    keys, data = setting.trained == "query and keys", TokenSelection(setting.n, d, mu)
    members = []
    for seed in setting.seed:  # one at a time: W is the one large thing here
        sample = data.draw(seed)
        members.append(TokenGram.of(sample, initial_weights(d, d, None, seed) if keys else None))
    gram = TokenGram(*(torch.stack(parts) for parts in zip(*members, strict=True)))
    pattern = data.pattern(torch.tensor([1.0, -1.0], dtype=torch.float64))
    return TokenTraining(gram, sample.observed, pattern, keys).to(devices.device(device))
