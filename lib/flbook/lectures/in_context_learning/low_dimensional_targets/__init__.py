r"""Low-dimensional targets in context: one gradient step finds the subspace, ridge regression for Gamma does the rest.

Claims (Oko et al. 2024): pretraining on prompts :math:`y = \sigma_*(\langle x, \beta\rangle)` with beta in an
r-dimensional subspace S moves the neurons of linear attention into S by one step on W; after a ridge regression for
Gamma the examples needed in a prompt depend on r and not on d, while whoever sees the prompt alone needs
:math:`d^{\Theta(1)}`.

The target here is the link :math:`h_2`. Stage one is the step on T_1 prompts, or its exact expectation (``t_1 = 0``);
stage two is exact ridge regression on T_2 prompts in the T_2 x T_2 kernel. The risk of what comes out is a sum over
moments, exact over tasks, contexts and label noise.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
import xarray as xr

from flbook import devices, rng
from flbook.domains import Count, Natural, NonNegative, Positive
from flbook.estimators.in_context import KernelRidge
from flbook.lectures.in_context_learning.low_dimensional_targets import alignment as theory
from flbook.lectures.in_context_learning.shared import attention_pretraining as pretraining
from flbook.lectures.in_context_learning.shared.attention_pretraining import Example
from flbook.lectures.in_context_learning.shared.relu_layer import ReLULayer
from flbook.lectures.in_context_learning.shared.single_index_prompts import SingleIndexPrompts
from flbook.models import kernels
from flbook.runs import Experiment, Grid, axis
from flbook.shapes import Context

BATCH = 50  # prompts held at once: what they need then stays in the cache of a core


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: the network, with its subspace known and never moved, at d = 32.
    """

    d: tuple[Count, ...] = axis([32], "input dimension d")
    r: tuple[Count, ...] = axis([2], "dimension of the subspace r")
    model: tuple[Literal["one step", "oracle", "frozen"], ...] = axis(["one step", "oracle", "frozen"], "model")
    lam: tuple[Positive, ...] = axis([1e-3, 1.0], "ridge of stage two λ")  # in units of the features' mean square
    context: tuple[Count, ...] = axis([16, 32, 64, 128, 256, 512], "examples in the prompt n*")  # of a test
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    m: Count = 64  # neurons
    t_1: Natural = 0  # prompts of stage one at d = 16, (d/16)^3 times as many at d; 0: the step's exact expectation
    n_1: Count = 512  # examples of each
    t_2: Count = 1000  # prompts of stage two
    n_2: Count = 128  # examples of each
    spread: NonNegative = 1.0  # biases of stage two are uniform on [-spread, spread]
    noise: NonNegative = 0.0  # tau, of the labels
    points: Count = 16384  # inputs over which E[y^2 phi phi^T] is averaged

    def check(self) -> None:
        """Refuse a subspace that does not fit."""
        SingleIndexPrompts(d=min(self.d), r=max(self.r))


DIMS = ("d", "r", "seed", "model")
experiment = Experiment(
    Setting, version=1, loops=("d", "r", "seed"), left=("model", "lam", "context"), chunk={"seed": 1}, stored="longer",
    gives={
        "risk": ("risk R", "1"),
        "limit": ("risk R after endless pretraining", "1", (*DIMS, "context")),
        "alignment": ("share of the squared weights in S", "1", DIMS),
    },
    presets={
        "tiny": ("Two small dimensions and two hundred prompts", dict(
            d=(6, 10), lam=(1e-3, 0.1), context=(8, 64), seed=(0, 1), m=24, t_2=200, n_2=32, points=2000)),
        "dimensions": ("The talk's first panel: r fixed, d grows", dict(
            d=(16, 32, 64), model=("one step",), lam=(1e-3,), m=96)),
        "longer": ("Both stages on drawn prompts", dict(
            d=(8, 16, 32), model=("one step",), lam=(1e-3,), m=96, t_1=8000, t_2=3000, n_2=256)),
    },
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, np.ndarray]:
    """Alignment, risk after both stages, and risk in the limit of many prompts; models see the same prompts."""
    where = devices.device(device)
    layers = [layer(name, s, s.d, s.r, s.seed, where) for name in s.model]
    stream = examples(data(s, s.d, s.r, s.n_2), s.t_2, s.seed, 10_000_000, where)
    there = [ReLULayer(own.w.to(where), own.b.to(where)) for own in layers]
    found = [outcome(s, own, summaries, s.d, s.r, s.seed)
             for own, summaries in zip(layers, pretraining.summarise(there, stream), strict=True)]
    risk, limit = map(np.stack, zip(*found, strict=True))
    return {"risk": risk, "limit": limit, "alignment": np.array([own.alignment(s.r).item() for own in layers])}


run = experiment.run


@experiment.kept
def kept(dataset: xr.Dataset) -> xr.Dataset:
    """What the package keeps: every run, in single precision."""
    return dataset.squeeze(("model", "lam"), drop=True).astype("float32", keep_attrs=True)


def prompts_of_stage_one(setting: Setting, d: int) -> int:
    """T_1, which grows like d^3, as the theorem asks for the link h_2."""
    return round(setting.t_1 * (d / 16) ** 3)


def data(setting: Setting, d: int, r: int, n: int) -> SingleIndexPrompts:
    """The prompts of one cell, of n examples."""
    return SingleIndexPrompts(n=n, d=d, r=r, noise=setting.noise)


