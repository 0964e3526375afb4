r"""How many layers does in-context regression take on inputs, and how many on the features themselves?

Claim (measured): transformers whose prompts hold inputs need one layer more than those whose prompts hold the features
of which labels are linear. The networks of the deepest kind are kept, and the lecture opens them.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from flbook.data.prompts import Prompts, map_tensors
from flbook.domains import Count, Fraction, Natural, NonNegative, Positive
from flbook.lectures.in_context_learning.learning_with_representations.feature_map import (
    FeatureMapPrompts,
    features,
)
from flbook.models.transformer import PromptTransformer
from flbook.runs import Experiment, Grid, axis, checkpoints, single_precision
from flbook.training.pretrain import Recipe, named_weights, pretrain

TEST = 10_000_000  # step of the test prompts: training sees none of them
BINS = 50  # of the loss over training steps
STARTS = 10  # to which the prompts of a step are dealt
DEEPEST = 4  # layers of the networks whose weights come with the library
ARRIVED = (0, 4, 5)  # starts of that kind, of ten, whose error at the query ends below a tenth of the labels' variance
LONG = 1000  # steps from which training keeps a checkpoint


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: one layer, a hundred steps."""

    given: tuple[Literal["x", "features"], ...] = axis(("x", "features"), "what the prompt holds")
    layers: tuple[Count, ...] = axis([1], "layers")
    seed: tuple[Natural, ...] = axis(range(2), "seed")  # of a network's start
    n: Count = 16  # examples of a prompt
    d: Count = 4
    noise: Positive = 0.3  # standard deviation of the label noise
    width: Count = 32
    heads: Count = 2
    sigma_0: NonNegative = 0.1  # initial weights
    steps: Count = 100
    batch: Count = 64  # prompts of a step, for each network its own
    lr: Positive = 3e-3
    warmup: Natural = 200
    beta_2: Fraction = 0.98
    points: Count = 500  # test prompts, the same for all

    def check(self) -> None:
        """Refuse networks deeper than those that a result has room for."""
        if max(self.layers) > DEEPEST:
            raise ValueError(f"layers must be at most {DEEPEST}; got {max(self.layers)}")
        if max(self.seed) >= STARTS:
            raise ValueError(f"seed must be below {STARTS}, the starts that prompts are dealt to; got {max(self.seed)}")


AXES = ("given", "layers", "seed")
experiment = Experiment(
    Setting, version=1, loops=("given", "layers"), chunk={"given": 1, "layers": 1}, stored="gpu",
    gives={
        "error": ("squared error", "1", (*AXES, "position")),
        "loss": ("mean squared error over all positions", "1", (*AXES, "step")),
        "weights": ("weights", "1", (*AXES, "weight")),
    },
    beside={
        "position": (lambda s: range(s.n + 1), "examples seen", "1"),
        "step": (lambda s: ends(s)[1:], "training step", "1"),
        "weight": (lambda s: range(room(s)), "weight", "1"),
    },
    presets={
        "tiny": ("One and two narrow layers, five steps", dict(
            layers=(1, 2), n=3, d=2, width=8, steps=5, batch=4, points=10)),
        "gpu": ("Ten starts of one to four layers, 768,000 prompts each: minutes on a GPU, hours on one core", dict(
            layers=(1, 2, 3, 4), seed=tuple(range(10)), steps=12_000, points=2000)),
    },
)  # fmt: skip


@dataclass(frozen=True)
class Dealt:
    """Prompts of one draw, dealt to ten starts, so that each has its own; and those of some starts."""

    data: FeatureMapPrompts
    starts: tuple[int, ...]

    def draw(self, batch: int, seed: int, step: int = 0, device="cpu", dtype: torch.dtype = torch.float32) -> Prompts:
        """A batch for each start, whose axis leads."""
        drawn = self.data.draw(batch * STARTS, seed, step, device, dtype)
        if self.starts == tuple(range(STARTS)):
            return map_tensors(drawn, lambda tensor: tensor.unflatten(0, (STARTS, batch)))
        return map_tensors(drawn, lambda tensor: tensor.unflatten(0, (STARTS, batch))[list(self.starts)])


