r"""Mixup, standard training and rules in between, on common and rare features.

Claim (Zou et al. 2023, abstract, reported): standard training learns common features only, Mixup learns rare ones from
their mixtures with common ones, mostly early in training, and the weights of inputs and labels may differ. The data law
is this book's. Rivals: rare samples counted more often, blended labels alone, blended inputs alone.
"""

import math
from dataclasses import dataclass
from itertools import product
from typing import Literal

import torch
import xarray as xr

from flbook import devices
from flbook.domains import Count, Natural, Positive, Probability
from flbook.lectures.training_strategies.mixup.cross_term import fastest
from flbook.lectures.training_strategies.mixup.mixed_pairs import MixedPairs, StoppedEarly
from flbook.lectures.training_strategies.mixup.squares import on_feature, test_error, training, weighted
from flbook.lectures.training_strategies.shared.common_and_rare import CommonAndRare
from flbook.runs import Experiment, Grid, axis, labelled
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent
from flbook.training.problem import Problem

POINTS = 40  # of a curve over training

RULES = ("standard", "balanced", "labels", "inputs", "mixup", "early")


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    Rules: standard training; rare ones counted so that both features weigh the same; labels blended; inputs blended;
    both, which is Mixup; Mixup for the first steps, then standard training.
    """

    rule: tuple[Literal[RULES], ...] = axis(RULES, "rule")
    share: tuple[Probability, ...] = axis([0.1], "share of rare samples ρ")
    noise_square: tuple[Positive, ...] = axis([20.0], "squared length of the noise S")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    n: Count = 100
    d: Count = 2000
    m: Count = 10  # filters a sign
    sigma_0: Positive = 0.01  # initial weights
    weight: Probability = 0.6  # of the first sample in a pair, λ
    lr: Positive = 2.0  # step size η
    steps: Count = 1000
    early: Natural = 200  # steps of Mixup, where it stops early

    def check(self) -> None:
        """Refuse data that cannot be."""
        for share, noise in product(self.share, self.noise_square):
            self.data(share, noise)

    def data(self, share: float | None = None, noise_square: float | None = None) -> CommonAndRare:
        """The data model of a cell; by default of the first."""
        return CommonAndRare(self.n, self.d, self.share[0] if share is None else share,
                            self.noise_square[0] if noise_square is None else noise_square)

    def pair(self, rule: str) -> tuple[float, float]:
        """Weights of the first sample, in the input and in the label."""
        one = self.weight
        return {"labels": (1.0, one), "inputs": (one, 1.0), "mixup": (one, one)}.get(rule, (1.0, 1.0))

    def growth(self, rule: str, share: float) -> tuple[float, float]:
        """What theory says while outputs are small: growth of log |a| in a step, and a_u/a_v."""
        value, ratio = fastest(share, *self.pair(rule))
        return math.log1p(self.lr / (2 * self.m) * value), ratio


GIVES = {
    "common_error": ("test error, common feature", "fraction"),
    "common_output": ("output on the common feature", "1"),
    "rare_error": ("test error, rare feature", "fraction"),
    "rare_output": ("output on the rare feature", "1"),
}
experiment = Experiment(
    Setting, version=1, loops=("rule", "share", "noise_square"), chunk={"rule": 1, "share": 1, "noise_square": 5},
    gives=GIVES, stored="longer",
    presets={
        "tiny": ("A blink", dict(
            rule=("standard", "balanced", "mixup"), seed=(0, 1), share=(0.2,), n=20, d=200, m=8, lr=0.5,
            noise_square=(4.0,), steps=60, sigma_0=0.05)),
        "longer": ("The borders: shares of rare samples by noise", dict(
            rule=("standard", "mixup"), share=(0.02, 0.04, 0.1, 0.2, 0.4),
            noise_square=tuple(round(2.0 * 2 ** (k / 2), 3) for k in range(13)))),
        "growing": ("While outputs are small, which a tiny start makes last: a hundredfold range of shares", dict(
            rule=("standard", "mixup"), share=(0.005, 0.02, 0.05, 0.2, 0.5), n=400, d=1000, sigma_0=1e-10, lr=20.0)),
    },
)


def problem(setting: Setting, rule: str, share: float | None = None, noise_square: float | None = None,
            device: str = "cpu") -> Problem:
    """The training problems of all seeds under one rule."""
    data = setting.data(share, noise_square)
    plain = training(data, setting.seed, setting.m, setting.sigma_0).to(devices.device(device), torch.float32)
    if rule == "balanced":
        return weighted(plain, data.rare(), 1 / data.share - 1)
    if rule == "early":
        return StoppedEarly(plain, MixedPairs.of_samples(plain, setting.weight), setting.early)
    return plain if rule == "standard" else MixedPairs.of_samples(plain, *setting.pair(rule))


def quantities(training: Problem) -> list[Quantity]:
    """Test errors and outputs on either feature."""
    return [Quantity(f"{kind}_{what}", lambda p, kind=kind, of=of: of(training, p, kind), (), *GIVES[f"{kind}_{what}"])
            for kind in ("common", "rare") for what, of in (("error", test_error), ("output", _mean_output))]


def _mean_output(training: Problem, params, kind) -> torch.Tensor:
    return on_feature(training, params, kind).mean(-1)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train by one rule to the end, at one share and noise."""
    training = problem(s, s.rule, s.share, s.noise_square, device)
    params = fit(training, GradientDescent(s.lr), s.steps).params
    return {quantity.name: quantity.of(params) for quantity in quantities(training)}


