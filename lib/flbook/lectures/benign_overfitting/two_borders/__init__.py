r"""Two borders of one network: where it memorises more than it learns, and where it errs on fresh samples.

Claim (derived here): the first step of ReLU networks has :math:`\gamma/\overline\rho = \frac{1-2p}2 n\,\mathrm{SNR}^2`.
So it memorises more than it learns up to a signal that grows like :math:`d^{1/2}`, but errs on fresh samples only up to
one that grows like :math:`d^{1/4}`. Under a power of ReLU above 2 the two are one, and grow like :math:`d^{1/2}`.
"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated

import torch
import xarray as xr

from flbook import devices, fits, measures
from flbook.data.signal_noise import flipped_labels, noise_preactivations
from flbook.domains import Count, FlipProbability, Natural, Positive, Range
from flbook.dynamics.gram import GramTraining
from flbook.dynamics.wishart import check_room, draw_gram
from flbook.models.activations import ReLUPower
from flbook.runs import Experiment, Grid, axis, lattice
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep. The unit of length is sigma_xi."""

    q: tuple[Annotated[float, Range(1)], ...] = axis([1.0], "power q of the activation")  # 1 is ReLU
    n: tuple[Count, ...] = axis([20], "samples n")
    d: tuple[Count, ...] = axis([2000, 32000, 500000, 8000000], "patch dimension d")
    mu: tuple[Positive, ...] = axis(lattice(1.0, 2000.0, 28), "signal strength |μ|", "σ_ξ")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    flip_prob: FlipProbability = 0.0  # p, exactly pn labels flipped
    m: Count = 10  # filters a sign
    start: Positive = 1e-6  # sigma_0 sigma_xi sqrt d: a fresh filter's response to noise
    lr: Positive = 1.0  # step size, in units of nm/(sigma_xi^2 d)
    steps: Annotated[int, Range(1)] = 100
    points: Count = 512  # fresh noise patches to measure the test error on, each under both labels

    def check(self) -> None:
        """Refuse cells in which vectors are too short."""
        for n in self.n:
            for d in self.d:
                check_room(n, 2 * self.m, d)


experiment = Experiment(
    Setting, version=1, loops=("q", "n"), left=("d", "seed", "mu"), chunk={"q": 1, "n": 1, "d": 1},
    gives={
        "first": ("share of the noise in what the first step learns", "fraction"),
        "last": ("share of the noise in what training learns", "fraction"),
        "test_error": ("test error", "fraction"),
    },
    presets={
        "tiny": ("Three signals in two dimensions", dict(
            d=(200, 800), mu=(0.5, 5.0, 50.0), seed=(0, 1, 2), steps=10, points=64)),
        "cube": ("The cube of ReLU, which needs a larger start and more and smaller steps", dict(
            q=(3.0,), d=(32000, 500000, 8000000), mu=lattice(40.0, 2000.0, 21), start=0.1, lr=0.05, steps=600)),
        "flipped": ("ReLU with a tenth of the labels flipped", dict(flip_prob=0.1)),
    },
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train all signals and seeds of one power and sample size: one step, then the others."""
    training = problem(s, s.q, s.n, device)
    rule = GradientDescent(s.lr * s.n * s.m / torch.tensor(s.d, dtype=torch.float32)[:, None, None].to(training.y))
    first = fit(training, rule, 1).params
    last = fit(training, rule, s.steps).params
    return {"first": noise_share(training, first), "last": noise_share(training, last),
            "test_error": measures.test_error(training, last, s.points)}


run = experiment.run


def problem(setting: Setting, q: float, n: int, device: str = "cpu") -> GramTraining:
    """The training problems of all (d, seed, mu), in coefficients; no d-dimensional vector is drawn."""
    root = torch.tensor(setting.d, dtype=torch.float64).sqrt()[:, None]
    gram = draw_gram(n, 2 * setting.m, setting.d, sigma_0=1.0, seed=setting.seed).with_filters(setting.start / root)
    y, observed = flipped_labels(n, setting.flip_prob, setting.seed[0])
    law = partial(noise_preactivations, sigma_xi=1.0)
    training = GramTraining(gram.with_signals(torch.tensor(setting.mu, dtype=torch.float64)), y, observed,
                            scale=1 / setting.m, activation=ReLUPower(q), law=law)
    return training.to(devices.device(device), torch.float32)


def noise_share(training: GramTraining, params: dict[str, torch.Tensor]) -> torch.Tensor:
    r"""The share :math:`\overline\rho/(\gamma + \overline\rho)`, of means over filters and what was memorised."""
    gamma = training.signal_learned(params).mean((-2, -1))
    rho = training.noise_memorised(params)  # 0 or less where a sample has the other label or never met the filter
    rho = rho.clamp_min(0).sum((-3, -2, -1)) / (rho > 0).sum((-3, -2, -1))
    return rho / (gamma + rho)


def border(curve: xr.DataArray, x: str, level: float) -> xr.DataArray:
    """Where the mean over the seeds crosses a level."""
    return fits.crossing(curve, x, level).squeeze(drop=True)


def growth(curve: xr.DataArray, x: str, level: float) -> fits.Fit:
    """Exponent of that place in the dimension."""
    return fits.boundary(curve.squeeze(drop=True), x=x, along="d", level=level)
