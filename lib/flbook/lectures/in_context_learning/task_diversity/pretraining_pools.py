r"""Transformers pretrained on pools of many sizes, for several lengths: which rule does each read prompts by?

Claim (Raventos et al. 2023; an observation): a network pretrained on a small pool of tasks answers like the pool's
Bayes rule, on a large pool like ridge regression, although the pool's Bayes rule has the smaller pretraining loss. A
network that has not finished its training looks the same on fresh tasks; so every network here is also tested on the
tasks of its own pool, with fresh prompts, in two sizes and after two lengths of training.

All networks of one size and length have the same start and read the same inputs and label noise; only their pools
differ.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import torch
import xarray as xr
from torch import Tensor

from flbook.data.prompts import LinearPrompts, Prompts, TaskPool, map_tensors
from flbook.domains import Count, Fraction, Natural, NonNegative, Positive
from flbook.estimators import DiscreteMMSE, Ridge, predict_each
from flbook.models.transformer import PromptTransformer
from flbook.runs import Experiment, Grid, axis, checkpoints, single_precision
from flbook.shapes import Context
from flbook.training.pretrain import Recipe, named_weights, pretrain

Where = Literal["own pool", "fresh tasks"]
Rule = Literal["transformer", "pool's Bayes rule", "ridge"]
OTHERS = 1000  # added to the seed of test prompts: none of them is one of training
LONG = 1000  # steps from which training keeps a checkpoint
KEPT = {"longer": (64,), "larger": (4, 256)}  # pools whose networks of the longest training come with the library


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: networks after a few steps."""

    steps: tuple[Count, ...] = axis([50], "training steps")
    tested: tuple[Where, ...] = axis(get_args(Where), "tasks of the test")
    tasks: tuple[Count, ...] = axis([4**k for k in range(1, 7)], "tasks in the pool M")
    rule: tuple[Rule, ...] = axis(get_args(Rule), "rule")
    seed: tuple[Natural, ...] = axis(range(10), "seed")  # of groups of test prompts
    points: Count = 50  # prompts of a group
    d: Count = 4
    n: Count = 8  # examples of a prompt
    noise: Positive = 0.5  # standard deviation of the label noise
    width: Count = 32
    layers: Count = 2
    heads: Count = 2
    sigma_0: NonNegative = 0.1  # initial weights
    batch: Count = 32  # prompts of a step
    lr: Positive = 3e-3
    warmup: Natural = 100
    decay: Literal["cosine", "linear", "constant"] = "cosine"
    beta_2: Fraction = 0.98
    start: Natural = 0  # seed of the pools, of the initial weights and of the training prompts


AXES = ("steps", "tested", "tasks", "rule", "seed")
experiment = Experiment(
    Setting, version=1, loops=("steps",), chunk={"steps": 1}, stored="longer",
    gives={
        "error": ("squared error over d", "1", (*AXES, "position")),
        "apart": ("squared distance to the transformer, over d", "1", AXES),
        "between": ("squared distance of the two exact rules, over d", "1", ("steps", "tested", "tasks", "seed")),
        "weights": ("weights of the transformers", "1", ("steps", "tasks", "weight")),
    },
    beside={"position": (lambda s: range(s.n + 1), "examples seen", "1")},
    presets={
        "book": ("Six pools after fifty steps", {}),
        "tiny": ("Two pools, ten steps of one narrow layer", dict(
            steps=(10,), tasks=(2, 8), seed=(0, 1), points=20, d=2, n=3, width=8, layers=1)),
        "longer": ("Six pools and two lengths of training", dict(points=400, steps=(500, 2500))),
        "larger": ("Three times the weights, twice the prompts of a step and twice the steps, on four pools", dict(
            points=400, steps=(1000, 5000), tasks=(4, 16, 64, 256), width=48, layers=3, batch=64, lr=4e-3)),
        "gpu": ("The network and the grid of Raventos et al., for a GPU; their largest pool has a million tasks", dict(
            steps=(100_000, 500_000), tasks=tuple(4**k for k in range(1, 11)), d=8, n=15, width=128, layers=8,
            sigma_0=0.02, batch=256, lr=1e-3, warmup=50_000, decay="linear", beta_2=0.999)),
    },
)  # fmt: skip


