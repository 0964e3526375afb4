r"""Where attention takes the signal, against its closed form, over the number of tokens, the start and the time.

Claim (derived in this lecture): n SNR^2 at which a fresh signal token gives itself half of its attention is
`first_stage.border`, at any n, L, start and time.

The signal's strength is given as a multiple of that closed form, so the border should lie at 1 everywhere.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
import xarray as xr

from flbook import fits
from flbook.domains import Count, Natural, NonNegative, Positive, Range
from flbook.lectures.benign_overfitting import vision_transformer
from flbook.lectures.benign_overfitting.vision_transformer import around, first_stage
from flbook.runs import Experiment, Grid, axis, single_precision
from flbook.training.fit import fit


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: a glance at two numbers of tokens and two times."""

    tokens: tuple[Annotated[int, Range(3)], ...] = axis([4, 16], "tokens L")
    sigma_0: tuple[NonNegative, ...] = axis([1e-2], "initial queries and keys σ₀")
    steps: tuple[Natural, ...] = axis([100, 400], "steps t")
    ratio: tuple[Positive, ...] = axis(around(1.0, 2, 1 / 8), "n SNR² over closed form")
    seed: tuple[Natural, ...] = axis(range(4), "seed")
    n: Count = 4  # samples
    d: Count = 1000000  # token dimension
    h: Count = 4  # width of queries and keys
    rate: Positive = 0.6  # step size in units of n L
    points: Count = 64  # fresh samples of either label


experiment = Experiment(
    Setting, version=1, loops=("tokens", "sigma_0", "steps"), left=("seed", "ratio"), chunk={"tokens": 1, "sigma_0": 1},
    gives={"signal_fresh": vision_transformer.GIVES["signal_fresh"]}, stored="longer",
    presets={
        "tiny": ("Two settings in a blink", dict(
            tokens=(4,), sigma_0=(0.01,), steps=(20, 40), ratio=(0.8, 1.2), seed=(0, 1), d=400, points=8)),
        "longer": ("Four numbers of tokens, four starts and three times, near the border", dict(
            tokens=(4, 8, 16, 32), sigma_0=(1e-4, 1e-3, 1e-2, 1e-1), steps=(100, 400, 1600),
            ratio=around(1.0, 4, 1 / 16), seed=tuple(range(10)))),
    },
)  # fmt: skip
experiment.kept(single_precision)


def closed_form(s: Setting, tokens: int, sigma_0: float, steps: int) -> float:
    """The closed form at one cell."""
    return first_stage.border(s.n, tokens, s.rate, steps, s.h, sigma_0)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train at strengths on either side of the closed form."""
    middle = closed_form(s, s.tokens, s.sigma_0, s.steps)
    there = vision_transformer.Setting(
        d=(s.d,), n=(s.n,), n_snr2=tuple(middle * ratio for ratio in s.ratio), seed=s.seed, tokens=s.tokens, h=s.h,
        sigma_0=s.sigma_0, rate=s.rate, steps=s.steps, points=s.points)  # fmt: skip
    training = vision_transformer.problem(there, s.d, s.n, device)
    params = fit(training, vision_transformer.rule(there, s.n), s.steps).params
    watched = vision_transformer.quantities(training, s.points)
    return {q.name: q.of(params) for q in watched if q.name == "signal_fresh"}


run = experiment.run


def borders(found: xr.Dataset, s: Setting) -> xr.Dataset:
    """Measured border, closed form and their ratio at every cell of a result."""
    ratio = fits.crossing(found.signal_fresh, "ratio", 0.5)
    told = ratio.copy(data=[[[closed_form(s, int(tokens), float(sigma_0), int(steps)) for steps in found.steps]
                             for sigma_0 in found.sigma_0] for tokens in found.tokens])  # fmt: skip
    return xr.Dataset({"ratio": ratio, "closed_form": told, "measured": ratio * told})


def mean_miss(found: xr.Dataset) -> fits.Fit:
    """Mean over all cells of the relative distance between measured border and closed form."""
    grid = np.log(found.ratio.to_numpy())

    def of(means):
        return abs(np.exp(fits.first_crossing(means, grid, 0.5)) - 1).mean((1, 2, 3))

    return fits.statistic(found.signal_fresh, of, ("tokens", "sigma_0", "steps", "ratio"))
