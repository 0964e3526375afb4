r"""Exclusive or with flipped labels: benign and harmful overfitting where no linear classifier is right.

Claim (Meng et al. 2024, Theorems 3.2, 3.4): trained until every label is fitted, a two-layer ReLU CNN has a test
error that vanishes if :math:`n\|\mu\|^4(1 - \cos\theta)^2 \ge C\sigma_\xi^4 d`, with :math:`\theta` the angle between
the clusters of label +1 and those of label -1, and stays above a constant if it is far below.

Measured besides: the linear rival, whose error is exactly 1/2; the lazy rival, whose kernel tells the four clusters
apart without learning anything; random features of the network's width, which are too few; and on what the angle
really acts, :math:`\sin^4\theta`.
"""

import math
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import torch
import xarray as xr

from flbook import devices, fits, measures, rivals
from flbook.data.signal_noise import check_noise, flipped_labels
from flbook.dynamics.wishart import check_room
from flbook.lectures.benign_overfitting.xor.clusters import check_angle, check_sizes, unit_signals
from flbook.lectures.benign_overfitting.xor.xor_gram import FrozenXorTraining, XorGramTraining, draw_xor_gram
from flbook.runs.settings import among
from flbook.runs.sweep import sweep
from flbook.shapes import signs
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

VERSION = 1

MODELS = {"network": lambda problem: problem, "linear": rivals.linear, "lazy": rivals.lazy, "frozen": rivals.frozen}
Task = XorGramTraining | FrozenXorTraining
FROZEN_STEP = 2.0  # times 1/m: half of what is stable on 2m features of mean square 1


@dataclass(frozen=True)
class Setting:
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    model: tuple[str, ...] = ("network",)  # and its rivals: linear, lazy, frozen
    n: tuple[int, ...] = (40, 120)  # training samples, a multiple of 4
    d: tuple[int, ...] = (20_000, 1_000_000)  # patch dimension
    angle: tuple[float, ...] = (90.0,)  # theta, between u and v, in degrees
    r: tuple[float, ...] = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)  # n |mu|^4 / (sigma_xi^4 d), sets |mu|
    seed: tuple[int, ...] = tuple(range(10))
    m: int = 16  # filters a sign
    flip_prob: float = 0.1  # p, exactly pn labels flipped
    sigma_0: float = 1e-10  # initial weights, far below sqrt(n)/(sigma_xi d)
    lr: float = 0.5  # step size, in units of nm/(sigma_xi^2 d)
    steps: int = 60
    points: int = 512  # fresh noise patches to measure the test error on, each beside all four clusters

    @classmethod
    def book(cls) -> "Setting":
        """Clusters at right angles, two sample sizes and two dimensions."""
        return cls()

    @classmethod
    def angles(cls) -> "Setting":
        """Five angles between the clusters, the network and the lazy rival."""
        return cls(model=("network", "lazy"), n=(80,), d=(1_000_000,), angle=(90.0, 60.0, 45.0, 30.0, 120.0),
                   seed=tuple(range(20)))

    @classmethod
    def rivals(cls) -> "Setting":
        """The linear rival and random features, at right angles."""
        return cls(model=("linear", "frozen"), n=(80,), d=(1_000_000,))

    @classmethod
    def paper(cls) -> "Setting":
        """Eight angles, two sample sizes, two dimensions, fifteen signal strengths, smaller steps, network and lazy."""
        strengths = tuple(float(f"{10 ** (0.4 * k - 1):.3g}") for k in range(15))
        return cls(model=("network", "lazy"), d=(30_000, 10_000_000), r=strengths, seed=tuple(range(12)), lr=0.1,
                   steps=200, angle=(15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 150.0))

    def thinned(self, **axes: tuple) -> "Setting":
        """The same setting on fewer values of some axes."""
        return replace(self, **axes)


def problem(setting: Setting, n: int, d: int, device: str = "cpu") -> XorGramTraining:
    """The training problems of all (seed, angle and r), in that order of ensemble axes; angles and r in one axis."""
    gram = draw_xor_gram(n, 2 * setting.m, d, sigma_0=setting.sigma_0, seed=setting.seed)
    signals = torch.stack([(r * d / n) ** 0.25 * unit_signals(angle) for angle, r in product(setting.angle, setting.r)])
    _, observed = flipped_labels(n, setting.flip_prob, setting.seed[0])
    network = XorGramTraining(gram.with_signals(signals), torch.arange(n) % 4, observed, scale=1 / setting.m)
    return network.to(devices.device(device), torch.float32)


def trained(setting: Setting, name: str, n: int, d: int, device: str = "cpu") -> tuple[Task, dict]:
    """One model's problem at one n and d, and its parameters after training."""
    task = MODELS[name](problem(setting, n, d, device))
    rule = GradientDescent(setting.lr * n * setting.m / d if name != "frozen" else FROZEN_STEP / setting.m)
    return task, fit(task, rule, setting.steps).params