@dataclass(frozen=True)
class Pools:
    """Prompts of several pools side by side, or of fresh tasks: the same inputs and noise, only the tasks differ."""

    n: int
    d: int
    noise: float
    pools: tuple[TaskPool | None, ...]

    def draw(self, batch: int, seed: int, step: int = 0, device="cpu", dtype: torch.dtype = torch.float64) -> Prompts:
        """One batch of each, a pure function of (seed, step); the axis of the pools leads."""
        drawn = [LinearPrompts(n=self.n, d=self.d, noise=self.noise, pool=pool).draw(batch, seed, step, device, dtype)
                 for pool in self.pools]
        return map_tensors(drawn[0], lambda *parts: torch.stack(parts), *drawn[1:])


def pools(s: Setting, tested: Where = "own pool") -> Pools:
    """The prompts that the networks are pretrained on, or others with fresh tasks."""
    own = tuple(TaskPool(size, s.start) if tested == "own pool" else None for size in s.tasks)
    return Pools(s.n, s.d, s.noise, own)


def untrained(s: Setting) -> PromptTransformer:
    """The networks at their start, one for each pool, all the same."""
    return PromptTransformer(s.d, s.n, s.width, s.layers, s.heads, s.sigma_0, seed=(s.start,) * len(s.tasks))


