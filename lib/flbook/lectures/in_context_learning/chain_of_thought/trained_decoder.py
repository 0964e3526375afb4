r"""A small decoder, trained by Adam on chains: with the steps shown, with noisy steps, and with the label alone.

No theory is meant for it: it has heads, two layers, queries and keys that depend on tokens, and many small steps on one
sample. What it sees is the same as the layer of the lecture. Where the label alone is shown it sees blank tokens in
place of the steps, and is asked for the last one only.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from flbook import devices, rng
from flbook.domains import Count, Natural, Positive, Seeds, checked_arguments
from flbook.lectures.in_context_learning.chain_of_thought.parity_trees import ParityTree
from flbook.models.transformer import GPT, linear
from flbook.runs import Experiment, Grid, axis, single_precision
from flbook.training.pretrain import Recipe, pretrain

SHOWN = {"steps": 0.0, "noisy steps": 0.05, "label alone": 0.0}  # the chance that a step is shown with the wrong sign
SIZE = 0.1  # standard deviation of positions and other weights at the start
BINS = 40  # of the loss over training steps


class ChainDecoder(nn.Module):
    r"""A `GPT` that reads a sequence of signs, and says at each token the logit of the next one being +1.

    Parameters
    ----------
    length
        Tokens of the longest sequence.
    width, layers, heads
        Of the `GPT`.
    size
        Standard deviation of the vector at the start by which a sign is read in; that of positions is 0.1. If it is
        much larger, the first norm leaves little of the positions.
    seed
        A tuple of seeds gives an ensemble, whose axis leads parameters and tokens.

    Examples
    --------
    >>> ChainDecoder(length=5, width=8, layers=1, heads=2)(torch.ones(3, 5)).shape
    torch.Size([3, 5])
    """

    @checked_arguments
    def __init__(self, length: Count, width: Count = 64, layers: Count = 2, heads: Count = 4, size: Positive = 0.1,
                 seed: Seeds = 0):
        super().__init__()
        self.embedding = linear(1, width, size, seed, "read-in")
        self.gpt = GPT(width, layers, heads, length, SIZE, seed)
        self.read_out = linear(width, 1, width**-0.5, seed, "read-out")
        self.float()

    def forward(self, tokens: Float[Tensor, "*S b L"]) -> Float[Tensor, "*S b L"]:
        """Logits of the next tokens."""
        return self.read_out(self.gpt(self.embedding(tokens[..., None])))[..., 0]


class Batch(NamedTuple):
    """What a training step sees."""

    inputs: Float[Tensor, "S b L"]  # bits and steps as they are shown, without the last
    targets: Float[Tensor, "S b nodes"]
    weights: Float[Tensor, "S nodes"]  # of a node in the loss


@dataclass(frozen=True)
class Members:
    """A fixed sample for each member of an ensemble, of which a step sees some."""

    tokens: Float[Tensor, "S n T"]
    sizes: Int[Tensor, " S"]  # how many of its samples a member has
    blank: Float[Tensor, "S 1"]  # 1 where the steps are shown, 0 where only the label is
    d: int

    def __repr__(self) -> str:
        """What a checkpoint compares."""
        return f"Members({tuple(self.tokens.shape)}, {self.sizes.tolist()}, {self.d})"

    def draw(self, batch: int, seed, step: int, device) -> Batch:
        """The batch of a step, for each member from its own sample; a pure function of the step."""
        u = torch.rand(batch, generator=rng.generator(0, f"batch {step}", device), device=device)
        places = (u * self.sizes[:, None]).long()  # (S, b)
        tokens = self.tokens.gather(1, places[..., None].expand(*places.shape, self.tokens.shape[-1]))
        steps = tokens[..., self.d :]
        last = torch.zeros_like(steps[:, 0])
        last[:, -1] = 1
        weights = torch.where(self.blank > 0, 1 / steps.shape[-1], last)
        return Batch(torch.cat([tokens[..., : self.d], steps[..., :-1] * self.blank[..., None]], -1), steps, weights)


def cross_entropy(network: ChainDecoder, drawn: Batch) -> Float[Tensor, " S"]:
    """Mean over the batch and over the nodes that a member is asked for, in nats."""
    logits = network(drawn.inputs)[..., -drawn.targets.shape[-1] :]
    losses = torch.nn.functional.softplus(-drawn.targets * logits).mean(1)
    return (losses * drawn.weights).sum(-1)


@torch.no_grad()
def answer(network: ChainDecoder, bits: Float[Tensor, "S b d"], steps: int,
           blank: Float[Tensor, "S 1"]) -> Float[Tensor, "S b"]:  # fmt: skip
    """The last node of the chain that each member writes by itself, over blanks if it was shown the label alone."""
    tokens = bits
    for _ in range(steps):
        said = torch.where(network(tokens)[..., -1] > 0, 1.0, -1.0)
        tokens = torch.cat([tokens, (said * blank)[..., None]], -1)
    return said


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    d: tuple[Count, ...] = axis([8], "bits d")
    shown: tuple[Literal[tuple(SHOWN)], ...] = axis(SHOWN, "what is shown")
    n: tuple[Count, ...] = axis([200, 400], "samples n")
    seed: tuple[Natural, ...] = axis(range(2), "seed")
    k: Count = 4
    width: Count = 64
    layers: Count = 2
    heads: Count = 4
    size: Positive = 0.1  # of what reads a sign in, at the start; positions have 0.1
    steps: Count = 20
    batch: Count = 128
    lr: Positive = 1e-3
    warmup: Natural = 100
    precision: Literal["float32", "bfloat16"] = "float32"
    points: Count = 1000  # test inputs of a seed

    def check(self) -> None:
        """Refuse a tree that does not fit."""
        ParityTree(d=min(self.d), k=self.k)


experiment = Experiment(
    Setting, version=1, loops=("d",), left=("shown", "n", "seed"), chunk={"d": 1}, stored="gpu",
    gives={
        "accuracy": ("test accuracy of the label", "fraction"),
        "loss": ("training loss", "nats", ("d", "shown", "n", "seed", "step")),
    },
    beside={"step": (lambda s: ends(s)[1:], "training step")},
    presets={
        "tiny": ("Five steps of one narrow layer", dict(d=(4, 6), n=(10, 20), width=8, layers=1, heads=2, steps=5,
                                                        batch=4, points=10)),
        "core": ("A product of eight of 32 bits, two seeds; minutes of one core", dict(
            d=(32,), shown=("steps",), n=(4000,), k=8, steps=1500, batch=64, lr=2e-3)),
        "gpu": ("Signs read in ten times as large as positions, up to 64 bits; three minutes of a GPU", dict(
            d=(16, 32, 64), n=(500, 1000, 2000, 4000, 8000), seed=tuple(range(4)), k=8, size=1.0, steps=3000, batch=64,
            lr=2e-3, precision="bfloat16")),
    },
)  # fmt: skip
experiment.kept(single_precision)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor | np.ndarray]:
    """Accuracy after training, (shown, n, seed), and the loss on the way, (shown, n, seed, step)."""
    lead = (len(s.shown), len(s.n), len(s.seed))
    data = members(s, device)
    network = ChainDecoder(s.d + s.k - 2, s.width, s.layers, s.heads, s.size, seed=s.seed * (lead[0] * lead[1]))
    recipe = Recipe(s.steps, s.batch, s.lr, s.warmup, precision=s.precision)
    losses = pretrain(network, data, recipe, s.seed, device, cross_entropy).history.loss.values
    bins = np.stack([losses[a:b].mean(0) for a, b in zip(ends(s), ends(s)[1:], strict=False)], -1)
    tree, right = ParityTree(s.d, s.k), 0.0
    for part in range(-(-s.points // 250)):
        size = min(250, s.points - 250 * part)
        drawn = tree.draw(size, s.seed, f"test {part}")
        bits, y = (t.to(devices.device(device)).repeat(lead[0] * lead[1], *[1] * (t.ndim - 1))
                   for t in (drawn.tokens[..., : s.d], drawn.y))
        right = right + (answer(network, bits, s.k - 1, data.blank) == y).double().sum(-1)
    return {"accuracy": (right / s.points).cpu().reshape(lead), "loss": bins.reshape(*lead, -1)}


run = experiment.run


def ends(s: Setting) -> np.ndarray:
    """The steps between which the loss is averaged."""
    return np.linspace(0, s.steps, min(BINS, s.steps) + 1).astype(int)


def members(s: Setting, device: str = "cpu") -> Members:
    """The sample of each member, (shown, n, seed) flattened: smaller samples are the first part of larger ones."""
    where, most, count = devices.device(device), max(s.n), len(s.seed)
    parts = [ParityTree(s.d, s.k, SHOWN[shown]).draw(most, s.seed).tokens for shown in s.shown]
    tokens = torch.stack(parts)[:, None].expand(-1, len(s.n), -1, -1, -1).flatten(0, 2)
    sizes = torch.tensor(s.n).repeat_interleave(count).repeat(len(s.shown))
    blank = torch.tensor([float(shown != "label alone") for shown in s.shown]).repeat_interleave(len(s.n) * count)
    return Members(tokens.to(where), sizes.to(where), blank[:, None].to(where), s.d)
