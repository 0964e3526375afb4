r"""Digits beside noise: errors of gradient descent and Adam over the number of samples and of pixels.

Differs from Zou et al. (2023), who train an AlexNet on CIFAR-10: here a two-layer network learns two digits, each pixel
of which may be a block of several; the noise is drawn for every pixel of a block.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch

from flbook import devices, measures
from flbook.data.images import ImageNoise, ImageSample, digits
from flbook.domains import Count, Natural, Positive, Range
from flbook.models.activations import ReLUPower
from flbook.models.cnn import TwoLayerCNN
from flbook.runs import Experiment, Grid, axis
from flbook.shapes import signs
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import Adam, GradientDescent
from flbook.training.problem import Params, Rule

DIGITS = (3, 8)
RULES = ("gradient descent", "Adam", "Adam, large steps")


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    rule: tuple[Literal[RULES], ...] = axis(["gradient descent", "Adam"], "rule")
    zoom: tuple[Count, ...] = axis([1], "sides of the block that a pixel becomes")
    n: tuple[Annotated[int, Range(2, 300)], ...] = axis([100], "training samples n")
    seed: tuple[Natural, ...] = axis([0], "seed")
    snr: Positive = 0.2
    m: Count = 10  # filters a sign
    sigma_0: Positive = 0.01  # initial weights, over zoom
    lr: Positive = 0.05  # step size of gradient descent, over zoom squared
    rate: Positive = 1e-3  # of Adam, over zoom squared; its large steps are not divided
    steps: Natural = 800  # of gradient descent
    adam_steps: Natural = 1200
    large_steps: Natural = 400

    def data(self, n: int, zoom: int) -> ImageNoise:
        """The data model: pixels of 8 x 8 pictures, each a block of zoom x zoom."""
        pictures = digits(DIGITS)
        pixels = pictures.pixels.repeat_interleave(zoom, -1).repeat_interleave(zoom, -2)
        return ImageNoise(pictures._replace(pixels=pixels), n=n, snr=self.snr)


experiment = Experiment(
    Setting, version=2, loops=("rule", "n", "zoom"), chunk={"n": 1, "zoom": 1}, stored="longer",
    gives={
        "test_error": ("test error", "fraction"),
        "train_error": ("training error", "fraction"),
        "cosine": ("cosine of the longest filter with the signal", "1"),
    },
    presets={
        "tiny": ("A blink", dict(
            rule=RULES, n=(6, 10), zoom=(1, 2), seed=(0, 1), m=3, steps=10, adam_steps=10, large_steps=10)),
        "longer": ("Few and many samples, small and large pictures", dict(
            rule=RULES, n=(40, 60, 100, 200), zoom=(1, 2, 4), seed=tuple(range(20)))),
    },
)


def problem(setting: Setting, n: int, zoom: int, device: str = "cpu") -> Training:
    """The training problems of all seeds."""
    data = setting.data(n, zoom)
    sample = data.draw(setting.seed)
    cnn = TwoLayerCNN(data.d, setting.m, setting.sigma_0 / zoom, ReLUPower(3), scale=1.0, seed=setting.seed)
    return Training(cnn, sample.x, sample.y).to(devices.device(device))


def rule(setting: Setting, name: str, zoom: int) -> tuple[Rule, int]:
    """A rule by its name, and its steps."""
    if name == "gradient descent":
        return GradientDescent(setting.lr / zoom**2), setting.steps
    if name == "Adam":
        return Adam(setting.rate / zoom**2), setting.adam_steps
    return Adam(setting.rate), setting.large_steps


def longest(params: Params, count: int = 1) -> torch.Tensor:
    """The longest filters of either sign, times their sign; shape ``(*E, 2 count, d)``."""
    w = params["w"] * signs(2, params["w"])[:, None, None]
    places = w.norm(dim=-1).topk(count, -1).indices[..., None].expand(*w.shape[:-2], count, w.shape[-1])
    return w.gather(-2, places).flatten(-3, -2)


@experiment.shared("n", "zoom")
def drawn(s: Setting, device: str) -> tuple[Training, ImageSample]:
    """The problems that all rules train, and what they are tested on."""
    return problem(s, s.n, s.zoom, device), s.data(s.n, s.zoom).draw_test(s.seed)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Errors, and how much of the longest filters is signal, after training by one rule."""
    trained, fresh = drawn(s, device)
    mu = s.data(s.n, s.zoom).mu.to(trained.x)
    params = fit(trained, *rule(s, s.rule, s.zoom)).params
    filters = longest(params)
    return {"test_error": measures.test_error_on(trained, params, fresh.x, fresh.y),
            "train_error": measures.train_error(trained, params),
            "cosine": (filters @ mu / (filters.norm(dim=-1) * mu.norm())).mean(-1)}


run = experiment.run