def about(s: Setting) -> dict:
    """What the weights of one length depend on."""
    names = ("steps", "tasks", "d", "n", "noise", "width", "layers", "heads", "sigma_0", "batch", "lr", "warmup",
             "decay", "beta_2", "start")  # fmt: skip
    return {"experiment": "pretraining_pools", "version": experiment.version} | {n: getattr(s, n) for n in names}


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Train the networks of one length, and test them."""
    recipe = Recipe(s.steps, s.batch, s.lr, s.warmup, s.decay, beta_2=s.beta_2)
    checkpoint = experiment.training_file(device, about(s)) if s.steps > LONG else None
    network = pretrain(untrained(s), pools(s), recipe, s.start, device, checkpoint=checkpoint, every=500).model
    weights = torch.cat([p.detach().flatten(1) for p in network.parameters()], -1)
    return test(s, network, device)._asdict() | {"weights": weights}


class Tested(NamedTuple):
    """What a test finds, over d, the positions averaged except in the error, which is to the noiseless target."""

    error: Tensor  # (tested, tasks, rule, seed, position)
    apart: Tensor  # squared distance of each rule to the transformer, (tested, tasks, rule, seed)
    between: Tensor  # squared distance of the pool's Bayes rule to ridge regression, (tested, tasks, seed)


def test(s: Setting, network: PromptTransformer, device: str = "cpu") -> Tested:
    """Networks and exact rules on the tasks of their own pools and on fresh ones."""
    found = []
    for where in s.tested:
        groups = [asked(s, where, network, seed, device) for seed in s.seed]
        error = torch.stack([one.error for one in groups], 2)
        found.append(Tested(error, *(torch.stack(parts, -1) for parts in list(zip(*groups, strict=True))[1:])))
    return Tested(*(torch.stack(parts) for parts in zip(*found, strict=True)))


@torch.no_grad()
def asked(s: Setting, where: Where, network: PromptTransformer, seed: int, device: str = "cpu") -> Tested:
    """One group of test prompts: the same without the axes of what is tested and of the seeds."""
    context, query, _, task, observed = pools(s, where).draw(s.points, seed + OTHERS, 0, device)
    whole = Context(torch.cat([context.x, query], -2), torch.cat([context.y, observed], -1))  # (tasks, b, n + 1, ...)
    clean = torch.einsum("...d,...nd->...n", task, whole.x)
    like = next(network.parameters())
    answers = {"transformer": network.predictions(whole.x.to(like), whole.y.to(like)).to(clean),
               "pool's Bayes rule": torch.stack([predict_each(bayes(s, size), Context(*one)) for size, *one in
                                                 zip(s.tasks, *whole, strict=True)]),
               "ridge": predict_each(Ridge(s.noise**2), whole)}  # fmt: skip

    def distance(one: Tensor, other: Tensor) -> Tensor:  # (tasks, position)
        return (one - other).square().mean(1) / s.d

    error = torch.stack([distance(answers[rule], clean) for rule in s.rule], 1)
    apart = torch.stack([distance(answers[rule], answers["transformer"]).mean(-1) for rule in s.rule], 1)
    return Tested(error, apart, distance(answers["pool's Bayes rule"], answers["ridge"]).mean(-1))


def bayes(s: Setting, size: int) -> DiscreteMMSE:
    """The Bayes rule of the pool of one size."""
    return DiscreteMMSE(TaskPool(size, s.start).tasks(s.d), s.noise)


def split(runs: xr.Dataset) -> xr.Dataset:
    r"""Where the answers lie between the two exact rules, and how far off their line.

    With the answers f, :math:`f_P` of the pool's Bayes rule and :math:`f_R` of ridge regression, `share` is the
    coefficient s of f - f_R on :math:`f_P - f_R`, and `off` the mean square over d of what is left:

    .. math:: s = \frac{E(f - f_R)(f_P - f_R)}{E(f_P - f_R)^2}, \qquad
              E(f - f_P)^2 = (1 - s)^2\,E(f_P - f_R)^2 + E(f - f_R - s(f_P - f_R))^2

    On the pool's own tasks the left side is what f errs more than the pool's Bayes rule.
    """
    pool, ridge = (runs.apart.sel(rule=rule, drop=True) for rule in ("pool's Bayes rule", "ridge"))
    share = (ridge - pool + runs.between) / (2 * runs.between)
    return xr.Dataset({"share": share, "off": ridge - share**2 * runs.between})


run = experiment.run


def trained() -> xr.Dataset:
    """Both stored results side by side: the axis `network` says layers and steps; pools that one lacks are NaN."""
    parts = []
    for preset in KEPT:
        runs, layers = experiment.stored(preset), experiment.setting(preset).layers
        parts += [runs.sel(steps=steps, drop=True).assign_coords(network=f"{layers} layers, {int(steps):,} steps")
                  for steps in runs.steps]  # fmt: skip
    return xr.concat(parts, "network", join="outer", combine_attrs="drop")


def owners(preset: str) -> Setting:
    """The setting of the networks that come with the library."""
    return experiment.setting(preset, tasks=KEPT[preset], steps=experiment.setting(preset).steps[-1:])


def opened(preset: str = "larger", device: str = "cpu") -> tuple[Setting, PromptTransformer]:
    """The setting and the networks that come with the library; kept in half precision, computed in single."""
    s = owners(preset)
    network, file = untrained(s), experiment.path(".safetensors", preset)
    network.load_state_dict(checkpoints.load(file, about(s), dtype=torch.float32))
    return s, network.requires_grad_(False).to(device)


@experiment.kept
def kept(dataset: xr.Dataset) -> xr.Dataset:
    """What the package keeps of a larger run: errors in single precision here, some of the networks elsewhere."""
    preset = dataset.attrs["scale"]
    if preset in KEPT:
        network = untrained(s := owners(preset))
        flat = torch.from_numpy(dataset.weights.sel(tasks=list(s.tasks)).isel(steps=-1).values)
        weights = named_weights(network, flat)
        checkpoints.save(experiment.path(".safetensors", preset), weights, about(s), torch.float16)
    return single_precision(dataset.drop_vars("weights"))
