r"""Digits beside noise: filters and errors of gradient descent and Adam, at signal-to-noise ratios from low to high.

Differs from Zou et al. (2023), who show filters of an AlexNet on CIFAR-10: here a two-layer network learns two digits.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch

from flbook import devices, measures
from flbook.data.images import ImageNoise, ImageSample, digits
from flbook.domains import Count, Natural, Positive, Range
from flbook.models.activations import ReLUPower
from flbook.models.cnn import TwoLayerCNN
from flbook.runs import Experiment, Grid, axis, lattice
from flbook.shapes import signs
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import Adam, GradientDescent
from flbook.training.problem import Params, Rule

DIGITS = (3, 8)


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    rule: tuple[Literal["gradient descent", "Adam"], ...] = axis(["gradient descent", "Adam"], "rule")
    snr: tuple[Positive, ...] = axis([0.2], "signal-to-noise ratio SNR")
    seed: tuple[Natural, ...] = axis([0], "seed")
    n: Annotated[int, Range(2, 300)] = 100  # samples
    m: Count = 10  # filters a sign
    sigma_0: Positive = 0.01  # initial weights
    lr: Positive = 0.05  # step size of gradient descent
    rate: Positive = 1e-3  # of Adam
    steps: Natural = 800  # of gradient descent
    adam_steps: Natural = 400

    def data(self, snr: float) -> ImageNoise:
        """The data model."""
        return ImageNoise(digits(DIGITS), n=self.n, snr=snr)


experiment = Experiment(
    Setting, version=1, loops=("rule", "snr"), chunk={"snr": 1}, stored="longer",
    gives={
        "test_error": ("test error", "fraction"),
        "train_error": ("training error", "fraction"),
        "cosine": ("cosine of the longest filter with the signal", "1"),
    },
    presets={
        "tiny": ("A blink", dict(snr=(0.2, 0.5), seed=(0, 1), n=10, m=3, steps=10, adam_steps=10)),
        "longer": ("Many ratios and draws", dict(snr=lattice(0.1, 0.8, 7), seed=tuple(range(20)))),
    },
)


def problem(setting: Setting, snr: float, device: str = "cpu") -> Training:
    """The training problems of all seeds."""
    data = setting.data(snr)
    sample = data.draw(setting.seed)
    cnn = TwoLayerCNN(data.d, setting.m, setting.sigma_0, ReLUPower(3), scale=1.0, seed=setting.seed)
    return Training(cnn, sample.x, sample.y).to(devices.device(device))


def rule(setting: Setting, name: str) -> tuple[Rule, int]:
    """A rule by its name, and its steps."""
    if name == "Adam":
        return Adam(setting.rate), setting.adam_steps
    return GradientDescent(setting.lr), setting.steps


def longest(params: Params, count: int = 1) -> torch.Tensor:
    """The longest filters of either sign, times their sign; shape ``(*E, 2 count, d)``."""
    w = params["w"] * signs(2, params["w"])[:, None, None]
    places = w.norm(dim=-1).topk(count, -1).indices[..., None].expand(*w.shape[:-2], count, w.shape[-1])
    return w.gather(-2, places).flatten(-3, -2)


@experiment.shared("snr")
def drawn(s: Setting, device: str) -> tuple[Training, ImageSample]:
    """The problems that both rules train, and what they are tested on."""
    return problem(s, s.snr, device), s.data(s.snr).draw_test(s.seed)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Errors, and how much of the longest filters is signal, after training by one rule."""
    trained, fresh = drawn(s, device)
    mu = s.data(s.snr).mu.to(trained.x)
    params = fit(trained, *rule(s, s.rule)).params
    filters = longest(params)
    return {"test_error": measures.test_error_on(trained, params, fresh.x, fresh.y),
            "train_error": measures.train_error(trained, params),
            "cosine": (filters @ mu / (filters.norm(dim=-1) * mu.norm())).mean(-1)}


run = experiment.run
