r"""Low-dimensional targets in context: one gradient step finds the subspace, ridge regression for Gamma does the rest.

Claims (Oko et al. 2024): pretraining on prompts :math:`y = \sigma_*(\langle x, \beta\rangle)` with beta in an
r-dimensional subspace S moves the neurons of linear attention into S by one step on W; after a ridge regression for
Gamma the examples needed in a prompt depend on r and not on d, while whoever sees the prompt alone needs
:math:`d^{\Theta(1)}`.

The target here is the link :math:`h_2`. Stage one is the step on T_1 prompts, or its exact expectation (``t_1 = 0``);
stage two is exact ridge regression on T_2 prompts in the T_2 x T_2 kernel. The risk of what comes out is a sum over
moments, exact over tasks, contexts and label noise.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
import xarray as xr

from flbook import devices, rng
from flbook.domains import Count, Natural, NonNegative, Positive
from flbook.estimators.in_context import KernelRidge
from flbook.lectures.in_context_learning.low_dimensional_targets import alignment as theory
from flbook.lectures.in_context_learning.low_dimensional_targets import phase_retrieval
from flbook.lectures.in_context_learning.shared import attention_pretraining as pretraining
from flbook.lectures.in_context_learning.shared.attention_pretraining import Example
from flbook.lectures.in_context_learning.shared.relu_layer import ReLULayer
from flbook.lectures.in_context_learning.shared.single_index_prompts import SingleIndexPrompts
from flbook.models import kernels
from flbook.runs import Experiment, Grid, axis
from flbook.shapes import Context

LENGTHS = (4, 6, 8, 12, 16, 24, 32, 40, 48, 56, 64, 80, 96, 128, 160, 192, 256)
BATCH = 50  # prompts held at once: what they need then stays in the cache of a core


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: four dimensions, and the step in its exact expectation.
    """

    d: tuple[Count, ...] = axis([8, 16, 32, 64], "input dimension d")
    r: tuple[Count, ...] = axis([2], "dimension of the subspace r")
    model: tuple[Literal["one step", "oracle", "frozen"], ...] = axis(["one step"], "model")
    lam: tuple[Positive, ...] = axis([1e-3], "ridge of stage two λ")  # in units of the features' mean square
    context: tuple[Count, ...] = axis(LENGTHS, "examples in the prompt n*")  # of a test
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    m: Count = 64  # neurons
    t_1: Natural = 0  # prompts of stage one at d = 16, (d/16)^3 times as many at d; 0: the step's exact expectation
    n_1: Count = 512  # examples of each
    t_2: Count = 1000  # prompts of stage two
    n_2: Count = 128  # examples of each
    spread: NonNegative = 1.0  # biases of stage two are uniform on [-spread, spread]
    noise: NonNegative = 0.0  # tau, of the labels
    points: Count = 8192  # inputs over which E[y^2 phi phi^T] is averaged

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
            d=(6, 10), model=("one step", "oracle", "frozen"), lam=(1e-3, 0.1), context=(8, 64), seed=(0, 1), m=24,
            t_2=200, n_2=32, points=2000)),
        "longer": ("Both stages on drawn prompts", dict(
            d=(8, 16, 32), context=(16, 32, 64, 128, 256, 512), m=96, t_1=8000, t_2=3000, n_2=256, points=16384)),
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
FEATURE_RIDGES = (1e-9, 1e-7, 1e-5, 1e-3)


def kernel_ridge(context: Context, query: torch.Tensor) -> dict[str, torch.Tensor]:
    """Predictions of kernel ridge regression by each kernel and ridge."""
    return {f"{name}, {lam:g}": KernelRidge(kernel, lam)(context, query)
            for name, kernel in KERNELS.items() for lam in RIDGES}


