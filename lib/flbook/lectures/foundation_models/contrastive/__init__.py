r"""Contrastive pre-training with one modality and with two.

Claim (Huang et al. 2024, Theorems 4.2 and 4.3): both reach a small training loss, but the features of one modality are
useless downstream and those of two are not. This page's own: what decides is the product of the two views' signal-to-
noise ratios, n SNR SNR~, against 2.
"""

from dataclasses import dataclass, replace
from typing import Literal

import torch
import xarray as xr
from torch import Tensor

from flbook import measures
from flbook.data.signal_noise import check_sizes
from flbook.domains import Count, Natural, NonNegative, Positive
from flbook.dynamics.wishart import check_room
from flbook.lectures.foundation_models.contrastive import downstream, signal_race
from flbook.lectures.foundation_models.contrastive.paired_training import (
    ONE_MODALITY,
    TWO_MODALITIES,
    ContrastiveTraining,
    drawn_pairs,
)
from flbook.lectures.foundation_models.contrastive.two_modalities import TwoModalities
from flbook.runs import Experiment, Grid, axis, labelled
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent
from flbook.training.problem import Params

FASTEST = 0.6  # what a step may add to the signal in the phase diagram
STARTS = 1e-3, 0.03, 0.3, 1.0  # sizes of the initial responses to noise
THIRDS = tuple(2 ** (k / 3) for k in range(-5, 9))  # of an octave: products of two of them are others


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: half the paper's pairs, fewer neurons, and a start so small that growth decides.
    """

    encoders: tuple[Literal[1, 2], ...] = axis([1, 2], "modalities")
    d: tuple[Count, ...] = axis([2000], "dimension d")
    pair: tuple[Positive, ...] = axis([1.25, 1.6, 2.0, 2.5, 3.2], "n SNR SNR~")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    n: Count = 50
    m: Count = 30  # neurons of an encoder
    start: Positive = 1e-3  # size of the initial responses to noise, sigma_0 sigma_xi sqrt(d)
    noise_rate: Positive = 0.2  # what a step adds to the response to a noise patch; sets the step size
    steps: Count = 150
    sigma_eps: NonNegative = 0.1  # of the augmentation
    nu: Positive = 2.0  # signal strength downstream
    points: Count = 512  # fresh noise patches to measure the accuracy on, each under both labels

    def check(self) -> None:
        """Refuse a dimension in which vectors are too short, or pairs that cannot be balanced."""
        check_sizes(self.n, min(self.d))
        check_room(2 * self.n, self.m, min(self.d))

    def lr(self, d: int) -> float:
        """The step size at which a step adds `noise_rate`."""
        return self.noise_rate / signal_race.noise_rate(float(d), self.n, 1.0, self.n // 2)

    def problem(self, encoders: int, d: int, pair: float) -> ContrastiveTraining:
        """Pre-training of all seeds on two views of equal signal strength."""
        size = (pair * d / self.n) ** 0.5
        data = TwoModalities(self.n, d, size, size, sigma_eps=self.sigma_eps, nu_norm=self.nu)
        loss = (ONE_MODALITY, TWO_MODALITIES)[encoders - 1]
        return drawn_pairs(data, self.m, self.start / d**0.5, loss, encoders, self.seed)


GIVES = {
    "accuracy": ("accuracy downstream", "fraction"),
    "train_loss": ("training loss", "nats"),
    "signal": ("largest response to the unit signal", "1"),
    "noise": ("largest response to a noise patch", "1"),
}

experiment = Experiment(
    Setting, version=1, loops=("encoders", "d", "pair"), chunk={"d": 1}, gives=GIVES,
    presets={
        "tiny": ("A blink: what the tests run", dict(
            d=(200, 400), pair=(1.0, 4.0), seed=(0, 1), n=10, m=8, start=0.02, steps=40, points=64)),
        "borders": ("Two modalities in dimensions from 1000 to 64 000", dict(
            encoders=(2,), d=(1000, 8000, 64_000), pair=(1.6, 2.0, 2.5, 3.2))),
        "longer": ("The paper's pairs and neurons, more seeds and products; not its start and step size", dict(
            pair=THIRDS, seed=tuple(range(20)), n=100, m=50, steps=200)),
    },
)


def accuracy(
    problem: ContrastiveTraining, params: Params, nu: float, points: int, stretch: float = 1.0
) -> Tensor:
    """Accuracy on fresh samples of signal strength nu, by a logistic regression on the features of the pre-training.

    stretch: in place of the first signal one that is so many times as long, which training cannot tell (see the page).
    """
    seen, size = problem.embeddings(params, stretch), problem.gram.mu_mu[..., 0].sqrt()
    standard = measures.sobol_normal(points, seen.shape[-1]).to(seen.device)
    fresh = problem.fresh_embeddings(params, nu / size, standard)
    return downstream.accuracy(downstream.logistic_regression(seen, problem.y), *fresh)


def trained(
    setting: Setting, encoders: int, d: int, pair: float, device: str, slower: float = 1.0
) -> tuple[ContrastiveTraining, Params]:
    """The training problem of all seeds, and the coefficients at its end; slower: a factor on the step size."""
    training = setting.problem(encoders, d, pair).to(device, torch.float32)
    return training, fit(training, GradientDescent(slower * setting.lr(d)), setting.steps).params


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Pre-train, ask downstream, and see what the neurons respond to."""
    training, params = trained(s, s.encoders, s.d, s.pair, device)
    signal, noise = training.largest(params)
    return {"accuracy": accuracy(training, params, s.nu, s.points), "train_loss": training.train_loss(params),
            "signal": signal, "noise": noise}


