"""Real pictures with flipped labels: when are clean pictures fitted, when flipped ones, and what does that cost?

Claim (Han et al. 2025, Figure on CIFAR-10 with VGG): training fits clean pictures first, and accuracy on fresh ones is
best then; later the flipped ones are fitted, and accuracy falls.

Here: a small convolutional network on scikit-learn's digits.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import xarray as xr

from flbook import devices
from flbook.data.images import digits
from flbook.domains import Count, FlipProbability, Natural, Positive
from flbook.lectures.benign_overfitting.label_noise_stages.flipped_images import FlippedImages
from flbook.models import ConvNet, identity
from flbook.runs import Experiment, Grid, axis
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import Momentum
from flbook.training.problem import Problem


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: digits 3 and 8, a fifth of the labels flipped."""

    model: tuple[Literal["network", "linear", "lazy"], ...] = axis(["network"], "model")  # network: a ConvNet
    pair: tuple[str, ...] = axis(["3 8"], "classes")  # two digits
    flip_prob: tuple[FlipProbability, ...] = axis([0.2], "flip probability p")  # exactly pn labels flipped
    seed: tuple[Natural, ...] = axis(range(10), "seed")  # of pictures and of weights
    n: Count = 140  # training pictures
    lr: Positive = 0.05  # of momentum with beta = 0.9
    epochs: Count = 120
    every: Count = 5  # epochs between records

    def check(self) -> None:
        """Refuse samples without flipped or without clean pictures, and records beyond the end."""
        for p in self.flip_prob:
            if not 1 <= round(p * self.n) < self.n:
                raise ValueError(f"flip_prob must leave at least one flipped and one clean picture of n = {self.n}; "
                                 f"got {p}")
        if self.epochs < self.every:
            raise ValueError(f"every must lie between 1 and epochs = {self.epochs}; got {self.every}")


experiment = Experiment(
    Setting, version=1, loops=("model", "pair", "flip_prob"), chunk={"model": 1},
    presets={
        "tiny": ("Two pairs of digits, the network and its lazy rival, two epochs", dict(
            model=("network", "lazy"), pair=("3 8", "1 7"), seed=(0, 1), n=30, epochs=2, every=2)),
    },
)


def pictures(pair: str, n: int, flip_prob: float) -> FlippedImages:
    """The two digits that `pair` names."""
    first, _, second = pair.partition(" ")
    return FlippedImages(digits((int(first), int(second))), n, flip_prob)


def problem(setting: Setting, model: str, data: FlippedImages, device: str) -> Problem:
    """The training problem of all seeds, each with its own pictures and weights."""
    sample = data.draw(setting.seed)
    image = tuple(sample.x.shape[-3:])
    linear = {"activation": identity, "pool": "mean"} if model == "linear" else {}
    network = ConvNet(image, filters=(8, 16), classes=1, seed=setting.seed, **linear)
    where = devices.device(device)
    network, x, observed = network.to(where), sample.x.to(where, torch.float32), sample.observed.to(where)
    plain = Training(network, x, observed)
    return plain.lazy() if model == "lazy" else plain


def outputs(task: Problem, params: dict, x: torch.Tensor, at_once: int = 1000) -> torch.Tensor:
    """Outputs ``(seed, pictures)``, a thousand pictures at a time."""
    with torch.no_grad():
        return torch.cat([task.predict(params, part) for part in x.split(at_once, dim=-4)], -1)


@experiment.cell
def cell(s: Setting, device: str) -> xr.Dataset:
    """Train one model on one pair of classes, and record every few epochs."""
    data = pictures(s.pair, s.n, s.flip_prob)
    task, truth, test = problem(s, s.model, data, device), data.draw(s.seed), data.draw_test(s.seed)
    y_test, x_test = test.y.to(task.x), test.x.to(task.x)
    flipped = (truth.y != truth.observed).to(task.x)

    def fitted(params, group):
        right = (outputs(task, params, task.x) * task.observed > 0).to(group)
        return (right * group).sum(-1) / group.sum(-1)

    def small_loss(params):
        chosen = (outputs(task, params, task.x) * task.observed > 0).to(flipped)  # loss below log 2
        return (chosen * flipped).sum(-1) / chosen.sum(-1)

    record = [
        Quantity("train_clean", lambda params: fitted(params, 1 - flipped), (), "clean pictures fitted", "fraction"),
        Quantity("noise_flipped", lambda params: fitted(params, flipped), (), "flipped pictures fitted", "fraction"),
        Quantity("test_accuracy", lambda params: (outputs(task, params, x_test) * y_test > 0).to(flipped).mean(-1), (),
                 "accuracy on fresh pictures", "fraction"),
        Quantity("small_loss", small_loss, (), "wrong labels among those of small loss", "fraction"),
    ]
    at = list(range(0, s.epochs + 1, s.every))  # all pictures in one step, so a step is an epoch
    history = fit(task, Momentum(s.lr, 0.9), at[-1], record, ("seed",), at).history
    epoch = {"long_name": "epoch", "units": "1"}
    return history.rename(step="epoch").assign_coords(epoch=("epoch", at, epoch))


run = experiment.run


def best_epoch(dataset: xr.Dataset) -> xr.DataArray:
    """Where the accuracy on fresh pictures, averaged over the seeds, is highest."""
    return dataset.test_accuracy.mean("seed").idxmax("epoch")
