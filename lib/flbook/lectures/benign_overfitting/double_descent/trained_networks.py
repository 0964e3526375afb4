r"""Two-layer networks of which every weight is trained, over their width: where is their peak?

Claim (Belkin et al. 2019): with all weights trained the threshold is not at as many neurons as samples but at as many
weights as there are numbers to fit, here :math:`N(d + 1 + C) + C = nC` for C classes.
"""

from dataclasses import dataclass

import numpy as np
import torch

from flbook import Adam, Training, devices, fit
from flbook.data.ten_digits import ten_digits
from flbook.domains import Count, Fraction, Natural, Positive
from flbook.lectures.benign_overfitting.double_descent import wrong_labels
from flbook.models.layers import MLP
from flbook.runs import Experiment, Grid, axis, single_precision
from flbook.shapes import Quantity
from flbook.training.losses import squared_classes

PIXELS, CLASSES = 64, 10


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on."""

    wrong: tuple[Fraction, ...] = axis((0.2,), "share of wrong labels")
    width: tuple[Count, ...] = axis((5, 10, 20, 40, 80), "neurons N")
    seed: tuple[Natural, ...] = axis(range(4), "seed")
    n: Count = 200  # training pictures
    rate: Positive = 0.01  # Adam's step at the start; it falls to zero along half a cosine
    steps: Count = 2000
    looks: Count = 40  # times at which a run could have been stopped


experiment = Experiment(
    Setting, version=1, loops=("wrong", "width"), chunk={"wrong": 1, "width": 1}, stored="longer",
    gives={
        "risk": ("test risk", "1"),
        "least_risk": ("least test risk on the way", "1"),
        "test_error": ("test error", "fraction"),
        "train_risk": ("training risk", "1"),
    },
    presets={
        "tiny": ("Two widths for a few steps", dict(
            width=(2, 5), seed=(0, 1), n=20, steps=20, looks=4)),
        "longer": ("Fourteen widths, trained until nothing moves, with and without wrong labels", dict(
            wrong=(0.0, 0.2), width=(2, 5, 8, 11, 14, 17, 20, 24, 30, 40, 60, 100, 200, 400), seed=tuple(range(10)),
            steps=8000)),
    },
)  # fmt: skip
experiment.kept(single_precision)


def threshold(numbers: int) -> float:
    """Neurons N with as many weights, biases included, as there are numbers to fit: N (d + 1 + C) + C."""
    return (numbers - CLASSES) / (PIXELS + 1 + CLASSES)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train one width on all data sets at once."""
    split = ten_digits(s.n, s.seed)
    x, y, x_test, y_test = (part.to(devices.device(device)) for part in (
        split.x.flatten(2).float(), wrong_labels(split.y, s.wrong), split.x_test.flatten(2).float(), split.y_test))
    network = MLP((PIXELS, s.width, CLASSES), torch.tanh, seed=s.seed).to(x)
    problem = Training(network, x, y, squared_classes)

    def risk(params):
        return 2 * squared_classes(problem.predict(params, x_test), y_test.to(x)).mean(-1)

    at = sorted({round(t) for t in np.geomspace(1, s.steps, s.looks)})  # early stops are early
    params, history = fit(problem, Adam(s.rate, horizon=s.steps), s.steps,
                          [Quantity("risk", risk, (), "test risk", "1")], ("seed",), at=at)  # fmt: skip
    error = (problem.predict(params, x_test).argmax(-1) != y_test).double().mean(-1)
    return {"risk": risk(params), "least_risk": history.risk.min("step").values, "test_error": error,
            "train_risk": 2 * problem.train_loss(params)}  # fmt: skip


run = experiment.run
