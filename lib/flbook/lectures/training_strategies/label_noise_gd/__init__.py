r"""Label noise, drawn afresh at every step, against gradient descent and label smoothing, with squared ReLU.

Claim (Huang et al. 2025, Theorems 3.2 and 3.3): where n SNR² is small, gradient descent fits every label and errs on at
least 0.24 of fresh samples, while label-noise gradient descent ends at a training loss of order one and a test error
that vanishes. Label smoothing with the same p, which is what label noise does on average, is this page's rival.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
import xarray as xr

from flbook import devices, measures
from flbook.data.signal_noise import alternating_labels, check_sizes, noise_preactivations
from flbook.domains import Count, FlipProbability, Natural, Positive
from flbook.dynamics.gram import GramTraining
from flbook.dynamics.inner_products import Gram
from flbook.dynamics.wishart import check_room, draw_gram
from flbook.lectures.training_strategies.label_noise_gd.lead import Followed
from flbook.models.activations import ReLUPower
from flbook.runs import Experiment, Grid, axis, labelled
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent, LabelNoise, LabelSmoothing
from flbook.training.problem import Rule

RULES = ("gradient descent", "label smoothing", "label noise")


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: the sizes of the paper's experiment, at four times its step.
    """

    rule: tuple[Literal[RULES], ...] = axis(RULES, "rule")
    lr: tuple[Positive, ...] = axis([2.0], "step size η")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    n: Count = 200
    d: Count = 2000
    mu: Positive = 2.0  # signal strength
    sigma_xi: Positive = 0.5  # noise level
    m: Count = 20  # filters a sign
    sigma_0: Positive = 0.01  # initial weights
    flip_prob: FlipProbability = 0.1  # p, of every label at every step
    steps: Count = 400
    points: Count = 512  # fresh noise patches to measure the test error on, each under both labels

    def check(self) -> None:
        """Refuse a dimension in which vectors are too short."""
        check_sizes(self.n, self.d)
        check_room(self.n, 2 * self.m, self.d)

    @property
    def noise_square(self) -> float:
        """S = σ_ξ² d, what the squared length of a noise patch is close to."""
        return self.sigma_xi**2 * self.d

    @property
    def snr(self) -> float:
        """Signal-to-noise ratio."""
        return self.mu / self.noise_square**0.5

    def kick(self, lr: float) -> float:
        """c = 2 η S/(nm): a force X multiplies a noise response by 1 + c X in one step."""
        return 2 * lr * self.noise_square / (self.n * self.m)

    def drift(self, lr: float) -> float:
        """What label noise adds to the signal's lead in a step, to second order in η."""
        p = self.flip_prob
        return (self.kick(lr) * self.snr) ** 2 * self.n / 4 * p * (1 - p) * (1 - self.snr**2)


experiment = Experiment(
    Setting, version=1, loops=("rule", "lr"), chunk={"rule": 1},
    gives={
        "test_error": ("test error", "fraction"),
        "train_loss": ("training loss", "nats"),
        "margin": ("mean training margin", "1"),
    },
    presets={
        "tiny": ("All rules in a blink", dict(
            lr=(0.3, 0.6), seed=(0, 1, 2), n=20, d=400, mu=1.5, m=12, steps=30, points=64)),
        "rates": ("Label noise at four step sizes; half the samples and filters, same n SNR², so that c = η", dict(
            rule=("label noise",), lr=(0.0625, 0.125, 0.25, 0.5), n=100, m=10, mu=8**0.5, flip_prob=0.2)),
        "paper": ("The paper's sizes, and its own step and number of steps", dict(lr=(0.5,), steps=2000)),
    },
)


def problem(setting: Setting, device: str = "cpu") -> GramTraining:
    """The training problems of all seeds; no d-dimensional array is kept."""
    unit = draw_gram(setting.n, 2 * setting.m, setting.d, sigma_0=setting.sigma_0, sigma_xi=setting.sigma_xi,
                     orthogonal=True, seed=setting.seed)
    gram = Gram(*(part[:, 0] for part in unit.with_signals(torch.tensor([setting.mu], dtype=torch.float64))))
    y = alternating_labels(setting.n)
    law = partial(noise_preactivations, sigma_xi=setting.sigma_xi, orthogonal=True)
    training = GramTraining(gram, y, y, scale=1 / setting.m, activation=ReLUPower(2), law=law)
    return training.to(devices.device(device), torch.float32)


