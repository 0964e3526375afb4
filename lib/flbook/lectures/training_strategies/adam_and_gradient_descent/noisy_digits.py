r"""Digits beside noise: filters and errors of gradient descent and Adam, at signal-to-noise ratios from low to high.

Differs from Zou et al. (2023), who show filters of an AlexNet on CIFAR-10: here a two-layer network learns two digits.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
import xarray as xr

from flbook import devices, measures
from flbook.data.images import ImageNoise, digits
from flbook.domains import Count, Natural, Positive, Range
from flbook.models.activations import ReLUPower
from flbook.models.cnn import TwoLayerCNN
from flbook.runs import Grid, axis, labelled, lattice, sweeps
from flbook.shapes import signs
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import Adam, GradientDescent
from flbook.training.problem import Params, Rule

VERSION = 1
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

    @classmethod
    def tiny(cls) -> "Setting":
        """A blink."""
        return cls(snr=(0.2, 0.5), seed=(0, 1), n=10, m=3, steps=10, adam_steps=10)

    @classmethod
    def paper(cls) -> "Setting":
        """Many ratios and draws."""
        return cls(snr=lattice(0.1, 0.8, 7), seed=tuple(range(20)))

    def data(self, snr: float) -> ImageNoise:
        """The data model."""
        return ImageNoise(digits(DIGITS), n=self.n, snr=snr)


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


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Errors, and how much of the longest filters is signal; dimensions (rule, snr, seed)."""
    found = {}
    for snr in setting.snr:
        trained, data = problem(setting, snr, device), setting.data(snr)
        fresh, mu = data.draw_test(setting.seed), data.mu.to(trained.x)
        for name in setting.rule:
            params = fit(trained, *rule(setting, name)).params
            filters = longest(params)
            cosine = (filters @ mu / (filters.norm(dim=-1) * mu.norm())).mean(-1)
            found[name, snr] = (measures.test_error_on(trained, params, fresh.x, fresh.y),
                                measures.train_error(trained, params), cosine)
    cells = [found[name, snr] for name in setting.rule for snr in setting.snr]
    error, missed, cosine = (torch.stack(column).unflatten(0, setting.shape[:2]) for column in zip(*cells, strict=True))
    dims = ("rule", "snr", "seed")
    return labelled({"test_error": (dims, error, "test error", "fraction"),
                     "train_error": (dims, missed, "training error", "fraction"),
                     "cosine": (dims, cosine, "cosine of the longest filter with the signal")}, setting.coordinates())


run = sweeps(measure, chunk={"snr": 1})