def examples(prompts: SingleIndexPrompts, count: int, seed: int, first: int, device="cpu") -> Iterator[Example]:
    """So many prompts in single precision, batch by batch, from step `first` of the stream on."""
    for step in range(-(-count // BATCH)):
        size = min(BATCH, count - step * BATCH)
        batch = prompts.draw(size, seed, first + step, device, torch.float32)
        yield Example(batch.context, batch.query[..., 0, :], batch.observed[..., 0])


def stage_one(setting: Setting, d: int, r: int, seed: int, device="cpu") -> ReLULayer:
    """The layer after one step on W, scaled to mean squared length 1, and its biases of stage two."""
    start = ReLULayer.draw(setting.m, d, seed, dtype=torch.float32 if setting.t_1 else torch.float64)
    if setting.t_1:
        start = ReLULayer(start.w.to(device), start.b.to(device))
        stream = examples(data(setting, d, r, setting.n_1), prompts_of_stage_one(setting, d), seed, 0, device)
        step = pretraining.first_gradient(start, stream)
    else:
        step = torch.from_numpy(theory.quadratic_step(start.w.numpy(), r))
    return start.pointed(step).biased(setting.spread, seed)


def progress(setting: Setting, batches: int = 16, device: str = "cpu") -> xr.DataArray:
    """Share of the squared weights in S as prompts of stage one come in, for the first d and r; (prompts, seed)."""
    d, r = setting.d[0], setting.r[0]
    size = prompts_of_stage_one(setting, d) // batches
    where, columns = devices.device(device), []
    for seed in setting.seed:
        start = ReLULayer.draw(setting.m, d, seed, dtype=torch.float32)
        start = ReLULayer(start.w.to(where), start.b.to(where))
        prompts = data(setting, d, r, setting.n_1)
        parts = [pretraining.first_gradient(start, examples(prompts, size, seed, k * -(-size // BATCH), where))
                 for k in range(batches)]
        steps = torch.stack(parts).cumsum(0)
        columns.append([start.pointed(step).alignment(r).item() for step in steps])
    count = [size * (k + 1) for k in range(batches)]
    count = ("prompts", count, {"long_name": "prompts of stage one T₁", "units": "1"})
    return xr.DataArray(np.array(columns).T, dims=("prompts", "seed"),
                        coords={"prompts": count, **setting.coordinates("seed")},
                        attrs={"long_name": "share of the squared weights in S", "units": "1"})


def layer(name: str, setting: Setting, d: int, r: int, seed: int, device="cpu") -> ReLULayer:
    """The layer of one model, in single precision on the CPU; the device is that of drawn prompts of stage one."""
    frozen = ReLULayer.draw(setting.m, d, seed).biased(setting.spread, seed)
    if name == "one step":
        made = stage_one(setting, d, r, seed, device)
    elif name == "oracle":  # the random directions' parts in S, and nothing else
        made = frozen.pointed(torch.nn.functional.pad(frozen.w[:, :r], (0, d - r)))
    else:
        made = frozen
    return ReLULayer(made.w.float().cpu(), made.b.float().cpu())


def outcome(setting: Setting, own: ReLULayer, summaries, d: int, r: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Exact risks at the context lengths: of stage two at every ridge, and of endless pretraining."""
    w, b = (part.double().numpy() for part in (own.w, own.b))
    x = rng.numpy_generator(seed, f"inputs of the moments, d = {d}").standard_normal((setting.points, d))
    moments = (theory.task_moment(w, b, r), theory.label_moment(w, b, r, x, setting.noise), theory.feature_moment(w, b))
    tried = [pretraining.trained(own, summaries, lam).gamma.cpu().numpy() for lam in setting.lam]
    *risks, limit = ([theory.risk(gamma, n, *moments) for n in setting.context]
                     for gamma in (*tried, theory.best_gamma(setting.n_2, *moments)))
    return np.array(risks), np.array(limit)


# Rivals that see the test prompt alone.

KERNELS: dict[str, kernels.Kernel] = {
    "Gaussian": kernels.distance(lambda t: torch.exp(-t / 2)),
    "quadratic": kernels.inner_product(lambda t: (1 + t) ** 2),
}
RIDGES = (1e-3, 1e-1, 1.0)


def kernel_ridge(context: Context, query: torch.Tensor) -> dict[str, torch.Tensor]:
    """Predictions of kernel ridge regression by each kernel and ridge."""
    return {f"{name}, {lam:g}": KernelRidge(kernel, lam)(context, query)
            for name, kernel in KERNELS.items() for lam in RIDGES}


def alone(rival: Callable, setting: Setting, tasks: int = 10, queries: int = 100) -> xr.DataArray:
    """Risk of a rival on prompts it sees alone, the best of its variants in hindsight; dimensions (context, seed).

    Hindsight looks at the mean over all tasks of all seeds, at each length.
    """
    d, r = setting.d[0], setting.r[0]
    columns = []
    for n in setting.context:
        batch = replace(data(setting, d, r, n), queries=queries).draw(tasks * len(setting.seed), 0, n)
        found = rival(batch.context, batch.query)
        by_task = [(f - batch.target).square().mean(-1) for f in found.values()]
        best = min(by_task, key=lambda error: float(error.mean()))
        columns.append(best.reshape(len(setting.seed), tasks).mean(-1).numpy())
    return xr.DataArray(np.stack(columns), dims=("context", "seed"), coords=setting.coordinates("context", "seed"),
                        attrs={"long_name": "risk R", "units": "1"})