def rule(setting: Setting, name: str, lr: float) -> Rule:
    """The rule of this name; the flips of a seed are its own."""
    if name == "gradient descent":
        return GradientDescent(lr)
    if name == "label smoothing":
        return LabelSmoothing(lr, setting.flip_prob)
    return LabelNoise(lr, setting.flip_prob, seed=setting.seed)


@experiment.shared()
def drawn(s: Setting, device: str) -> GramTraining:
    """The problems that every rule trains."""
    return problem(s, device)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train by one rule, at one step size, to the end."""
    training = drawn(s, device)
    params = fit(training, rule(s, s.rule, s.lr), s.steps).params
    return {"test_error": measures.test_error(training, params, s.points), "train_loss": training.train_loss(params),
            "margin": (training.predict(params) * training.observed).mean(-1)}


run = experiment.run


@experiment.also
def race(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Signal, noise, lead, loss and test error step by step; dimensions (step, rule, seed), at the first step size."""
    training = problem(setting, device)
    own = torch.stack([training.y > 0, training.y < 0])[:, None]  # of each sign, its own samples

    def gamma(params):
        return training.signal_learned(params).flatten(-2).amax(-1)

    def rho(params):
        largest = training.noise_memorised(params).amax(-2)  # over filters; (seed, sign, sample)
        return (largest * own.movedim(1, 0)).sum((-2, -1)) / setting.n

    def test_error(params):
        return measures.test_error(training, params, setting.points)

    followed = Followed.of(training)
    quantities = [
        Quantity("gamma", gamma, (), "largest signal coefficient γ"),
        Quantity("rho", rho, (), "largest noise coefficient ρ, mean over samples"),
        Quantity("log_signal", lambda params: followed.logs(params)[0].mean(-1), (), "log of the signal response"),
        Quantity("lead", lambda params: followed.lead(params).mean(-1), (), "the signal's lead Λ"),
        Quantity("train_loss", training.train_loss, (), "training loss", "nats"),
        Quantity("test_error", test_error, (), "test error", "fraction"),
    ]
    histories = [fit(training, rule(setting, name, setting.lr[0]), setting.steps, quantities, ("seed",)).history
                 for name in setting.rule]
    joined = xr.concat(histories, "rule").transpose("step", "rule", "seed")
    return joined.assign_coords(setting.coordinates("rule", "seed"))


@experiment.also
def growth(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """The lead that label noise gives the signal in a step, at every step size; dimensions (lr, seed).

    Between the step 24/c, when the noise has reached its balance, and the one by which theory expects a gain of 0.3.
    """
    training, found = problem(setting, device), []
    followed = Followed.of(training)
    lead = Quantity("lead", lambda params: followed.lead(params).mean(-1))
    for lr in setting.lr:
        first = round(24 / setting.kick(lr))
        last = first + round(0.3 / setting.drift(lr))
        ends = fit(training, rule(setting, "label noise", lr), last, [lead], ("seed",), at=[first, last]).history.lead
        found.append((ends[1] - ends[0]).values / (last - first))
    rate = {"rate": (("lr", "seed"), found, "gain of the signal's lead in a step")}
    return labelled(rate, setting.coordinates("lr", "seed"))


@experiment.also
def late(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Training loss under label noise, averaged over the second half of training; dimensions (seed)."""
    training = problem(setting, device)
    loss = Quantity("train_loss", training.train_loss, (), "training loss", "nats")
    noisy, times = rule(setting, "label noise", setting.lr[0]), range(setting.steps // 2, setting.steps + 1, 5)
    history = fit(training, noisy, setting.steps, [loss], ("seed",), at=times).history
    return history.mean("step", keep_attrs=True).assign_coords(setting.coordinates("seed"))
