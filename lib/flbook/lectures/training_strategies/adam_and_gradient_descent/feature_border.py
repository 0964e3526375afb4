r"""How much feature noise it takes until sign descent fits the feature with the wrong sign.

Claim (derived on the lecture's page, for noise patches without a common coordinate): as long as all samples pull alike,
the feature turns where :math:`\alpha > \pi/(s\sigma_\xi)^2`. Where samples share coordinates, ns/d of them on one,
their signs cancel, and it takes more.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from flbook import devices
from flbook.domains import Count, Natural, NonNegative, Positive, checked_arguments
from flbook.lectures.training_strategies.adam_and_gradient_descent.sparse_training import SparseTraining, network
from flbook.lectures.training_strategies.shared.sparse_noise import SparseNoise
from flbook.runs import Experiment, Grid, axis, lattice
from flbook.shapes import signs
from flbook.training.fit import fit
from flbook.training.optimizers import Adam, GradientDescent, SignDescent
from flbook.training.problem import Rule

RULES = ("gradient descent", "Adam", "sign descent")


@checked_arguments
def border(s: Count, sigma_xi: Positive) -> float:
    r""":math:`\pi/(s\sigma_\xi)^2`: half of a filter's own samples excite it, and :math:`E\|\xi\|_1 = g`.

    Then :math:`\alpha g^2 / 2 = 1` with :math:`g = s\sigma_\xi\sqrt{2/\pi}`.
    """
    return math.pi / (s * sigma_xi) ** 2


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    rule: tuple[Literal[RULES], ...] = axis(["sign descent", "Adam"], "rule")
    overlap: tuple[NonNegative, ...] = axis([0.0], "samples per noise coordinate ns/d")
    sigma_xi: tuple[Positive, ...] = axis([0.2, 0.4, 0.8], "noise σ_ξ")
    ratio: tuple[Positive, ...] = axis([0.5, 0.8, 1.2, 2.0], "α in units of π/(sσ_ξ)²")
    seed: tuple[Natural, ...] = axis(range(16), "seed")
    n: Count = 40
    s: Count = 50
    m: Count = 8
    sigma_0: Positive = 1e-5
    lr: Positive = 5.0  # of gradient descent
    rate: Positive = 2e-4  # of the others
    steps: Natural = 25

    def check(self) -> None:
        """Refuse feature noise that no patch holds."""
        largest = max(self.ratio) * border(self.s, min(self.sigma_xi))
        if largest >= 1:
            raise ValueError(f"ratio must keep α below 1; {max(self.ratio):g} makes it {largest:.3g}")

    def data(self, sigma_xi: float, ratio: float, overlap: float = 0.0) -> SparseNoise:
        """The data model: noise patches that share no coordinate, or ns/d of them each."""
        alpha, ns = ratio * border(self.s, sigma_xi), self.n * self.s
        d = round(ns / overlap) if overlap else ns + 1
        return SparseNoise(self.n, d, self.s, sigma_xi, alpha, disjoint=not overlap)


experiment = Experiment(
    Setting, version=2, loops=("rule", "overlap", "sigma_xi", "ratio"), chunk={"overlap": 1}, stored="longer",
    gives={"feature": ("response to the feature", "η times steps")},
    presets={
        "tiny": ("A blink", dict(
            rule=RULES, overlap=(0.0, 2.0), sigma_xi=(0.4,), ratio=(0.2, 3.0), seed=(0, 1), n=8, s=20, m=4)),
        "longer": ("Samples that share coordinates, up to the paper's twenty", dict(
            overlap=(0.5, 1.0, 2.0, 5.0, 10.0, 20.0), sigma_xi=(0.4,), ratio=lattice(0.5, 16.0, 11), n=100)),
    },
)


def rule(setting: Setting, name: str) -> Rule:
    """A rule by its name; Adam's epsilon is far below the gradients of so small a start."""
    if name == "gradient descent":
        return GradientDescent(setting.lr)
    return SignDescent(setting.rate) if name == "sign descent" else Adam(setting.rate, epsilon=1e-30)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Mean response to the feature of filters that had it right at the start, in units of step size times steps."""
    data = s.data(s.sigma_xi, s.ratio, s.overlap)
    sample, cnn = data.draw(s.seed), network(data, s.m, s.sigma_0, s.seed)
    trained = SparseTraining(cnn, sample.x, sample.y).to(devices.device(device))
    params = fit(trained, rule(s, s.rule), s.steps).params
    own = signs(2, trained.x)[:, None]
    right = trained.start()["w"][..., 0] * own > 0
    mean = (params["w"][..., 0] * own * right).sum((-2, -1)) / right.sum((-2, -1)).clamp(min=1)
    return {"feature": mean / (s.rate * s.steps)}


run = experiment.run


def turns(mean: np.ndarray, ratio: tuple[float, ...]) -> np.ndarray:
    """Where mean responses to the feature change their sign, on straight lines in log ratio: first axes of `mean`.

    mean: shape ``(..., ratio)``, falling from above zero to below.

    Examples
    --------
    >>> turns(np.array([[1.0, -1.0, -1.0]]), (0.5, 2.0, 4.0)).tolist()
    [1.0]
    """
    steps = np.log(ratio)
    last = (mean > 0).cumprod(-1).sum(-1, keepdims=True) - 1
    if (last < 0).any() or (last == len(ratio) - 1).any():
        raise ValueError("mean must fall from above zero to below it as the ratio grows")
    before, after = (np.take_along_axis(mean, last + k, -1)[..., 0] for k in (0, 1))
    low, high = (steps[last[..., 0] + k] for k in (0, 1))
    return np.exp(low + (high - low) * before / (before - after))