def untrained(s: Setting, layers: int, seed: tuple[int, ...] | None = None) -> PromptTransformer:
    """The networks at their start, one for each seed."""
    return PromptTransformer(s.d, s.n, s.width, layers, s.heads, s.sigma_0, seed=s.seed if seed is None else seed)


def flat(network: PromptTransformer, s: Setting) -> Tensor:
    """All weights of each member in a row, with zeros where the deepest network has more."""
    weights = torch.cat([p.detach().flatten(1) for p in network.parameters()], -1)
    return torch.nn.functional.pad(weights, (0, room(s) - weights.shape[-1]))


def room(s: Setting) -> int:
    """Weights of one network of the deepest kind."""
    return sum(p[0].numel() for p in untrained(s, DEEPEST, (0,)).parameters())


def about(s: Setting, given: str, layers: int) -> dict:
    """What the weights of a cell depend on."""
    names = ("seed", "n", "d", "noise", "width", "heads", "sigma_0", "steps", "batch", "lr", "warmup", "beta_2")
    named = {"experiment": "feature_depth", "version": experiment.version, "given": given, "layers": layers}
    return named | {name: getattr(s, name) for name in names}


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor | np.ndarray]:
    """Train the networks of one depth, and test them at every length of the prompt."""
    recipe = Recipe(s.steps, s.batch, s.lr, s.warmup, beta_2=s.beta_2)
    checkpoint = experiment.training_file(device, about(s, s.given, s.layers)) if s.steps > LONG else None
    data = FeatureMapPrompts(s.n, s.d, s.noise, s.given)
    network, history = pretrain(
        untrained(s, s.layers), Dealt(data, s.seed), recipe, 0, device, checkpoint=checkpoint, every=5000
    )
    losses = [history.loss.values[a:b].mean(0) for a, b in zip(ends(s), ends(s)[1:], strict=False)]
    drawn = data.draw(s.points, 0, TEST, device, torch.float32)
    return {"error": errors(network, *whole(drawn, s.given)), "loss": np.stack(losses, -1), "weights": flat(network, s)}


run = experiment.run


def ends(s: Setting) -> np.ndarray:
    """The steps between which the loss is averaged."""
    return np.linspace(0, s.steps, min(BINS, s.steps) + 1).astype(int)


def whole(drawn: Prompts, given: str = "x") -> tuple[Tensor, Tensor, Tensor]:
    """What the prompts hold, labels, and labels without noise; examples and query in one row."""
    x = torch.cat([drawn.context.x, drawn.query], -2)
    clean = torch.einsum("...d,...nd->...n", drawn.task, features(x) if given == "x" else x)
    return x, torch.cat([drawn.context.y, drawn.observed], -1), clean


@torch.no_grad()
def errors(network: PromptTransformer, x: Tensor, y: Tensor, clean: Tensor, part: int = 200) -> Tensor:
    """Mean squared error to the labels without noise at every length of the prompts, shape (seed, position)."""
    total = 0.0
    for some in torch.arange(len(x)).split(part):
        total = total + (network.predictions(x[None, some], y[None, some]) - clean[some]).square().sum(1)
    return total / len(x)


@experiment.kept
def kept(dataset: xr.Dataset) -> xr.Dataset:
    """What the package keeps: errors and losses in single precision here, networks that arrived elsewhere."""
    preset = dataset.attrs["scale"]
    if preset == experiment.larger:
        s, network = experiment.setting(preset), untrained(experiment.setting(preset), DEEPEST, ARRIVED)
        rows = torch.from_numpy(dataset.weights.sel(given="x", layers=DEEPEST, seed=list(ARRIVED)).values)
        weights = named_weights(network, rows)
        checkpoints.save(experiment.path(".safetensors"), weights, about(s, "x", DEEPEST), torch.float16)
    return single_precision(dataset.drop_vars("weights"))


def trained(seed: tuple[int, ...] = ARRIVED) -> PromptTransformer:
    """Networks of the deepest kind that come with the library; kept in half precision, computed in single."""
    s = experiment.setting("gpu")
    network = untrained(s, DEEPEST, seed)
    found = checkpoints.load(experiment.path(".safetensors"), about(s, "x", DEEPEST), dtype=torch.float32)
    network.load_state_dict({name: tensor[[ARRIVED.index(one) for one in seed]] for name, tensor in found.items()})
    return network.requires_grad_(False)
