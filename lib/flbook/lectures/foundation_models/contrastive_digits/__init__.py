r"""What contrastive pre-training keeps of coloured digits: the colour, the digit, or both.

Claim (Huang et al. 2024, Theorems 4.2 and 4.3, and Table 1): from one modality contrastive learning takes up what does
not predict on other data, from two modalities what does. Here the colour is tied to the class in training, and to
another class at the test. Rivals: pixels, an untrained encoder, views in other colours, captions without the colour,
and classifiers that are given the same labels.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
import xarray as xr
from torch import Tensor

from flbook import devices
from flbook.domains import Count, Natural, Positive, Probability
from flbook.lectures.foundation_models.contrastive_digits.coloured_classes import (
    CLASSES,
    ColouredClasses,
    ColouredPictures,
)
from flbook.lectures.foundation_models.contrastive_digits.linear_probe import linear_probe
from flbook.lectures.foundation_models.contrastive_digits.pretraining import TRAINED, DigitPretraining
from flbook.runs import Experiment, Grid, axis
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.optimizers import Adam

UNTRAINED = ("pixels", "grey pixels", "untrained")
PARTNERS = (*UNTRAINED, *TRAINED)


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    partner: tuple[Literal[PARTNERS], ...] = axis(PARTNERS, "what pictures are paired with")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    n: Count = 1000  # pictures to train on, of 1797
    tied: Probability = 0.775  # the colour is that of the label, else any
    replaced: Probability = 0.1  # the label is any, not the digit's class
    hidden: Count = 128
    features: Count = 64
    temperature: Positive = 0.2
    head: bool = False  # with views: compute the loss behind one more hidden layer
    moved: bool = False  # show captions and classes random views, too
    gain: Positive = 2.0  # of the encoder's initial weights
    size: Count = 200  # pictures a batch
    steps: Natural = 150
    lr: Positive = 0.002

    def check(self) -> None:
        """Refuse a batch that is larger than the data, and too few pictures to leave a test."""
        if self.size > self.n:
            raise ValueError(f"size must be at most n = {self.n}, pictures of a batch; got {self.size}")
        self.data()

    def data(self, **changed: float) -> ColouredClasses:
        """The law of the training pictures, with some of its numbers changed."""
        return ColouredClasses(**({"n": self.n, "tied": self.tied, "replaced": self.replaced} | changed))

    def problem(self, partner: str, device: str = "cpu") -> DigitPretraining:
        """The pre-training of all seeds."""
        known = partner if partner in TRAINED else "views"  # whose encoder stays as it was drawn
        problem = DigitPretraining(self.data(), known, self.seed, self.hidden, self.features, self.temperature,
                                   self.size, self.head, self.moved, self.gain)
        return problem.to(devices.device(device))


GIVES = {
    "shifted": ("accuracy of the probe, palette shifted", "fraction"),
    "same": ("accuracy of the probe, palette of training", "fraction"),
    "free": ("accuracy of a probe fitted where colours are random, there", "fraction"),
    "colour": ("accuracy of a colour probe fitted where colours are random, there", "fraction"),
    "answers_shifted": ("accuracy of the own answers, palette shifted", "fraction"),
    "answers_same": ("accuracy of the own answers, palette of training", "fraction"),
}
MISSING = ("answers_shifted", "answers_same")  # only an encoder trained on captions answers by itself

experiment = Experiment(
    Setting, version=1, loops=("partner",), chunk={"partner": 1}, gives=GIVES, missing=MISSING,
    presets={
        "tiny": ("A blink", dict(seed=(0, 1), n=60, hidden=16, features=12, size=20, steps=12)),
        "longer": ("A wider encoder, more pictures, more seeds, nearly three times the steps", dict(
            seed=tuple(range(20)), n=1400, hidden=256, steps=400, lr=0.001)),
    },
)


def trained(setting: Setting, partner: str, device: str = "cpu", record=(), at=None):
    """The problem, its weights after training, and what was recorded."""
    problem = setting.problem(partner, device)
    steps = setting.steps if partner in TRAINED else 0
    return problem, *fit(problem, Adam(setting.lr), steps, record, ("seed",), at)


def accuracy(answers: Tensor, truth: Tensor) -> Tensor:
    """Share of right answers of each member."""
    return (answers.cpu() == truth).double().mean(-1)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Pre-train one encoder, and ask it; accuracies of its own answers are NaN where it gives none."""
    problem, params, _ = trained(s, s.partner, device)
    data, random = s.data(), s.data(tied=0.0)

    def features(pictures: ColouredPictures) -> Tensor:
        if "pixels" in s.partner:
            return (pictures.x if s.partner == "pixels" else pictures.x.sum(-3, keepdim=True)).flatten(-3)
        return problem.encode(params, pictures.x).cpu()

    with torch.no_grad():
        train, free, free_test = data.draw(s.seed), random.draw(s.seed), random.draw_test(s.seed)
        shifted, same = (data.draw_test(s.seed, shift) for shift in (1, 0))
        probe, fair = linear_probe(features(train), train.label), linear_probe(features(free), free.label)
        colours = linear_probe(features(free), free.colour)
        found = {
            "shifted": accuracy(probe(features(shifted)), shifted.digit),
            "same": accuracy(probe(features(same)), same.digit),
            "free": accuracy(fair(features(free_test)), free_test.digit),
            "colour": accuracy(colours(features(free_test)), free_test.colour),
        }
        for name, pictures in {"answers_shifted": shifted, "answers_same": same}.items():
            answers = "captions" in s.partner or "classes" in s.partner
            found[name] = (accuracy(problem.answers(params, pictures.x), pictures.digit) if answers
                           else torch.full((len(s.seed),), torch.nan))
    return found


run = experiment.run


@experiment.also
def confusions(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Which class is answered to which digit, palette shifted; dimensions (step, partner, seed, digit, answer)."""
    at = [step for step in (0, 5, 10, 20, 40, 80, setting.steps) if step <= setting.steps]
    test = setting.data().draw_test(setting.seed, shift=1)
    histories = []
    for partner in setting.partner:
        table = partial(_confusion, setting.problem(partner, device), test)
        asked = [Quantity("share", table, ("digit", "answer"), "share of the answers", "fraction")]
        histories.append(trained(setting, partner, device, asked, at)[2])
    whole = xr.concat(histories, "partner").transpose("step", "partner", "seed", "digit", "answer")
    numbers = {name: (name, list(range(CLASSES)), {"long_name": text, "units": "1"})
               for name, text in {"digit": "digit", "answer": "answer"}.items()}
    return whole.assign_coords(setting.coordinates("partner", "seed")).assign_coords(numbers)


def _confusion(problem: DigitPretraining, test: ColouredPictures, params: dict[str, Tensor]) -> Tensor:
    """Shares of the answers to every digit, shape ``(*E, 10, 10)``."""
    with torch.no_grad():
        answers = problem.answers(params, test.x).cpu()
    pairs = torch.nn.functional.one_hot(test.digit * CLASSES + answers, CLASSES**2).double()
    counts = pairs.sum(-2).unflatten(-1, (CLASSES, CLASSES))
    return counts / counts.sum(-1, keepdim=True)