run = experiment.run


@experiment.also
def phase(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Accuracy over n SNR^2, the ratio of the signals, and seeds; one training serves all cells of one product.

    The setting's first dimension; ratios and n SNR^2 in steps of a third of an octave. Steps are smaller where the
    signal would grow by more than `FASTEST` in one.
    """
    d, strengths, ratios = setting.d[0], range(-5, 7), range(-3, 9)
    two = torch.zeros(len(strengths), len(ratios), len(setting.seed))
    for third in range(strengths[0] + ratios[0], strengths[-1] + ratios[-1] + 1):
        pair = 2 ** (third / 3)
        slower = min(1.0, 2 * FASTEST / (setting.noise_rate * pair))
        training, params = trained(setting, 2, d, pair, device, slower)
        for i, strength in enumerate(strengths):
            if third - strength in ratios:  # |mu| is shorter than the geometric mean by the root of the ratio
                stretch = 2 ** ((strength - third) / 6)
                two[i, third - strength - ratios[0]] = accuracy(training, params, setting.nu, setting.points, stretch)
    axes = {"n_snr2": ("n_snr2", [2 ** (k / 3) for k in strengths], r"$n\,\mathrm{SNR}^2$"),
            "ratio": ("ratio", [2 ** (k / 3) for k in ratios], r"ratio of the signals $C_\mu$")}
    return labelled({"accuracy": (("n_snr2", "ratio", "seed"), two, "accuracy downstream", "fraction")},
                    axes | setting.coordinates("seed"))


@experiment.also
def starts(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Accuracy with two modalities over `STARTS`, the products and seeds, in the setting's first dimension."""
    d = setting.d[0]
    right = torch.zeros(len(STARTS), len(setting.pair), len(setting.seed))
    for i, start in enumerate(STARTS):
        for k, pair in enumerate(setting.pair):
            training, params = trained(replace(setting, start=start), 2, d, pair, device)
            right[i, k] = accuracy(training, params, setting.nu, setting.points)
    axes = {"start": ("start", list(STARTS), "size of the initial noise responses")}
    return labelled({"accuracy": (("start", "pair", "seed"), right, "accuracy downstream", "fraction")},
                    axes | setting.coordinates("pair", "seed"))


@experiment.also
def rates(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """The product at which the signal and the fastest noise response grow equally fast; dimensions (d, seed).

    With two modalities, from a start near zero, with noise orthogonal to the signals, at the setting's first product:
    what a step adds to either response, between the steps 30 and 60.
    """
    pair, early, late = setting.pair[0], 30, 60
    border = torch.zeros(len(setting.d), len(setting.seed), dtype=torch.float64)
    for k, d in enumerate(setting.d):
        size = (pair * d / setting.n) ** 0.5
        data = TwoModalities(setting.n, d, size, size, orthogonal=True)
        problem = drawn_pairs(data, setting.m, 1e-9 / d**0.5, TWO_MODALITIES, 2, setting.seed).to(device)
        before, after = (problem.largest(fit(problem, GradientDescent(setting.lr(d)), steps).params)
                         for steps in (early, late))
        signal, noise = ((b / a) ** (1 / (late - early)) - 1 for a, b in zip(before, after, strict=True))
        border[k] = pair * noise / signal
    return labelled({"border": (("d", "seed"), border, "n SNR SNR~ of equal growth", "1")},
                    setting.coordinates("d", "seed"))
