r"""Exclusive or with flipped labels: benign and harmful overfitting where no linear classifier is right.

Claim (Meng et al. 2024, Theorems 3.2, 3.4): trained until every label is fitted, a two-layer ReLU CNN has a test
error that vanishes if :math:`n\|\mu\|^4(1 - \cos\theta)^2 \ge C\sigma_\xi^4 d`, with :math:`\theta` the angle between
the clusters of label +1 and those of label -1, and stays above a constant if it is far below.

Measured besides: the linear rival, whose error is exactly 1/2; the lazy rival, whose kernel tells the four clusters
apart without learning anything; random features of the network's width, which are too few; and on what the angle
really acts, :math:`\sin^4\theta`.
"""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
import xarray as xr

from flbook import devices, fits, measures
from flbook.data.signal_noise import flipped_labels
from flbook.domains import Count, FlipProbability, Natural, NonNegative, Positive
from flbook.dynamics.wishart import check_room
from flbook.lectures.benign_overfitting.xor.clusters import Angle, unit_signals
from flbook.lectures.benign_overfitting.xor.xor_gram import FrozenXorTraining, XorGramTraining, draw_xor_gram
from flbook.rivals import Rival, rival
from flbook.runs import Experiment, Grid, axis, labelled
from flbook.shapes import signs
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

Task = XorGramTraining | FrozenXorTraining
FROZEN_STEP = 2.0  # times 1/m: half of what is stable on 2m features of mean square 1


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: clusters at right angles, two sample sizes and two dimensions.
    """

    model: tuple[Rival, ...] = axis(["network"], "model")
    n: tuple[Count, ...] = axis([40, 120], "samples n")  # a multiple of 4
    d: tuple[Count, ...] = axis([20_000, 1_000_000], "patch dimension d")
    angle: tuple[Angle, ...] = axis([90.0], "angle θ", "degrees")  # between u and v
    r: tuple[Positive, ...] = axis([0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0], "r = n|μ|⁴/(σ_ξ⁴ d)")  # sets |mu|
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    m: Count = 16  # filters a sign
    flip_prob: FlipProbability = 0.1  # p, exactly pn labels flipped
    sigma_0: NonNegative = 1e-10  # initial weights, far below sqrt(n)/(sigma_xi d)
    lr: Positive = 0.5  # step size, in units of nm/(sigma_xi^2 d)
    steps: Natural = 60
    points: Count = 512  # fresh noise patches to measure the test error on, each beside all four clusters

    def check(self) -> None:
        """Refuse cells that the model does not have."""
        for n, d in product(self.n, self.d):
            check_room(n, 2 * self.m, d - 1)
            if n % 4:
                raise ValueError(f"n must be a multiple of 4, equally many samples of each cluster; got {n}")


experiment = Experiment(
    Setting, version=1, loops=("model", "n", "d"), left=("seed", "angle", "r"), stored="longer",
    chunk={"model": 1, "n": 1, "d": 1, "seed": 5},
    gives={
        "test_error": ("test error", "fraction"),
        "train_error": ("training error", "fraction"),
        "carriers": ("own filters that carry a sample's noise", "fraction"),
        "alignment": ("alignment with the own direction", "1"),
    },
    presets={
        "tiny": ("Network and rivals, harmful and benign, in a blink", dict(
            model=("network", "linear", "lazy", "frozen"), n=(20,), d=(3000, 5000), angle=(90.0, 45.0),
            r=(0.3, 1000.0), seed=(0, 1, 2), m=8, steps=10, points=128)),
        "angles": ("Five angles between the clusters, the network and the lazy rival", dict(
            model=("network", "lazy"), n=(80,), d=(1_000_000,), angle=(90.0, 60.0, 45.0, 30.0, 120.0),
            seed=tuple(range(20)))),
        "rivals": ("The linear rival and random features, at right angles", dict(
            model=("linear", "frozen"), n=(80,), d=(1_000_000,))),
        "longer": ("Eight angles, two sample sizes, two dimensions, fifteen signals, smaller steps", dict(
            model=("network", "lazy"), d=(30_000, 10_000_000), seed=tuple(range(12)), lr=0.1, steps=200,
            r=tuple(float(f"{10 ** (0.4 * k - 1):.3g}") for k in range(15)),
            angle=(15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 150.0))),
    },
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train one model to the end; its ensemble has one axis for all (angle, r)."""
    task, params = trained(s, s.model, s.n, s.d, device)
    first, w = (task.problem, task.problem.start()) if s.model == "frozen" else (task, params)  # the first layer
    found = {
        "test_error": measures.test_error(task, params, s.points), "train_error": measures.train_error(task, params),
        "carriers": carriers(first, w), "alignment": alignment(first, w).mean(-1),
    }
    return {name: value.unflatten(-1, (len(s.angle), len(s.r))) for name, value in found.items()}


