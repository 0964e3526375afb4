r"""Rules on pictures: which orderings of this chapter hold on crops of photographs and on digits with flipped labels?

No theorem covers these networks. The claims are this chapter's own, made on signal beside noise: label noise and SAM
keep a network from memorising, label smoothing with the same mean force helps less, Adam memorises most. The rival of
each is plain training stopped early, by pictures that were held out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from flbook import devices, measures, rng
from flbook.data.crops import KINDS, TwoClassPictures
from flbook.domains import Count, FlipProbability, Natural, NonNegative
from flbook.lectures.training_strategies.rules_on_pictures.mixing import MixedBatches, soft_logistic
from flbook.lectures.training_strategies.rules_on_pictures.tuned import TUNED
from flbook.models.convnet import ConvNet
from flbook.runs import Experiment, Grid, axis, single_precision
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import Adam, GradientDescent, LabelNoise, LabelSmoothing, Momentum, SharpnessAware
from flbook.training.problem import Params, Rule


class RuleRecipe(NamedTuple):
    """How a rule is made of its step size and of its own strength, and what it is trained on."""

    make: Callable[..., Rule]  # (step size, strength, seeds) -> a rule
    batch: int = 20
    mix: str = "none"
    epochs: float = 1.0  # in units of the setting's


RECIPES: dict[str, RuleRecipe] = {
    "gradient descent": RuleRecipe(lambda lr, _, seed: GradientDescent(lr)),
    "momentum": RuleRecipe(lambda lr, _, seed: Momentum(lr, 0.9)),
    "Adam": RuleRecipe(lambda lr, _, seed: Adam(lr)),
    "Adam, batch 5": RuleRecipe(lambda lr, _, seed: Adam(lr), batch=5, epochs=0.5),
    "Adam, batch 200": RuleRecipe(lambda lr, _, seed: Adam(lr), batch=200, epochs=2.0),
    "label noise": RuleRecipe(lambda lr, p, seed: LabelNoise(lr, p, seed=seed)),
    "label smoothing": RuleRecipe(lambda lr, p, seed: LabelSmoothing(lr, p)),
    "SAM": RuleRecipe(lambda lr, r, seed: SharpnessAware(lr, r)),
    "mixup": RuleRecipe(lambda lr, _, seed: GradientDescent(lr), mix="mixup"),
    "CutMix": RuleRecipe(lambda lr, _, seed: GradientDescent(lr), mix="cutmix"),
}
EPOCHS = (0, 2, 5, 10, 15, 20, 30, 40, 60, 80, 120, 160, 240, 320)  # where training may stop


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: three rules on colour crops, four data sets."""

    kind: tuple[Literal[KINDS], ...] = axis(["colour crops"], "pictures")
    flip_prob: tuple[FlipProbability, ...] = axis([0.2], "share of flipped labels p")
    rule: tuple[Literal[tuple(RECIPES)], ...] = axis(["gradient descent", "label noise", "Adam"], "rule")
    seed: tuple[Natural, ...] = axis(range(4), "seed")  # of pictures and of weights
    n: Count = 200  # training pictures
    epochs: Count = 80
    width: Count = 8  # filters of the first layer; every further layer has twice as many
    depth: Count = 2
    lr: NonNegative = 0.0  # step size; 0 is the tuned one
    strength: NonNegative = 0.0  # of label noise, smoothing, SAM, mixup and CutMix; 0 is the tuned one
    held_out: Count = 300
    fresh: Count = 600  # test pictures

    def data(self, kind: str, flip_prob: float) -> TwoClassPictures:
        """The pictures."""
        return TwoClassPictures(kind, self.n, flip_prob, self.held_out, self.fresh)

    def check(self) -> None:
        """Refuse what the data would."""
        for kind in self.kind:
            for flip_prob in self.flip_prob:
                self.data(kind, flip_prob)


experiment = Experiment(
    Setting, version=1, loops=("kind", "flip_prob", "rule"), chunk={"kind": 1, "flip_prob": 1, "rule": 1},
    stored="longer",
    gives={
        "last": ("test error after the last step", "fraction"),
        "stopped": ("test error where the held-out error is least", "fraction"),
        "best": ("least test error of any step", "fraction"),
        "epoch": ("epoch where the held-out error is least", "1"),
        "memorised": ("flipped pictures whose wrong label is fitted", "fraction"),
        "train_error": ("training error after the last step", "fraction"),
        "drift": ("training error two thirds through training, less the last", "fraction"),
        "trace": ("trace of the loss's Hessian", "1"),
        "held": ("held-out error after the last step", "fraction"),
        "held_stopped": ("least held-out error", "fraction"),
    },
    presets={
        "tiny": ("Every rule on every kind of picture for three epochs", dict(
            kind=KINDS[:3], rule=tuple(RECIPES), seed=(0, 1), n=40, epochs=3, width=2, held_out=20, fresh=20)),
        "longer": ("All rules, three kinds of pictures, a fifth of the labels flipped, ten data sets", dict(
            kind=KINDS[:3], rule=tuple(RECIPES), seed=tuple(range(10)))),
        "flips": ("All rules, three kinds of pictures, three shares of flips, ten data sets", dict(
            kind=KINDS[:3], flip_prob=(0.0, 0.1, 0.2), rule=tuple(RECIPES), seed=tuple(range(10)))),
        "cifar": ("For a GPU: CIFAR-10's cats and dogs, fetched; label noise, Adam, CutMix and their rivals",
                  dict(kind=("CIFAR-10",), flip_prob=(0.0, 0.2), rule=("gradient descent", "label noise",
                       "label smoothing", "Adam", "Adam, batch 200", "SAM", "CutMix"), seed=(0, 1, 2), n=4000,
                       width=32, depth=3, held_out=1000, fresh=2000)),
    },
)  # fmt: skip
experiment.kept(single_precision)