def on_features(layer: ReLULayer) -> Callable:
    """Least squares on the neurons of a layer, for each prompt alone: what one does with them who has no Gamma."""
    def kernel(x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return layer(x) @ layer(other).mT / len(layer.b)

    def rival(context: Context, query: torch.Tensor) -> dict[str, torch.Tensor]:
        return {f"{lam:g}": KernelRidge(kernel, lam)(context, query) for lam in FEATURE_RIDGES}

    return rival


def told_the_link(context: Context, query: torch.Tensor) -> dict[str, torch.Tensor]:
    """Phase retrieval on the prompt alone, by starts and steps that all lengths share."""
    context, query = Context(*(part.float() for part in context)), query.float()
    return phase_retrieval.answers(context, query, starts=8)


def told_link_and_subspace(context: Context, query: torch.Tensor, r: int = 2) -> dict[str, torch.Tensor]:
    """The same, for the first r coordinates only."""
    return told_the_link(Context(context.x[..., :r], context.y), query[..., :r])


def alone(rival: Callable, setting: Setting, lengths: Iterable[int], tasks: int = 4,
          queries: int = 100) -> xr.DataArray:
    """Risk of a rival on prompts it sees alone, of the first d and r; dimensions (context, seed).

    It is given the best of its variants in hindsight: by the mean over all tasks of all seeds, at each length.
    """
    d, r, seeds, columns, lengths = setting.d[0], setting.r[0], len(setting.seed), [], list(lengths)
    for n in lengths:
        batch = replace(data(setting, d, r, n), queries=queries).draw(tasks * seeds, 0, n)
        found = rival(batch.context, batch.query)
        by_task = [(f - batch.target).square().mean(-1) for f in found.values()]
        best = min(by_task, key=lambda error: float(error.mean()))
        columns.append(best.reshape(seeds, tasks).mean(-1).numpy())
    context = ("context", lengths, {"long_name": "examples in the prompt n*", "units": "1"})
    return xr.DataArray(np.stack(columns), dims=("context", "seed"),
                        coords={"context": context, **setting.coordinates("seed")},
                        attrs={"long_name": "risk R", "units": "1"})


SHORT, LONG = (4, 6, 8, 12, 16, 24, 32, 48, 64), (96, 128, 192, 256)  # examples of what is solved, and of the rest
RATIOS = (0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5)  # n*/d at which phase retrieval is asked


def rivals(setting: Setting, d: int) -> dict[str, xr.DataArray]:
    """Risks of all that see the prompt alone, at one d: told the link, the features, link and subspace, or nothing."""
    s = replace(setting, d=(d,), r=setting.r[:1])
    own = layer("one step", s, d, s.r[0], 0)
    own = ReLULayer(own.w.double(), own.b.double())
    return {
        "phase retrieval (told the link)": alone(told_the_link, s, [round(d * ratio) for ratio in RATIOS], tasks=10),
        "least squares (told the features)": alone(on_features(own), s, SHORT),
        "Bayes (told link and subspace)": alone(told_link_and_subspace, s, SHORT[:5]),
        "kernel ridge (told nothing)": alone(kernel_ridge, s, [n for n in (*SHORT[::2], *LONG) if n <= 4 * d]),
    }


def by_ratio(curves: dict[int, xr.DataArray]) -> xr.DataArray:
    """Curves of phase retrieval at several d over n*/d; dimensions (d, ratio, seed)."""
    rows = [one.assign_coords(context=list(RATIOS)).rename(context="ratio") for one in curves.values()]
    return xr.concat(rows, "d").assign_coords(d=list(curves))


def crossing(attention: xr.DataArray, solver: xr.DataArray) -> float:
    """The longest prompt at which attention has the lower mean risk, interpolated between the solver's lengths."""
    ours = np.exp(np.interp(np.log(solver.context), np.log(attention.context), np.log(attention.mean("seed"))))
    gap = np.log(ours / (solver.mean("seed").values + 1e-6))
    last = np.flatnonzero(gap < 0).max()
    share = gap[last] / (gap[last] - gap[last + 1])
    return float(np.exp(np.log(solver.context.values[last : last + 2]) @ [1 - share, share]))


def endless(setting: Setting, per_square: int = 12) -> xr.DataArray:
    r"""Risk after endless pretraining, for each r: layers of so many :math:`r^2` neurons after an exact step."""
    d, rows = setting.d[0], []
    for r in setting.r:
        x = rng.numpy_generator(setting.seed[0], f"inputs of the moments, r = {r}").standard_normal((setting.points, d))
        for seed in setting.seed:
            own = stage_one(replace(setting, m=per_square * r**2), d, r, seed)
            rows.append(theory.best_risk(setting.context, own.w.numpy(), own.b.numpy(), r, x))
    shape = len(setting.r), len(setting.seed), len(setting.context)
    return xr.DataArray(np.reshape(rows, shape), dims=("r", "seed", "context"),
                        coords=setting.coordinates("r", "seed", "context"), attrs={"long_name": "risk R", "units": "1"})
