r"""Digits whose classes follow a power law: a linear classifier after one step, and after a hundred.

A mean picture is subtracted, then rows of pixels have length 1, and the weights of a softmax start at 0. Which class is
frequent is drawn for each seed; test accuracy is the mean over classes. The classes' frequencies enter as weights of
the samples, so that every class has as many pictures as every other.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook import devices, rng
from flbook.data.ten_digits import ten_digits
from flbook.domains import Count, Natural, NonNegative
from flbook.runs import Experiment, Grid, axis
from flbook.training.orthogonalised import polar_factor

RULES = (
    "gradient, one step", "sign, one step", "spectral, one step", "equal weights, one step",
    "gradient descent", "normalised",
)  # fmt: skip
CENTRES = ("none", "as seen", "all classes alike")  # the picture that is subtracted
SIZES = {"gradient descent": (30.0, 100.0, 300.0, 1000.0, 3000.0), "normalised": (0.3, 1.0, 3.0, 10.0, 30.0)}


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    centre: tuple[Literal[CENTRES], ...] = axis(CENTRES, "mean picture that is subtracted")
    tail: tuple[NonNegative, ...] = axis([0.0, 1.0, 2.0, 3.0], "power of the classes' frequencies")
    rule: tuple[Literal[RULES], ...] = axis(RULES[:4], "rule")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    n: Count = 800  # training pictures
    steps: Count = 100  # of the rules that take many, each at the best of five step sizes


experiment = Experiment(
    Setting, version=1, loops=("centre", "tail", "rule"), chunk={"centre": 1, "tail": 1, "rule": 1},
    stored="longer",
    gives={"accuracy": ("test accuracy, mean over classes", "fraction")},
    presets={
        "tiny": ("A blink", dict(tail=(0.0, 3.0), rule=RULES, seed=(0, 1), n=100, steps=3)),
        "longer": ("Rules of a hundred steps, too; minutes", dict(
            centre=CENTRES[2:], tail=(0.0, 3.0), rule=RULES)),
    },
)


@experiment.shared("centre", "tail")
def pictures(s: Setting, device: str):
    """Training and test pictures with rows of length 1, (seed, n, 64), their classes, and the samples' weights."""
    split = ten_digits(s.n, s.seed, standard=False)
    ranks = torch.stack([torch.randperm(10, generator=rng.generator(one, "order of the classes")) for one in s.seed])
    x, x_test, weight = split.x.flatten(2), split.x_test.flatten(2), sample_weights(split.y, ranks, s.tail)
    if s.centre != "none":
        seen = weight if s.centre == "as seen" else sample_weights(split.y, ranks, 0.0)
        mean = seen[:, None] @ x
        x, x_test = x - mean, x_test - mean
    x, x_test = (part / torch.linalg.vector_norm(part, dim=-1, keepdim=True) for part in (x, x_test))
    return tuple(part.to(devices.device(device)) for part in (x, split.y, x_test, split.y_test, weight))


def sample_weights(y: Int[Tensor, "S n"], ranks: Int[Tensor, "S 10"], tail: float) -> Float[Tensor, "S n"]:
    """A class of rank k counts for a share proportional to (k + 1)^-tail, whatever the number of its pictures."""
    share = (ranks + 1.0).double() ** -tail
    share = share / share.sum(-1, keepdim=True)
    members = torch.nn.functional.one_hot(y, 10).sum(-2)
    return (share / members).gather(-1, y)


def slope(w: Float[Tensor, "*E S 10 f"], x: Float[Tensor, "S n f"], y: Int[Tensor, "S n"],
          weight: Float[Tensor, "S n"]) -> Float[Tensor, "*E S 10 f"]:  # fmt: skip
    """The gradient of the weighted cross-entropy of a softmax."""
    wrong = (x @ w.mT).softmax(-1) - torch.nn.functional.one_hot(y, 10)
    return (weight[..., None] * wrong).mT @ x


def accuracy(w: Float[Tensor, "*E S 10 f"], x: Float[Tensor, "S n f"], y: Int[Tensor, "S n"]) -> Float[Tensor, "*E S"]:
    """The share of right answers, a mean over classes."""
    classes = torch.nn.functional.one_hot(y, 10).to(x)
    right = ((x @ w.mT).argmax(-1) == y).to(x)
    return ((right[..., None, :] @ classes).squeeze(-2) / classes.sum(-2)).mean(-1)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Test accuracy of one rule at one law, (seed,)."""
    x, y, x_test, y_test, weight = pictures(s, device)
    w = x.new_zeros(len(s.seed), 10, x.shape[-1])
    if s.rule in SIZES:  # each seed at its best step size
        found = accuracy(trained(w.float(), x.float(), y, weight.float(), s), x_test.float(), y_test)
        return {"accuracy": found.amax(0).double()}
    equal = sample_weights(y, torch.zeros(len(y), 10, dtype=torch.long, device=y.device), 0.0)
    step = slope(w, x, y, equal if s.rule.startswith("equal") else weight)
    made = {"sign": torch.sign, "spectral": polar_factor}.get(s.rule.split(",")[0], lambda g: g)
    return {"accuracy": accuracy(-made(step), x_test, y_test)}


def trained(w: Tensor, x: Tensor, y: Tensor, weight: Tensor, s: Setting) -> Float[Tensor, "L S 10 f"]:
    """Weights after many steps at each of the step sizes."""
    lr = x.new_tensor(SIZES[s.rule])[:, None, None, None]
    w = w.expand(len(lr), *w.shape)
    for _ in range(s.steps):
        step = slope(w, x, y, weight)
        w = w - lr * (step / torch.linalg.matrix_norm(step, keepdim=True) if s.rule == "normalised" else step)
    return w


run = experiment.run
