r"""A softmax transformer, pretrained on single-index prompts from a subspace of r of d dimensions.

Claim (Oko et al. 2024, an observation, as reported): the examples that a trained transformer needs in a prompt grow
with r and not with d. The link is :math:`(h_1 + h_2)/\sqrt2`: on :math:`h_2` alone a network stays for long on a
plateau at the risk 1 - 1/r, where it knows the subspace, answers by the mean over all tasks, and reads no prompt.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from flbook.domains import Count, Fraction, Natural, Positive
from flbook.lectures.in_context_learning.shared.single_index_prompts import IndexPrompts, SingleIndexPrompts
from flbook.models.transformer import PromptTransformer
from flbook.runs import Experiment, Grid, axis, single_precision
from flbook.training.pretrain import PretrainingRun, Recipe, pretrain

LINE = 0.5**0.5
WIDE = dict(seed=tuple(range(5)), context=tuple(range(1, 65)), n=64, width=128, heads=4, steps=3200, batch=64,
            precision="bfloat16")  # fmt: skip
BINS = 50  # of the loss over training steps
TEST = 10_000_000  # step from which on prompts are those of the test: training sees none of them


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep. In the book: a hundred steps."""

    line: tuple[Fraction, ...] = axis([LINE], "c₁ of the link c₁h₁ + c₂h₂")  # the squares sum to 1
    d: tuple[Count, ...] = axis([8], "input dimension d")
    r: tuple[Count, ...] = axis([2], "dimension of the subspace r")
    seed: tuple[Natural, ...] = axis([0], "seed")  # of a network's start, of its prompts and of its test
    context: tuple[Count, ...] = axis([1, 2, 4, 8, 16, 32], "examples in the prompt n*")
    n: Count = 32  # examples of a training prompt
    width: Count = 64
    layers: Count = 4
    heads: Count = 4
    steps: Count = 100
    batch: Count = 32
    lr: Positive = 1e-3
    warmup: Natural = 500
    precision: Literal["float32", "bfloat16"] = "float32"
    points: Count = 2000  # test prompts of a seed

    def check(self) -> None:
        """Refuse a subspace that does not fit, and prompts longer than those of training."""
        SingleIndexPrompts(d=min(self.d), r=max(self.r))
        if max(self.context) > self.n:
            raise ValueError(f"context must be at most n = {self.n}; got {max(self.context)}")


experiment = Experiment(
    Setting, version=1, loops=("line", "d", "r"), left=("seed", "context"), chunk={"line": 1, "d": 1, "r": 1},
    stored="larger",
    gives={
        "risk": ("risk R", "1"),
        "loss": ("mean squared error over all positions", "units of y²", ("line", "d", "r", "seed", "step")),
    },
    beside={"step": (lambda s: ends(s)[1:], "training step")},
    presets={
        "tiny": ("Two subspaces, five steps of one narrow layer", dict(
            d=(4,), r=(1, 2), seed=(0, 1), context=(1, 4), n=4, width=8, layers=1, heads=2, steps=5, batch=4,
            points=10)),
        "longer": ("One network of 205,000 weights for each d and r: half an hour of one core", dict(
            d=(16, 32), r=(2, 4), context=tuple(range(1, 33)), steps=5000)),
        "larger": ("Networks of 800,000 weights, five starts: two minutes of a GPU", dict(
            d=(16, 64), r=(2, 4), **WIDE)),
        "eight": ("The same with a subspace of eight dimensions: training is not finished", dict(
            d=(16,), r=(8,), **WIDE)),
        "plateau": ("The link h₂ alone, beside that with a line", dict(
            line=(0.0, LINE), seed=(0, 1), context=tuple(range(1, 33)), steps=3000)),
        "gpu": ("The literature's width and depth, ten starts, up to 16 of 64 dimensions: many hours on a GPU", dict(
            d=(16, 32, 64), r=(2, 4, 8, 16), seed=tuple(range(10)), context=tuple(range(1, 129)), n=128, width=256,
            layers=12, heads=8, steps=100_000, lr=1e-4)),
    },
)  # fmt: skip
experiment.kept(single_precision)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, np.ndarray | torch.Tensor]:
    """Risk of the trained networks at every length of a fresh prompt, and their losses on the way."""
    found = train(s, device, experiment.training_file(device, about(s)) if s.steps > 1000 else None)
    losses = np.stack([found.history.loss.values[a:b].mean(0) for a, b in zip(ends(s), ends(s)[1:], strict=False)], -1)
    return {"risk": risk(s, found.model, device), "loss": losses}


run = experiment.run


def about(s: Setting) -> dict:
    """What the weights of one cell depend on."""
    names = ("line", "d", "r", "seed", "n", "width", "layers", "heads", "steps", "batch", "lr", "warmup", "precision")
    return {"experiment": experiment.name, "version": experiment.version} | {name: getattr(s, name) for name in names}


def ends(s: Setting) -> np.ndarray:
    """The steps between which the loss is averaged."""
    return np.linspace(0, s.steps, min(BINS, s.steps) + 1).astype(int)


def prompts(s: Setting) -> SingleIndexPrompts:
    """The prompts of a cell: n examples and a query, which is the last position."""
    return SingleIndexPrompts(n=s.n, d=s.d, r=s.r, link=(0.0, s.line, (1 - s.line**2) ** 0.5))


def train(s: Setting, device: str = "cpu", checkpoint=None) -> PretrainingRun:
    """The networks of one d and r, one for each seed, trained on fresh prompts, and their losses."""
    recipe = Recipe(s.steps, s.batch, s.lr, s.warmup, weight_decay=0.01, precision=s.precision)
    network = PromptTransformer(s.d, s.n, s.width, s.layers, s.heads, seed=s.seed)
    return pretrain(network, prompts(s), recipe, s.seed, device, squared_errors, checkpoint)


def squared_errors(network: PromptTransformer, drawn: IndexPrompts) -> torch.Tensor:
    """Mean squared error over the prompts of a batch, at every length from no example on; shape (seed,)."""
    x, y = torch.cat([drawn.context.x, drawn.query], -2), torch.cat([drawn.context.y, drawn.observed], -1)
    return (network.predictions(x, y) - y).square().mean((-2, -1))


@torch.no_grad()
def risk(s: Setting, network: PromptTransformer, device: str = "cpu", part: int = 200) -> np.ndarray:
    """Mean squared error after the first examples of fresh prompts, shape (seed, context)."""
    total = 0.0
    for step in range(-(-s.points // part)):
        drawn = prompts(s).draw(min(part, s.points - step * part), s.seed, TEST + step, device, torch.float32)
        x, y = torch.cat([drawn.context.x, drawn.query], -2), torch.cat([drawn.context.y, drawn.target], -1)
        total = total + (network.predictions(x, y) - y).square().sum(-2)
    return (total / s.points)[:, list(s.context)].cpu().numpy()