run = experiment.run


def problem(setting: Setting, n: int, d: int, device: str = "cpu") -> XorGramTraining:
    """The training problems of all (seed, angle and r), in that order of ensemble axes; angles and r in one axis."""
    gram = draw_xor_gram(n, 2 * setting.m, d, sigma_0=setting.sigma_0, seed=setting.seed)
    signals = torch.stack([(r * d / n) ** 0.25 * unit_signals(angle) for angle, r in product(setting.angle, setting.r)])
    _, observed = flipped_labels(n, setting.flip_prob, setting.seed[0])
    training = XorGramTraining(gram.with_signals(signals), torch.arange(n) % 4, observed, scale=1 / setting.m)
    return training.to(devices.device(device), torch.float32)


def trained(setting: Setting, name: str, n: int, d: int, device: str = "cpu") -> tuple[Task, dict]:
    """One model's problem at one n and d, and its parameters after training."""
    task = rival(problem(setting, n, d, device), name)
    rule = GradientDescent(setting.lr * n * setting.m / d if name != "frozen" else FROZEN_STEP / setting.m)
    return task, fit(task, rule, setting.steps).params


def alignment(task: XorGramTraining, params: dict) -> torch.Tensor:
    r"""How far the plane part of each filter's move points along its own sign's direction, shape ``(*E, k)``.

    The direction is :math:`u - \cos\theta\, v` for filters of +1, :math:`v - \cos\theta\, u` for those of -1: the rest
    of a signal when its shadow on the other is taken away. 1 is parallel or opposite, 0 is orthogonal.
    """
    moved = params["plane"] - task.start()["plane"]
    u, v = task.gram.signals.unbind(-2)
    cos = (u * v).sum(-1, keepdim=True) / (u * u).sum(-1, keepdim=True)
    half = moved.shape[-2] // 2
    own = torch.stack([u - cos * v, v - cos * u], -2).repeat_interleave(half, dim=-2)
    return torch.cosine_similarity(moved / own.norm(dim=-1, keepdim=True), own, dim=-1, eps=1e-30).abs()


def carriers(task: XorGramTraining, params: dict) -> torch.Tensor:
    """Share of the filters of a sample's observed sign that answer to its noise, mean over samples, shape ``*E``."""
    on_noise = task.patches(params)["noise"]
    active = task.slope(on_noise, "noise").expand_as(on_noise) > 0
    own = signs(active.shape[-2], task.observed)[:, None] * task.observed[..., None, :] > 0
    return (active & own).to(on_noise).sum((-2, -1)) / own.to(on_noise).sum((-2, -1))


@experiment.also
def filters(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Where filters point in the plane of the clusters after training: (model, angle, k, 2), first n, d, seed and r."""
    rows = []
    for name in setting.model:
        task, params = trained(setting, name, setting.n[0], setting.d[0], device)
        moved = params["plane"][0].unflatten(0, (len(setting.angle), len(setting.r)))[:, 0]
        rows.append(moved / moved.norm(dim=-1).amax(-1)[..., None, None])
    dims, text = ("model", "angle", "filter", "axis"), "filter in the plane of u and v, over the longest"
    return labelled({"plane": (dims, rows, text)}, setting.coordinates("model", "angle"))


def crossing(error: xr.DataArray, level: float) -> fits.Fit:
    """The r at which the mean error over the seeds crosses a level, and where each seed's own curve does."""
    each = [float(fits.crossing(error.isel(seed=[k]), "r", level)) for k in range(error.sizes["seed"])]
    return fits.Fit(float(fits.crossing(error, "r", level)), (math.nan, math.nan), np.array(each))


@experiment.kept
def kept(dataset: xr.Dataset) -> xr.Dataset:
    """Of a run: errors seed by seed as 16-bit numbers of step 1e-4."""
    error = dataset[["test_error"]]
    error.test_error.encoding = {"dtype": "int16", "scale_factor": 1e-4, "_FillValue": -1}
    return error