def alignment(task: XorGramTraining, params: dict) -> torch.Tensor:
    r"""How far the plane part of each filter's move points along its own sign's direction, shape ``(*E, k)``.

    The direction is :math:`u - \cos\theta\, v` for filters of +1, :math:`v - \cos\theta\, u` for those of -1: what is
    left of a signal when its shadow on the other is taken away. 1 is parallel or opposite, 0 is orthogonal.
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


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Train every cell to the end; dimensions (model, n, d, seed, angle, r)."""
    cells = []
    for name, n, d in product(setting.model, setting.n, setting.d):
        task, params = trained(setting, name, n, d, device)
        first, w = (task.problem, task.problem.start()) if name == "frozen" else (task, params)  # the first layer
        cells.append([
            measures.test_error(task, params, setting.points), measures.train_error(task, params),
            alignment(first, w).mean(-1), carriers(first, w),
        ])
    sizes = [len(getattr(setting, name)) for name in ("model", "n", "d", "seed", "angle", "r")]
    columns = [torch.stack(column).reshape(sizes).cpu().numpy() for column in zip(*cells, strict=True)]
    dims = ("model", "n", "d", "seed", "angle", "r")
    return xr.Dataset(
        {
            "test_error": (dims, columns[0], {"long_name": "test error", "units": "fraction"}),
            "train_error": (dims, columns[1], {"long_name": "training error", "units": "fraction"}),
            "carriers": (dims, columns[3], {"long_name": "own filters that carry a sample's noise",
                                            "units": "fraction"}),
            "alignment": (dims, columns[2], {"long_name": "alignment with the own direction", "units": "1"}),
        },
        coords=coordinates(setting),
    )


def coordinates(setting: Setting) -> dict[str, tuple]:
    """The axes with their names and units."""
    labels = {"model": "model", "n": "samples n", "d": "patch dimension d", "angle": "angle θ", "seed": "seed",
              "r": "r = n|μ|⁴/(σ_ξ⁴ d)"}
    units = {"angle": "degrees"}
    return {name: (name, list(getattr(setting, name)), {"long_name": label, "units": units.get(name, "1")})
            for name, label in labels.items()}


def filters(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Where filters point in the plane of the clusters after training: (model, angle, k, 2), first n, d, seed and r."""
    rows = []
    for name in setting.model:
        task, params = trained(setting, name, setting.n[0], setting.d[0], device)
        moved = params["plane"][0].unflatten(0, (len(setting.angle), len(setting.r)))[:, 0]
        rows.append(moved / moved.norm(dim=-1).amax(-1)[..., None, None])
    plane = torch.stack(rows).cpu().numpy()
    names = {name: coordinates(setting)[name] for name in ("model", "angle")}
    about = {"long_name": "filter in the plane of u and v, over the longest", "units": "1"}
    return xr.Dataset({"plane": (("model", "angle", "filter", "axis"), plane, about)}, coords=names)


def crossing(error: xr.DataArray, level: float) -> fits.Fit:
    """The r at which the mean error over the seeds crosses a level, and where each seed's own curve does."""
    each = [float(fits.crossing(error.isel(seed=[k]), "r", level)) for k in range(error.sizes["seed"])]
    return fits.Fit(float(fits.crossing(error, "r", level)), (math.nan, math.nan), np.array(each))


def check(setting: Setting) -> None:
    """Refuse cells that the model does not have, before any other cell is computed."""
    check_noise(1.0, setting.flip_prob)
    for angle in setting.angle:
        check_angle(angle)
    for n, d in product(setting.n, setting.d):
        check_sizes(n, d)
        check_room(n, 2 * setting.m, d - 1)
        if n % 4:
            raise ValueError(f"n must be a multiple of 4, equally many samples of each cluster; got {n}")
    if not min(setting.r) > 0:
        raise ValueError(f"r must be positive, so that there is a signal; got {min(setting.r)}")
    among("model", setting.model, MODELS)


def run(setting: Setting, device: str = "cpu", **how) -> xr.Dataset:
    """The sweep over all axes, cached and resumable; `how` goes to `flbook.runs.sweep.sweep`."""
    check(setting)
    cell_bytes = 4 * 8 * 2 * setting.m * max(*setting.n, 2 * setting.points)
    how = {"memory": 2**28} | how
    return sweep(measure, setting, device=device, split=("model", "n", "d", "seed"), cell_bytes=cell_bytes, **how)


def stored(dataset: xr.Dataset) -> xr.Dataset:
    """Of a paper run: errors seed by seed as 16-bit numbers of step 1e-4."""
    kept = dataset[["test_error"]]
    kept.test_error.encoding = {"dtype": "int16", "scale_factor": 1e-4, "_FillValue": -1}
    return kept