def problem(
    s: Setting, kind: str, flip_prob: float, recipe: RuleRecipe, strength: float, seeds: tuple[int, ...], device: str
) -> MixedBatches:
    """The training problem of all seeds, in batches that the recipe may mix."""
    sample = s.data(kind, flip_prob).draw(seeds)
    filters = tuple(s.width * 2**layer for layer in range(s.depth))
    network = ConvNet(tuple(sample.x.shape[-3:]), filters=filters, classes=1, seed=seeds)
    training = Training(network, sample.x, sample.observed, soft_logistic).to(devices.device(device))
    return MixedBatches(training, min(recipe.batch, s.n), mix=recipe.mix, alpha=strength or 1.0)


def hyperparameters(s: Setting, kind: str, rule: str) -> tuple[float, float]:
    """Step size and strength: the setting's, or those that were tuned."""
    lr, strength = TUNED["colour crops" if kind == "CIFAR-10" else kind, rule]
    return s.lr or lr, s.strength or strength


def hessian_trace(training: Training, params: Params, probes: int = 8) -> Float[Tensor, "*E"]:
    r"""Trace of the Hessian of the training loss, from gradients of random sums of the outputs.

    .. math:: \mathrm{tr}\nabla^2 L = \frac1n\sum_i\ell''_i\|\nabla f_i\|^2
              = E_z\Big\|\frac{1}{\sqrt n}\sum_i z_i\sqrt{\ell''_i}\,\nabla f_i\Big\|^2, \qquad z_i = \pm1;

    the first equality because the network is made of linear pieces.
    """
    with torch.no_grad():
        f = training.predict(params)
        root = (training.loss.curvature(f, training.observed) / f.shape[-1]).sqrt()
    squares = []
    for probe in range(probes):
        z = 2 * torch.randint(2, f.shape[-1:], generator=rng.generator(probe, "probes")).to(root) - 1
        leaves = {name: p.detach().requires_grad_() for name, p in params.items()}
        total = (training.predict(leaves) * root * z).sum()
        slopes = torch.autograd.grad(total, list(leaves.values()))
        squares.append(training.norm(dict(zip(leaves, slopes, strict=True))) ** 2)
    return torch.stack(squares).mean(0)


def wrong(training: Training, params: Params, x: Tensor, y: Tensor) -> Float[Tensor, "*E"]:
    """Share of wrong signs on given pictures, some hundreds at a time."""
    with torch.no_grad():
        f = torch.cat([training.predict(params, part) for part in x.split(400, -4)], -1)
    return measures.error_rate(f * y)


@lru_cache(maxsize=32)
def unseen(data: TwoClassPictures, seed: tuple[int, ...], device: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Held-out and test pictures, and their labels, in single precision."""
    where = devices.device(device)
    held, test = data.draw_held_out(seed), data.draw_test(seed)
    return tuple(part.to(where, torch.float32) for part in (held.x, held.y, test.x, test.y))


def course(
    s: Setting, kind: str, flip_prob: float, rule: str, seeds: tuple[int, ...], device: str = "cpu"
) -> tuple[Training, Params, xr.Dataset]:
    """Train by one rule: the problem, the parameters at the end, and errors at `EPOCHS`, dimensions (epoch, seed)."""
    recipe = RECIPES[rule]
    lr, strength = hyperparameters(s, kind, rule)
    task = problem(s, kind, flip_prob, recipe, strength, seeds, device)
    training = task.problem
    x_held, y_held, x_test, y_test = unseen(s.data(kind, flip_prob), seeds, device)
    per_epoch, last = s.n // task.size, max(1, round(recipe.epochs * s.epochs))
    record = [
        Quantity("held", lambda p: wrong(training, p, x_held, y_held), (), "held-out error", "fraction"),
        Quantity("test", lambda p: wrong(training, p, x_test, y_test), (), "test error", "fraction"),
        Quantity("train", lambda p: wrong(training, p, training.x, training.observed), (), "training error"),
    ]
    epochs = sorted({e for e in EPOCHS if e < last} | {round(last * 2 / 3), last})
    at = [e * per_epoch for e in epochs]
    found = fit(task, recipe.make(lr, strength, seeds), at[-1], record, ("seed",), at)
    axis = {"long_name": "epoch", "units": "1"}
    history = found.history.rename(step="epoch").assign_coords(epoch=("epoch", epochs, axis))
    return training, found.params, history


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Train by one rule to the end, one data set after the other: so no number depends on the others' rounding."""
    each = [one(s, seed, device) for seed in s.seed]
    return {name: torch.cat([found[name].double() for found in each]) for name in each[0]}


def one(s: Setting, seed: int, device: str) -> dict[str, Tensor]:
    """The numbers of one data set."""
    training, params, history = course(s, s.kind, s.flip_prob, s.rule, (seed,), device)
    held, test, train = (torch.from_numpy(history[name].values) for name in ("held", "test", "train"))
    epochs = history.epoch.values.tolist()
    place = held.argmin(0, keepdim=True)
    flips = round(s.flip_prob * s.n)
    with torch.no_grad():
        fitted = (training.predict(params) * training.observed > 0).to(torch.float64)[..., :flips]
    return {
        "last": test[-1], "stopped": test.gather(0, place)[0], "best": test.min(0).values,
        "epoch": torch.tensor(epochs, dtype=torch.float64)[place[0]],
        "memorised": fitted.mean(-1) if flips else torch.zeros(1),
        "train_error": train[-1], "drift": train[epochs.index(round(epochs[-1] * 2 / 3))] - train[-1],
        "trace": hessian_trace(training, params), "held": held[-1], "held_stopped": held.min(0).values,
    }  # fmt: skip


run = experiment.run