run = experiment.run


@experiment.also
def course(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Errors and outputs over training, at the first share and noise; dimensions (step, rule, seed)."""
    at = sorted({round(k * setting.steps / POINTS) for k in range(POINTS + 1)} | {setting.early})
    histories = []
    for rule in setting.rule:
        training = problem(setting, rule, device=device)
        histories.append(fit(training, GradientDescent(setting.lr), setting.steps, quantities(training), ("seed",),
                             at=at).history)
    joined = xr.concat(histories, "rule").transpose("step", "rule", "seed")
    return joined.assign_coords(setting.coordinates("rule", "seed"))


@experiment.also
def growth(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """While outputs are small: growth of the responses in a step, and their ratio; dimensions (rule, share, seed).

    Over the second half of the steps in which theory expects the fastest direction to grow by exp(20), when it leads.
    Responses are lengths over all filters of the feature's own sign, a mean over the two.
    """
    found = []
    for rule, share in product(setting.rule, setting.share):
        training = problem(setting, rule, share, device=device)
        lengths = Quantity("length", lambda p, training=training: _lengths(training, p), ("feature",))
        last = round(20 / setting.growth(rule, share)[0])
        history = fit(training, GradientDescent(setting.lr), last, [lengths], ("seed",), at=[last // 2, last]).history
        log = torch.from_numpy(history.length.values).log()
        rate = (log[1] - log[0]).unflatten(-1, (2, 2)).mean(-1) / (last - last // 2)
        ratio = (log[1].unflatten(-1, (2, 2)).diff(dim=-2)).mean((-2, -1)).exp()
        found.append((rate[..., 0], rate[..., 1], ratio))
    shape = len(setting.rule), len(setting.share), len(setting.seed)
    common, rare, ratio = (torch.stack(column).reshape(shape) for column in zip(*found, strict=True))
    dims = ("rule", "share", "seed")
    return labelled({"common": (dims, common, "growth of the common response in a step"),
                     "rare": (dims, rare, "growth of the rare response in a step"),
                     "ratio": (dims, ratio, "rare over common response")},
                    setting.coordinates("rule", "share", "seed"))


def _lengths(network, params) -> torch.Tensor:
    """Root of the sum of squared responses to v_+, v_-, u_+, u_- of the filters of the same sign; shape (*E, 4)."""
    seen = network.overlaps(params).double()
    m = seen.shape[-2] // 2
    plus, minus = seen[..., :m, :].norm(dim=-2), seen[..., m:, :].norm(dim=-2)
    return torch.stack([plus[..., 0], minus[..., 1], plus[..., 2], minus[..., 3]], -1)
